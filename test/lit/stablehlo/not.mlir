// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// All bits turned; of i1 the truth.
// CHECK-LABEL: func.func @not(
// CHECK: %0 = stablehlo.not %arg0 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "not"
// GENERIC: %{{[0-9]+}} = "stablehlo.not"(%{{arg[0-9]+}}) : (tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @not(%arg0: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = stablehlo.not %arg0 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0, -1, 5]> : tensor<3xi32>
  %0 = stablehlo.not %x : tensor<3xi32>
  check.expect_eq_const %0, dense<[-1, 0, -6]> : tensor<3xi32>
  %x1 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %1 = stablehlo.not %x1 : tensor<2xi1>
  check.expect_eq_const %1, dense<[false, true]> : tensor<2xi1>
  %x2 = stablehlo.constant dense<[0, 255, 1]> : tensor<3xui8>
  %2 = stablehlo.not %x2 : tensor<3xui8>
  check.expect_eq_const %2, dense<[255, 0, 254]> : tensor<3xui8>
  return
}

// -----

func.func @not_c1(%arg0: tensor<2x3xi32>) {
  // expected-error @below {{stablehlo.not: result #0 is tensor<3x2xi32>, but tensor<2x3xi32> follows from the operands [not_c1]}}
  %0 = stablehlo.not %arg0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return
}
