// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Absolute values; those of complex numbers are real, and that of the least integer is itself.
// CHECK-LABEL: func.func @abs(
// CHECK: %0 = stablehlo.abs %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "abs"
// GENERIC: %{{[0-9]+}} = "stablehlo.abs"(%{{arg[0-9]+}}) : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
func.func @abs(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32> {
  %0 = stablehlo.abs %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-2.5, -0.0, 0xFF800000, 0x7FC00000]> : tensor<4xf32>
  %0 = stablehlo.abs %x : tensor<4xf32>
  check.expect_eq_const %0, dense<[2.5, 0.0, 0x7F800000, 0x7FC00000]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[-2147483648, -7, 7]> : tensor<3xi32>
  %1 = stablehlo.abs %x1 : tensor<3xi32>
  check.expect_eq_const %1, dense<[-2147483648, 7, 7]> : tensor<3xi32>
  %x2 = stablehlo.constant dense<[(-3.0, 4.0), (0.0, -1.0)]> : tensor<2xcomplex<f32>>
  %2 = stablehlo.abs %x2 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  check.expect_eq_const %2, dense<[5.0, 1.0]> : tensor<2xf32>
  return
}

// -----

func.func @abs_c1(%arg0: tensor<2x3xcomplex<f32>>) {
  // expected-error @below {{stablehlo.abs: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [abs_c1]}}
  %0 = stablehlo.abs %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<3x2xf32>
  return
}

// -----

func.func @abs_c2(%arg0: tensor<2x3xcomplex<f32>>) {
  // expected-error @below {{stablehlo.abs: result #0 is tensor<2x3xf64>, but tensor<2x3xf32> follows from the operands [abs_c2]}}
  %0 = stablehlo.abs %arg0 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf64>
  return
}
