// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Differences: integers wrap, equal infinities give NaN.
// CHECK-LABEL: func.func @subtract(
// CHECK: %0 = stablehlo.subtract %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "subtract"
// GENERIC: %{{[0-9]+}} = "stablehlo.subtract"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @subtract(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.subtract %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 0x7F800000, 0.0]> : tensor<3xf32>
  %y = stablehlo.constant dense<[2.5, 0x7F800000, 0.0]> : tensor<3xf32>
  %0 = stablehlo.subtract %x, %y : tensor<3xf32>
  check.expect_eq_const %0, dense<[-1.5, 0x7FC00000, 0.0]> : tensor<3xf32>
  %x1 = stablehlo.constant dense<[-128, 5]> : tensor<2xi8>
  %y1 = stablehlo.constant dense<[1, 7]> : tensor<2xi8>
  %1 = stablehlo.subtract %x1, %y1 : tensor<2xi8>
  check.expect_eq_const %1, dense<[127, -2]> : tensor<2xi8>
  %x2 = stablehlo.constant dense<[0, 5]> : tensor<2xui8>
  %y2 = stablehlo.constant dense<[1, 3]> : tensor<2xui8>
  %2 = stablehlo.subtract %x2, %y2 : tensor<2xui8>
  check.expect_eq_const %2, dense<[255, 2]> : tensor<2xui8>
  return
}

// -----

func.func @subtract_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.subtract: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [subtract_c1]}}
  %0 = stablehlo.subtract %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
