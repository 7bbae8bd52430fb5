// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Sines; infinity has none.
// CHECK-LABEL: func.func @sine(
// CHECK: %0 = stablehlo.sine %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "sine"
// GENERIC: %{{[0-9]+}} = "stablehlo.sine"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @sine(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.sine %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, 3.5, 0x7F800000]> : tensor<5xf32>
  %0 = stablehlo.sine %x : tensor<5xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 0.841470985, -0.350783228, 0x7FC00000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 2 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @sine_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.sine: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [sine_c1]}}
  %0 = stablehlo.sine %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
