// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The logarithm of the absolute value of the gamma function; infinite at its poles.
// CHECK-LABEL: func.func @lgamma(
// CHECK: %0 = chlo.lgamma %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "lgamma"
// GENERIC: %{{[0-9]+}} = "chlo.lgamma"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @lgamma(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.lgamma %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[5.0, 3.0, 0.5, -0.5, 0.0, -1.0, 0x7F800000]> : tensor<7xf32>
  %0 = chlo.lgamma %x : tensor<7xf32> -> tensor<7xf32>
  %expected = stablehlo.constant dense<[3.17805383, 0.693147181, 0.572364943, 1.26551212, 0x7F800000, 0x7F800000, 0x7F800000]> : tensor<7xf32>
  check.expect_close %0, %expected, max_ulp_difference = 32 : tensor<7xf32>, tensor<7xf32>
  return
}

// -----

func.func @lgamma_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.lgamma: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.lgamma_c1]}}
  %0 = chlo.lgamma %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
