// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One over the square root.
// CHECK-LABEL: func.func @rsqrt(
// CHECK: %0 = stablehlo.rsqrt %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "rsqrt"
// GENERIC: %{{[0-9]+}} = "stablehlo.rsqrt"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @rsqrt(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.rsqrt %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[4.0, 0.0, -0.0, 0x7F800000, -1.0, 2.0]> : tensor<6xf32>
  %0 = stablehlo.rsqrt %x : tensor<6xf32>
  %expected = stablehlo.constant dense<[0.5, 0x7F800000, 0xFF800000, 0.0, 0x7FC00000, 0.707106781]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 2 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @rsqrt_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.rsqrt: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [rsqrt_c1]}}
  %0 = stablehlo.rsqrt %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
