// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Square roots; negative numbers have none, negative zero is its own.
// CHECK-LABEL: func.func @sqrt(
// CHECK: %0 = stablehlo.sqrt %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "sqrt"
// GENERIC: %{{[0-9]+}} = "stablehlo.sqrt"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @sqrt(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.sqrt %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[4.0, 2.0, -0.0, -1.0, 0x7F800000]> : tensor<5xf32>
  %0 = stablehlo.sqrt %x : tensor<5xf32>
  %expected = stablehlo.constant dense<[2.0, 1.41421356, -0.0, 0x7FC00000, 0x7F800000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 1 : tensor<5xf32>, tensor<5xf32>
  %x1 = stablehlo.constant dense<[(-4.0, 0.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.sqrt %x1 : tensor<2xcomplex<f32>>
  %expected2 = stablehlo.constant dense<[(0.0, 2.0), (2.0, 1.0)]> : tensor<2xcomplex<f32>>
  check.expect_close %1, %expected2, max_ulp_difference = 2 : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>
  return
}

// -----

func.func @sqrt_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.sqrt: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [sqrt_c1]}}
  %0 = stablehlo.sqrt %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
