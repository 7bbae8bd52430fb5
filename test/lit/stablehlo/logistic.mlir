// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// 1 / (1 + exp(-x)).
// CHECK-LABEL: func.func @logistic(
// CHECK: %0 = stablehlo.logistic %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "logistic"
// GENERIC: %{{[0-9]+}} = "stablehlo.logistic"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @logistic(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.logistic %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, 1.0, -1.0, 0xFF800000, 0x7F800000, 0x7FC00000]> : tensor<6xf32>
  %0 = stablehlo.logistic %x : tensor<6xf32>
  %expected = stablehlo.constant dense<[0.5, 0.731058579, 0.268941421, 0.0, 1.0, 0x7FC00000]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 3 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @logistic_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.logistic: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [logistic_c1]}}
  %0 = stablehlo.logistic %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
