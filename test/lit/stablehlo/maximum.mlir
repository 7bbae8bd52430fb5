// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The larger one; NaN wins, i1 is `or`.
// CHECK-LABEL: func.func @maximum(
// CHECK: %0 = stablehlo.maximum %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "maximum"
// GENERIC: %{{[0-9]+}} = "stablehlo.maximum"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @maximum(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.maximum %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 0x7FC00000, 0xFF800000, -0.0]> : tensor<4xf32>
  %y = stablehlo.constant dense<[2.0, 1.0, 5.0, 0.0]> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %y : tensor<4xf32>
  check.expect_eq_const %0, dense<[2.0, 0x7FC00000, 5.0, 0.0]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[-1, 127]> : tensor<2xi8>
  %y1 = stablehlo.constant dense<[1, -128]> : tensor<2xi8>
  %1 = stablehlo.maximum %x1, %y1 : tensor<2xi8>
  check.expect_eq_const %1, dense<[1, 127]> : tensor<2xi8>
  %x2 = stablehlo.constant dense<[255]> : tensor<1xui8>
  %y2 = stablehlo.constant dense<[1]> : tensor<1xui8>
  %2 = stablehlo.maximum %x2, %y2 : tensor<1xui8>
  check.expect_eq_const %2, dense<[255]> : tensor<1xui8>
  %x3 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %y3 = stablehlo.constant dense<[false, false]> : tensor<2xi1>
  %3 = stablehlo.maximum %x3, %y3 : tensor<2xi1>
  check.expect_eq_const %3, dense<[true, false]> : tensor<2xi1>
  return
}

// -----

func.func @maximum_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.maximum: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [maximum_c1]}}
  %0 = stablehlo.maximum %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
