// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// -1, 0 or 1; zeros keep theirs, complex numbers become one long.
// CHECK-LABEL: func.func @sign(
// CHECK: %0 = stablehlo.sign %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "sign"
// GENERIC: %{{[0-9]+}} = "stablehlo.sign"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @sign(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.sign %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-3.0, -0.0, 0.0, 0x7F800000, 0x7FC00000]> : tensor<5xf32>
  %0 = stablehlo.sign %x : tensor<5xf32>
  check.expect_eq_const %0, dense<[-1.0, -0.0, 0.0, 1.0, 0x7FC00000]> : tensor<5xf32>
  %x1 = stablehlo.constant dense<[-7, 0, 9]> : tensor<3xi32>
  %1 = stablehlo.sign %x1 : tensor<3xi32>
  check.expect_eq_const %1, dense<[-1, 0, 1]> : tensor<3xi32>
  %x2 = stablehlo.constant dense<[(3.0, 4.0), (0.0, 0.0)]> : tensor<2xcomplex<f32>>
  %2 = stablehlo.sign %x2 : tensor<2xcomplex<f32>>
  %expected = stablehlo.constant dense<[(0.6, 0.8), (0.0, 0.0)]> : tensor<2xcomplex<f32>>
  check.expect_close %2, %expected, max_ulp_difference = 1 : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>
  return
}

// -----

func.func @sign_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.sign: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [sign_c1]}}
  %0 = stablehlo.sign %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
