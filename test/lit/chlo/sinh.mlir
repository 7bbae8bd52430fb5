// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Hyperbolic sines.
// CHECK-LABEL: func.func @sinh(
// CHECK: %0 = chlo.sinh %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "sinh"
// GENERIC: %{{[0-9]+}} = "chlo.sinh"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @sinh(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.sinh %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, -1.0, 0x7F800000, 0xFF800000]> : tensor<6xf32>
  %0 = chlo.sinh %x : tensor<6xf32> -> tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 1.17520119, -1.17520119, 0x7F800000, 0xFF800000]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @sinh_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.sinh: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.sinh_c1]}}
  %0 = chlo.sinh %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
