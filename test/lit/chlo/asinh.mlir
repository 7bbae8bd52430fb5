// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Inverse hyperbolic sines.
// CHECK-LABEL: func.func @asinh(
// CHECK: %0 = chlo.asinh %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "asinh"
// GENERIC: %{{[0-9]+}} = "chlo.asinh"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @asinh(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.asinh %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, -100.0, 0x7F800000]> : tensor<5xf32>
  %0 = chlo.asinh %x : tensor<5xf32> -> tensor<5xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 0.881373587, -5.29834237, 0x7F800000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @asinh_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.asinh: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.asinh_c1]}}
  %0 = chlo.asinh %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
