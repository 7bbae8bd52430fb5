// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The same elements in the same order in another shape.
// CHECK-LABEL: func.func @reshape(
// CHECK: %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
// GENERIC-LABEL: sym_name = "reshape"
// GENERIC: %{{[0-9]+}} = "stablehlo.reshape"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<3x2xf32>
func.func @reshape(%arg0: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %0 = stablehlo.reshape %x : (tensor<2x3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %0, dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %one = stablehlo.constant dense<[[7]]> : tensor<1x1xi32>
  %1 = stablehlo.reshape %one : (tensor<1x1xi32>) -> tensor<i32>
  check.expect_eq_const %1, dense<7> : tensor<i32>
  return
}

// -----

func.func @reshape_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.reshape: element types differ: f32 and f64 [reshape_c1]}}
  %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf64>
  return
}

// -----

func.func @reshape_c2(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.reshape: 6 elements cannot become tensor<3x3xf32> (9 elements) [reshape_c2]}}
  %0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @reshape_c3(%arg0: tensor<2x4x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>) {
  // expected-error @below {{stablehlo.reshape: 1 elements stand before the quantized dimension, 2 after it [reshape_c3]}}
  %0 = stablehlo.reshape %arg0 : (tensor<2x4x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>) -> tensor<2x2x2x!quant.uniform<i8:f32:1, {2.000000e+00,3.000000e+00}>>
  return
}
