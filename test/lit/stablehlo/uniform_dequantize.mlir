// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Integers back to the real numbers they stand for.
// CHECK-LABEL: func.func @uniform_dequantize(
// CHECK: %0 = stablehlo.uniform_dequantize %arg0 : (tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<4xf32>
// GENERIC-LABEL: sym_name = "uniform_dequantize"
// GENERIC: %{{[0-9]+}} = "stablehlo.uniform_dequantize"(%{{arg[0-9]+}}) : (tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<4xf32>
func.func @uniform_dequantize(%arg0: tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<4xf32> {
  %0 = stablehlo.uniform_dequantize %arg0 : (tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @run() {
  %i = stablehlo.constant dense<[-128, 3, 4, 127]> : tensor<4xi8>
  %0 = stablehlo.bitcast_convert %i : (tensor<4xi8>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>) -> tensor<4xf32>
  check.expect_eq_const %1, dense<[-65.5, 0.0, 0.5, 62.0]> : tensor<4xf32>
  return
}

// -----

func.func @uniform_dequantize_c1(%arg0: tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) {
  // expected-error @below {{stablehlo.uniform_dequantize: result #0 is tensor<3xf32>, but tensor<4xf32> follows from the operands [uniform_dequantize_c1]}}
  %0 = stablehlo.uniform_dequantize %arg0 : (tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<3xf32>
  return
}

// -----

func.func @uniform_dequantize_c2(%arg0: tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) {
  // expected-error @below {{stablehlo.uniform_dequantize: result #0 is tensor<4xf64>, but tensor<4xf32> follows from the operands [uniform_dequantize_c2]}}
  %0 = stablehlo.uniform_dequantize %arg0 : (tensor<4x!quant.uniform<i8:f32, 2.000000e+00>>) -> tensor<4xf64>
  return
}
