// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Tangents.
// CHECK-LABEL: func.func @tan(
// CHECK: %0 = stablehlo.tan %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "tan"
// GENERIC: %{{[0-9]+}} = "stablehlo.tan"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @tan(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.tan %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, -1.0, 0x7F800000]> : tensor<5xf32>
  %0 = stablehlo.tan %x : tensor<5xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 1.55740772, -1.55740772, 0x7FC00000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 3 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @tan_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.tan: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [tan_c1]}}
  %0 = stablehlo.tan %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
