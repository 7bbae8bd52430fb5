// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Dimensions in another order.
// CHECK-LABEL: func.func @transpose(
// CHECK: %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// GENERIC-LABEL: sym_name = "transpose"
// GENERIC: %{{[0-9]+}} = "stablehlo.transpose"(%{{arg[0-9]+}}) <{permutation = array<i64: 2, 0, 1>}> : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
func.func @transpose(%arg0: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %0, dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
  %y = stablehlo.constant dense<[[[1, 2], [3, 4], [5, 6]]]> : tensor<1x3x2xi32>
  %1 = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<1x3x2xi32>) -> tensor<2x1x3xi32>
  check.expect_eq_const %1, dense<[[[1, 3, 5]], [[2, 4, 6]]]> : tensor<2x1x3xi32>
  return
}

// -----

func.func @transpose_c1(%arg0: tensor<2x3x4xf32>) {
  // expected-error @below {{stablehlo.transpose: result #0 is tensor<4x2x3xf64>, but tensor<4x2x3xf32> follows from the operands [transpose_c1]}}
  %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf64>
  return
}

// -----

func.func @transpose_c2(%arg0: tensor<2x3x4xf32>) {
  // expected-error @below {{stablehlo.transpose: 2, 0, 0 is no permutation of the 3 dimensions [transpose_c2]}}
  %0 = stablehlo.transpose %arg0, dims = [2, 0, 0] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return
}

// -----

func.func @transpose_c3(%arg0: tensor<2x3x4xf32>) {
  // expected-error @below {{stablehlo.transpose: result #0 is tensor<2x4x3xf32>, but tensor<4x2x3xf32> follows from the operands [transpose_c3]}}
  %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  return
}

// -----

func.func @transpose_c4(%arg0: tensor<2x3x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>) {
  // expected-error @below {{stablehlo.transpose: quantized along dimension 0, which is not dimension 0 [transpose_c4]}}
  %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>) -> tensor<?x2x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>
  return
}
