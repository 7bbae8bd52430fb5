// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A reshape whose shape is computed; here it is known.
// CHECK-LABEL: func.func @dynamic_reshape(
// CHECK: %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
// CHECK-NEXT: %0 = stablehlo.dynamic_reshape %arg0, %c : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "dynamic_reshape"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<[2, 3]> : tensor<2xi64>}> : () -> tensor<2xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.dynamic_reshape"(%{{arg[0-9]+}}, %{{[0-9]+}}) : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
func.func @dynamic_reshape(%arg0: tensor<6xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %arg0, %c : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<6xi32>, tensor<2xi64>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  return
}

// -----

func.func @dynamic_reshape_c1(%arg0: tensor<6xf32>) {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @below {{stablehlo.dynamic_reshape: result #0 is tensor<2x3xf64>, but tensor<2x3xf32> follows from the operands [dynamic_reshape_c1]}}
  %0 = stablehlo.dynamic_reshape %arg0, %c : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf64>
  return
}

// -----

func.func @dynamic_reshape_c2(%arg0: tensor<7xf32>) {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @below {{stablehlo.dynamic_reshape: 7 elements cannot become tensor<2x3xf32> (6 elements) [dynamic_reshape_c2]}}
  %0 = stablehlo.dynamic_reshape %arg0, %c : (tensor<7xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_reshape_c4(%arg0: tensor<6xf32>) {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @below {{stablehlo.dynamic_reshape: result #0 is tensor<6xf32>, but tensor<2x3xf32> follows from the operands [dynamic_reshape_c4]}}
  %0 = stablehlo.dynamic_reshape %arg0, %c : (tensor<6xf32>, tensor<2xi64>) -> tensor<6xf32>
  return
}

// -----

func.func @dynamic_reshape_c3(%arg0: tensor<2x4x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>, %arg1: tensor<3xi64>) {
  // expected-error @below {{stablehlo.dynamic_reshape: 1 elements stand before the quantized dimension, 2 after it [dynamic_reshape_c3]}}
  %0 = stablehlo.dynamic_reshape %arg0, %arg1 : (tensor<2x4x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>, tensor<3xi64>) -> tensor<2x2x2x!quant.uniform<i8:f32:1, {2.000000e+00,3.000000e+00}>>
  return
}
