// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// To the nearest whole number, halves away from zero.
// CHECK-LABEL: func.func @round_nearest_afz(
// CHECK: %0 = stablehlo.round_nearest_afz %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "round_nearest_afz"
// GENERIC: %{{[0-9]+}} = "stablehlo.round_nearest_afz"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @round_nearest_afz(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.round_nearest_afz %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-2.5, -0.5, 0.5, 1.5, 2.5, 0.25, -0.25, 0x7F800000]> : tensor<8xf32>
  %0 = stablehlo.round_nearest_afz %x : tensor<8xf32>
  check.expect_eq_const %0, dense<[-3.0, -1.0, 1.0, 2.0, 3.0, 0.0, -0.0, 0x7F800000]> : tensor<8xf32>
  return
}

// -----

func.func @round_nearest_afz_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.round_nearest_afz: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [round_nearest_afz_c1]}}
  %0 = stablehlo.round_nearest_afz %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
