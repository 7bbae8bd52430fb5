// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Products: integers wrap, infinity times zero is NaN, i1 is `and`.
// CHECK-LABEL: func.func @multiply(
// CHECK: %0 = stablehlo.multiply %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "multiply"
// GENERIC: %{{[0-9]+}} = "stablehlo.multiply"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @multiply(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.multiply %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.5, 0x7F800000, -0.0, 1.0e+30]> : tensor<4xf32>
  %y = stablehlo.constant dense<[-2.0, 0.0, 3.0, 1.0e+30]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %y : tensor<4xf32>
  check.expect_eq_const %0, dense<[-3.0, 0x7FC00000, -0.0, 0x7F800000]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[64, -128, 7]> : tensor<3xi8>
  %y1 = stablehlo.constant dense<[4, -1, -3]> : tensor<3xi8>
  %1 = stablehlo.multiply %x1, %y1 : tensor<3xi8>
  check.expect_eq_const %1, dense<[0, -128, -21]> : tensor<3xi8>
  %x2 = stablehlo.constant dense<[true, true]> : tensor<2xi1>
  %y2 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.multiply %x2, %y2 : tensor<2xi1>
  check.expect_eq_const %2, dense<[false, true]> : tensor<2xi1>
  %x3 = stablehlo.constant dense<[(1.0, 2.0)]> : tensor<1xcomplex<f32>>
  %y3 = stablehlo.constant dense<[(3.0, -1.0)]> : tensor<1xcomplex<f32>>
  %3 = stablehlo.multiply %x3, %y3 : tensor<1xcomplex<f32>>
  check.expect_eq_const %3, dense<[(5.0, 5.0)]> : tensor<1xcomplex<f32>>
  return
}

// -----

func.func @multiply_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.multiply: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [multiply_c1]}}
  %0 = stablehlo.multiply %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
