// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Products with themselves.
// CHECK-LABEL: func.func @square(
// CHECK: %0 = chlo.square %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "square"
// GENERIC: %{{[0-9]+}} = "chlo.square"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @square(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.square %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.5, -2.0, -0.0, 0xFF800000]> : tensor<4xf32>
  %0 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  check.expect_eq_const %0, dense<[2.25, 4.0, 0.0, 0x7F800000]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[(1.0, 2.0)]> : tensor<1xcomplex<f32>>
  %1 = chlo.square %x1 : tensor<1xcomplex<f32>> -> tensor<1xcomplex<f32>>
  check.expect_eq_const %1, dense<[(-3.0, 4.0)]> : tensor<1xcomplex<f32>>
  return
}

// -----

func.func @square_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.square: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.square_c1]}}
  %0 = chlo.square %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
