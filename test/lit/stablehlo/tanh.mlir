// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Hyperbolic tangents, between -1 and 1.
// CHECK-LABEL: func.func @tanh(
// CHECK: %0 = stablehlo.tanh %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "tanh"
// GENERIC: %{{[0-9]+}} = "stablehlo.tanh"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @tanh(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, 0xFF800000, 0x7F800000, 0x7FC00000]> : tensor<6xf32>
  %0 = stablehlo.tanh %x : tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 0.761594156, -1.0, 1.0, 0x7FC00000]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 3 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @tanh_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.tanh: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [tanh_c1]}}
  %0 = stablehlo.tanh %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
