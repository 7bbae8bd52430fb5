// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Cube roots, of negative numbers too.
// CHECK-LABEL: func.func @cbrt(
// CHECK: %0 = stablehlo.cbrt %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "cbrt"
// GENERIC: %{{[0-9]+}} = "stablehlo.cbrt"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @cbrt(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.cbrt %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-27.0, 8.0, -0.0, 2.0, 0x7F800000]> : tensor<5xf32>
  %0 = stablehlo.cbrt %x : tensor<5xf32>
  %expected = stablehlo.constant dense<[-3.0, 2.0, -0.0, 1.25992105, 0x7F800000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 2 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @cbrt_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.cbrt: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [cbrt_c1]}}
  %0 = stablehlo.cbrt %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
