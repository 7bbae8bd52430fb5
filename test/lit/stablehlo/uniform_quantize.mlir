// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Real numbers to the nearest integers that stand for them, by one scale and zero point or one for
// each slice; also from one scale to another. Halves go to the even integer, zero point and all.
// CHECK-LABEL: func.func @uniform_quantize(
// CHECK: %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
// GENERIC-LABEL: sym_name = "uniform_quantize"
// GENERIC: %{{[0-9]+}} = "stablehlo.uniform_quantize"(%{{arg[0-9]+}}) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
func.func @uniform_quantize(%arg0: tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>> {
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
}

func.func @run() {
  %x = stablehlo.constant dense<[-1.2, 0.25, 0.75, 2.3, 1000.0, -1000.0]> : tensor<6xf32>
  %0 = stablehlo.uniform_quantize %x : (tensor<6xf32>) -> tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<6xf32>
  check.expect_eq_const %1, dense<[-1.0, 0.5, 0.5, 2.5, 62.0, -65.5]> : tensor<6xf32>
  %2 = stablehlo.uniform_quantize %0 : (tensor<6x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<6x!quant.uniform<i8:f32, 1.000000e+00>>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<6x!quant.uniform<i8:f32, 1.000000e+00>>) -> tensor<6xf32>
  check.expect_eq_const %3, dense<[-1.0, 0.0, 0.0, 2.0, 62.0, -66.0]> : tensor<6xf32>
  %y = stablehlo.constant dense<[[1.4, 2.6], [1.4, 2.6]]> : tensor<2x2xf32>
  %4 = stablehlo.uniform_quantize %y : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32:0, {1.000000e+00, 5.000000e-01}>>
  %5 = stablehlo.uniform_dequantize %4 : (tensor<2x2x!quant.uniform<i8:f32:0, {1.000000e+00, 5.000000e-01}>>) -> tensor<2x2xf32>
  check.expect_eq_const %5, dense<[[1.0, 3.0], [1.5, 2.5]]> : tensor<2x2xf32>
  return
}

// -----

func.func @uniform_quantize_c1(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.uniform_quantize: result #0 is tensor<3x!quant.uniform<i8:f32, 2.000000e+00>>, but tensor<4x!quant.uniform<i8:f32, 2.000000e+00>> follows from the operands [uniform_quantize_c1]}}
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<3x!quant.uniform<i8:f32, 2.000000e+00>>
  return
}

// -----

func.func @uniform_quantize_c2(%arg0: tensor<4xf64>) {
  // expected-error @below {{stablehlo.uniform_quantize: the result expresses f32, not f64 [uniform_quantize_c2]}}
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf64>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
  return
}
