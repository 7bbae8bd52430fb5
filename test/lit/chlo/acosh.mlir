// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Inverse hyperbolic cosines, of 1 and more.
// CHECK-LABEL: func.func @acosh(
// CHECK: %0 = chlo.acosh %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "acosh"
// GENERIC: %{{[0-9]+}} = "chlo.acosh"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @acosh(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.acosh %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0, 0.5, 0x7F800000]> : tensor<4xf32>
  %0 = chlo.acosh %x : tensor<4xf32> -> tensor<4xf32>
  %expected = stablehlo.constant dense<[0.0, 1.3169579, 0x7FC00000, 0x7F800000]> : tensor<4xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @acosh_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.acosh: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.acosh_c1]}}
  %0 = chlo.acosh %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
