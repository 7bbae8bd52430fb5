// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Real parts; a real number is its own.
// CHECK-LABEL: func.func @real(
// CHECK: %0 = stablehlo.real %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
// GENERIC-LABEL: sym_name = "real"
// GENERIC: %{{[0-9]+}} = "stablehlo.real"(%{{arg[0-9]+}}) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
func.func @real(%arg0: tensor<4xcomplex<f32>>) -> tensor<4xf32> {
  %0 = stablehlo.real %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[(1.0, -2.0), (-0.0, 5.0)]> : tensor<2xcomplex<f32>>
  %0 = stablehlo.real %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, -0.0]> : tensor<2xf32>
  %x1 = stablehlo.constant dense<[1.5, 0x7FC00000]> : tensor<2xf32>
  %1 = stablehlo.real %x1 : tensor<2xf32>
  check.expect_eq_const %1, dense<[1.5, 0x7FC00000]> : tensor<2xf32>
  return
}

// -----

func.func @real_c1(%arg0: tensor<4xcomplex<f32>>) {
  // expected-error @below {{stablehlo.real: result #0 is tensor<3xf32>, but tensor<4xf32> follows from the operands [real_c1]}}
  %0 = stablehlo.real %arg0 : (tensor<4xcomplex<f32>>) -> tensor<3xf32>
  return
}

// -----

func.func @real_c2(%arg0: tensor<4xcomplex<f32>>) {
  // expected-error @below {{stablehlo.real: result #0 is tensor<4xf64>, but tensor<4xf32> follows from the operands [real_c2]}}
  %0 = stablehlo.real %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf64>
  return
}
