// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Complex conjugates; real numbers stay.
// CHECK-LABEL: func.func @conj(
// CHECK: %0 = chlo.conj %arg0 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
// GENERIC-LABEL: sym_name = "conj"
// GENERIC: %{{[0-9]+}} = "chlo.conj"(%{{arg[0-9]+}}) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
func.func @conj(%arg0: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = chlo.conj %arg0 : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

func.func @run() {
  %x = stablehlo.constant dense<[(1.0, 2.0), (3.0, -0.5)]> : tensor<2xcomplex<f32>>
  %0 = chlo.conj %x : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  check.expect_eq_const %0, dense<[(1.0, -2.0), (3.0, 0.5)]> : tensor<2xcomplex<f32>>
  %x1 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %1 = chlo.conj %x1 : tensor<2xf32> -> tensor<2xf32>
  check.expect_eq_const %1, dense<[1.5, -2.0]> : tensor<2xf32>
  return
}

// -----

func.func @conj_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.conj: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.conj_c1]}}
  %0 = chlo.conj %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
