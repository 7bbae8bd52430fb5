// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The sign bit turned, of zeros too; the least integer stays.
// CHECK-LABEL: func.func @negate(
// CHECK: %0 = stablehlo.negate %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "negate"
// GENERIC: %{{[0-9]+}} = "stablehlo.negate"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @negate(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.negate %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.5, 0.0, -0.0, 0x7F800000]> : tensor<4xf32>
  %0 = stablehlo.negate %x : tensor<4xf32>
  check.expect_eq_const %0, dense<[-1.5, -0.0, 0.0, 0xFF800000]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[-128, 127, 0]> : tensor<3xi8>
  %1 = stablehlo.negate %x1 : tensor<3xi8>
  check.expect_eq_const %1, dense<[-128, -127, 0]> : tensor<3xi8>
  %x2 = stablehlo.constant dense<[0, 1, 255]> : tensor<3xui8>
  %2 = stablehlo.negate %x2 : tensor<3xui8>
  check.expect_eq_const %2, dense<[0, 255, 1]> : tensor<3xui8>
  return
}

// -----

func.func @negate_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.negate: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [negate_c1]}}
  %0 = stablehlo.negate %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
