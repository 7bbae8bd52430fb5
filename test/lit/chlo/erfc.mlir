// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// 1 - erf(x) without losing large x.
// CHECK-LABEL: func.func @erfc(
// CHECK: %0 = chlo.erfc %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "erfc"
// GENERIC: %{{[0-9]+}} = "chlo.erfc"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @erfc(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.erfc %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, 0.5, 5.0, 0xFF800000, 0x7F800000]> : tensor<5xf32>
  %0 = chlo.erfc %x : tensor<5xf32> -> tensor<5xf32>
  %expected = stablehlo.constant dense<[1.0, 0.479500122, 1.53745979e-12, 2.0, 0.0]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 16 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @erfc_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.erfc: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.erfc_c1]}}
  %0 = chlo.erfc %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
