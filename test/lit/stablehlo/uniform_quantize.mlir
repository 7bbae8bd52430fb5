// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC

// Real numbers to the integers that stand for them, by scale and zero point.
// CHECK-LABEL: func.func @uniform_quantize(
// CHECK: %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
// GENERIC-LABEL: sym_name = "uniform_quantize"
// GENERIC: %{{[0-9]+}} = "stablehlo.uniform_quantize"(%{{arg[0-9]+}}) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
func.func @uniform_quantize(%arg0: tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>> {
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>
}

// Not executed: HLO has no quantized types, so conversion refuses the op.

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
