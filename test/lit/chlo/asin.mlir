// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Arc sines, of -1 to 1.
// CHECK-LABEL: func.func @asin(
// CHECK: %0 = chlo.asin %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "asin"
// GENERIC: %{{[0-9]+}} = "chlo.asin"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @asin(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.asin %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, -1.0, 0.5, 2.0]> : tensor<6xf32>
  %0 = chlo.asin %x : tensor<6xf32> -> tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 1.57079633, -1.57079633, 0.523598776, 0x7FC00000]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @asin_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.asin: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.asin_c1]}}
  %0 = chlo.asin %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
