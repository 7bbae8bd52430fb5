// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A convolution whose padding is computed; here it is known.
// CHECK-LABEL: func.func @dynamic_conv(
// CHECK: %c = stablehlo.constant dense<0> : tensor<2x2xi64>
// CHECK-NEXT: %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi64>) -> tensor<2x?x?x6xf32>
// GENERIC-LABEL: sym_name = "dynamic_conv"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<0> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.dynamic_conv"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{[0-9]+}}) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi64>) -> tensor<2x?x?x6xf32>
func.func @dynamic_conv(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x4x6xf32>) -> tensor<2x?x?x6xf32> {
  %c = stablehlo.constant dense<0> : tensor<2x2xi64>
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi64>) -> tensor<2x?x?x6xf32>
  return %0 : tensor<2x?x?x6xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0]]]> : tensor<1x4x1xf32>
  %k = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
  %padding = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi64>
  %0 = "stablehlo.dynamic_conv"(%x, %k, %padding) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x4x1xf32>
  check.expect_eq_const %0, dense<[[[10.0], [21.0], [32.0], [43.0]]]> : tensor<1x4x1xf32>
  return
}

// -----

func.func @dynamic_conv_c1(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x4x6xf32>) {
  %c = stablehlo.constant dense<0> : tensor<2x2xi64>
  // expected-error @below {{stablehlo.dynamic_conv: ranks differ: tensor<2x8x8x4xf32> and tensor<3x4x6xf32> [dynamic_conv_c1]}}
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4xf32>, tensor<3x4x6xf32>, tensor<2x2xi64>) -> tensor<2x?x?x6xf32>
  return
}

// -----

func.func @dynamic_conv_c2(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x4x6xf32>) {
  %c = stablehlo.constant dense<0> : tensor<2x2xi64>
  // expected-error @below {{stablehlo.dynamic_conv: window_strides has 1 entries for 2 window dimensions [dynamic_conv_c2]}}
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi64>) -> tensor<2x?x?x6xf32>
  return
}

// -----

func.func @dynamic_conv_c3(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x4x6xf32>) {
  %c = stablehlo.constant dense<0> : tensor<2x2xi64>
  // expected-error @below {{stablehlo.dynamic_conv: window_strides has 0 [dynamic_conv_c3]}}
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 0>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi64>) -> tensor<2x?x?x6xf32>
  return
}

// -----

func.func @dynamic_conv_c4(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x4x6xf32>) {
  %c = stablehlo.constant dense<0> : tensor<3x2xi64>
  // expected-error @below {{stablehlo.dynamic_conv: padding has shape [3, 2], not [2, 2] [dynamic_conv_c4]}}
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<3x2xi64>) -> tensor<2x?x?x6xf32>
  return
}

// -----

func.func @dynamic_conv_c28(%arg0: tensor<2x8x8x4x!quant.uniform<i8:f32, 2.000000e+00>>, %arg1: tensor<3x3x4x2x!quant.uniform<i8:f32, 2.000000e+00>>) {
  %c = stablehlo.constant dense<0> : tensor<2x2xi64>
  // expected-error @below {{stablehlo.dynamic_conv: rhs is quantized, and lhs just when the result is [dynamic_conv_c28]}}
  %0 = "stablehlo.dynamic_conv"(%arg0, %arg1, %c) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<2x8x8x4x!quant.uniform<i8:f32, 2.000000e+00>>, tensor<3x3x4x2x!quant.uniform<i8:f32, 2.000000e+00>>, tensor<2x2xi64>) -> tensor<2x6x6x2xf32>
  return
}
