// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Tangents.
// CHECK-LABEL: func.func @tan(
// CHECK: %0 = chlo.tan %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "tan"
// GENERIC: %{{[0-9]+}} = "chlo.tan"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @tan(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.tan %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, -1.0]> : tensor<4xf32>
  %0 = chlo.tan %x : tensor<4xf32> -> tensor<4xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 1.55740772, -1.55740772]> : tensor<4xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @tan_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.tan: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.tan_c1]}}
  %0 = chlo.tan %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
