// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Bit by bit; of i1 the truth.
// CHECK-LABEL: func.func @and(
// CHECK: %0 = stablehlo.and %arg0, %arg1 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "and"
// GENERIC: %{{[0-9]+}} = "stablehlo.and"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @and(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = stablehlo.and %arg0, %arg1 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[12, -1, 0]> : tensor<3xi32>
  %y = stablehlo.constant dense<[10, 7, -1]> : tensor<3xi32>
  %0 = stablehlo.and %x, %y : tensor<3xi32>
  check.expect_eq_const %0, dense<[8, 7, 0]> : tensor<3xi32>
  %x1 = stablehlo.constant dense<[true, true, false]> : tensor<3xi1>
  %y1 = stablehlo.constant dense<[true, false, false]> : tensor<3xi1>
  %1 = stablehlo.and %x1, %y1 : tensor<3xi1>
  check.expect_eq_const %1, dense<[true, false, false]> : tensor<3xi1>
  return
}

// -----

func.func @and_c1(%arg0: tensor<2x3xi32>, %arg1: tensor<2x4xi32>) {
  // expected-error @below {{stablehlo.and: operands have different shapes: tensor<2x3xi32> and tensor<2x4xi32> [and_c1]}}
  %0 = stablehlo.and %arg0, %arg1 : (tensor<2x3xi32>, tensor<2x4xi32>) -> tensor<2x3xi32>
  return
}
