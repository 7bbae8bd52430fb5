// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The inverse of erf, of -1 to 1.
// CHECK-LABEL: func.func @erf_inv(
// CHECK: %0 = chlo.erf_inv %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "erf_inv"
// GENERIC: %{{[0-9]+}} = "chlo.erf_inv"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @erf_inv(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.erf_inv %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, 0.5, -0.5, 1.0, -1.0]> : tensor<5xf32>
  %0 = chlo.erf_inv %x : tensor<5xf32> -> tensor<5xf32>
  %expected = stablehlo.constant dense<[0.0, 0.476936276, -0.476936276, 0x7F800000, 0xFF800000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 8 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @erf_inv_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.erf_inv: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.erf_inv_c1]}}
  %0 = chlo.erf_inv %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
