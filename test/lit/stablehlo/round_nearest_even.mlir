// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// To the nearest whole number, halves to the even one.
// CHECK-LABEL: func.func @round_nearest_even(
// CHECK: %0 = stablehlo.round_nearest_even %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "round_nearest_even"
// GENERIC: %{{[0-9]+}} = "stablehlo.round_nearest_even"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @round_nearest_even(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.round_nearest_even %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-2.5, -0.5, 0.5, 1.5, 2.5, 0.75, 0xFF800000]> : tensor<7xf32>
  %0 = stablehlo.round_nearest_even %x : tensor<7xf32>
  check.expect_eq_const %0, dense<[-2.0, -0.0, 0.0, 2.0, 2.0, 1.0, 0xFF800000]> : tensor<7xf32>
  return
}

// -----

func.func @round_nearest_even_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.round_nearest_even: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [round_nearest_even_c1]}}
  %0 = stablehlo.round_nearest_even %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
