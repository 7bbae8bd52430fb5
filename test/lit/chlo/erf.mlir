// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The error function.
// CHECK-LABEL: func.func @erf(
// CHECK: %0 = chlo.erf %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "erf"
// GENERIC: %{{[0-9]+}} = "chlo.erf"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @erf(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.erf %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 0.5, -0.5, 2.0, 0x7F800000]> : tensor<6xf32>
  %0 = chlo.erf %x : tensor<6xf32> -> tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 0.520499878, -0.520499878, 0.995322265, 1.0]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 8 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @erf_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.erf: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.erf_c1]}}
  %0 = chlo.erf %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
