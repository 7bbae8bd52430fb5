// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Inverse hyperbolic tangents, of -1 to 1.
// CHECK-LABEL: func.func @atanh(
// CHECK: %0 = chlo.atanh %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "atanh"
// GENERIC: %{{[0-9]+}} = "chlo.atanh"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @atanh(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.atanh %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 0.5, 1.0, -1.0, 2.0]> : tensor<6xf32>
  %0 = chlo.atanh %x : tensor<6xf32> -> tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 0.549306144, 0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @atanh_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.atanh: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.atanh_c1]}}
  %0 = chlo.atanh %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
