// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// exp(x) - 1 without losing small x.
// CHECK-LABEL: func.func @exponential_minus_one(
// CHECK: %0 = stablehlo.exponential_minus_one %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "exponential_minus_one"
// GENERIC: %{{[0-9]+}} = "stablehlo.exponential_minus_one"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @exponential_minus_one(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.exponential_minus_one %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0e-10, 1.0, 0xFF800000, 0x7F800000]> : tensor<6xf32>
  %0 = stablehlo.exponential_minus_one %x : tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 1.0e-10, 1.71828183, -1.0, 0x7F800000]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 2 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @exponential_minus_one_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.exponential_minus_one: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [exponential_minus_one_c1]}}
  %0 = stablehlo.exponential_minus_one %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
