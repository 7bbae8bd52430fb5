// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Sums: integers wrap, quantized ones stay at their bounds, opposite infinities give NaN, i1 is `or`.
// CHECK-LABEL: func.func @add(
// CHECK: %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "add"
// GENERIC: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @add(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @add_2(
// CHECK: %0 = stablehlo.add %arg0, %arg1 : tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>
// GENERIC-LABEL: sym_name = "add_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>, tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>
func.func @add_2(%arg0: tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>, %arg1: tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>
  return %0 : tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, -0.0, 0x7F800000, 3.0e+38]> : tensor<4xf32>
  %y = stablehlo.constant dense<[2.0, -0.0, 0xFF800000, 3.0e+38]> : tensor<4xf32>
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  check.expect_eq_const %0, dense<[3.0, -0.0, 0x7FC00000, 0x7F800000]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[127, -128, 5]> : tensor<3xi8>
  %y1 = stablehlo.constant dense<[1, -1, -7]> : tensor<3xi8>
  %1 = stablehlo.add %x1, %y1 : tensor<3xi8>
  check.expect_eq_const %1, dense<[-128, 127, -2]> : tensor<3xi8>
  %x2 = stablehlo.constant dense<[true, true, false]> : tensor<3xi1>
  %y2 = stablehlo.constant dense<[true, false, false]> : tensor<3xi1>
  %2 = stablehlo.add %x2, %y2 : tensor<3xi1>
  check.expect_eq_const %2, dense<[true, true, false]> : tensor<3xi1>
  %u = stablehlo.constant dense<[1.0, 60.0]> : tensor<2xf32>
  %v = stablehlo.constant dense<[0.5, 10.0]> : tensor<2xf32>
  %p = stablehlo.uniform_quantize %u : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %q = stablehlo.uniform_quantize %v : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %3 = stablehlo.add %p, %q : tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %4 = stablehlo.uniform_dequantize %3 : (tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<2xf32>
  check.expect_eq_const %4, dense<[1.5, 62.0]> : tensor<2xf32>
  return
}

// -----

func.func @add_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.add: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [add_c1]}}
  %0 = stablehlo.add %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @add_c2(%arg0: tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>, %arg1: tensor<2x2xf32>) {
  // expected-error @below {{stablehlo.add: operands and result are all quantized or none is: !quant.uniform<i8:f32, 2.000000e+00> and f32 and !quant.uniform<i8:f32, 2.000000e+00> [add_c2]}}
  %0 = stablehlo.add %arg0, %arg1 : (tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>, tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 2.000000e+00>>
  return
}
