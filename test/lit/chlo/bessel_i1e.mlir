// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The modified Bessel function of the first kind of order one, scaled by exp(-|x|).
// CHECK-LABEL: func.func @bessel_i1e(
// CHECK: %0 = chlo.bessel_i1e %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "bessel_i1e"
// GENERIC: %{{[0-9]+}} = "chlo.bessel_i1e"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @bessel_i1e(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.bessel_i1e %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, 1.0, -1.0, 10.0]> : tensor<4xf32>
  %0 = chlo.bessel_i1e %x : tensor<4xf32> -> tensor<4xf32>
  %expected = stablehlo.constant dense<[0.0, 0.207910415, -0.207910415, 0.121262681]> : tensor<4xf32>
  check.expect_close %0, %expected, max_ulp_difference = 8 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @bessel_i1e_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.bessel_i1e: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.bessel_i1e_c1]}}
  %0 = chlo.bessel_i1e %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
