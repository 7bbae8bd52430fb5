// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Dimensions of the operand go where they are told; those of size one are repeated.
// CHECK-LABEL: func.func @broadcast_in_dim(
// CHECK: %0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 0] : (tensor<1x3xf32>) -> tensor<3x4x5xf32>
// GENERIC-LABEL: sym_name = "broadcast_in_dim"
// GENERIC: %{{[0-9]+}} = "stablehlo.broadcast_in_dim"(%{{arg[0-9]+}}) <{broadcast_dimensions = array<i64: 2, 0>}> : (tensor<1x3xf32>) -> tensor<3x4x5xf32>
func.func @broadcast_in_dim(%arg0: tensor<1x3xf32>) -> tensor<3x4x5xf32> {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 0] : (tensor<1x3xf32>) -> tensor<3x4x5xf32>
  return %0 : tensor<3x4x5xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3]]> : tensor<1x3xi32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<1x3xi32>) -> tensor<3x2x2xi32>
  check.expect_eq_const %0, dense<[[[1, 1], [1, 1]], [[2, 2], [2, 2]], [[3, 3], [3, 3]]]> : tensor<3x2x2xi32>
  %s = stablehlo.constant dense<-0.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2xf32>
  check.expect_eq_const %1, dense<[-0.0, -0.0]> : tensor<2xf32>
  return
}

// -----

func.func @broadcast_in_dim_c1(%arg0: tensor<1x3xf32>) {
  // expected-error @below {{stablehlo.broadcast_in_dim: element types differ: f32 and f64 [broadcast_in_dim_c1]}}
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 0] : (tensor<1x3xf32>) -> tensor<3x4x5xf64>
  return
}

// -----

func.func @broadcast_in_dim_c2(%arg0: tensor<1x3xf32>) {
  // expected-error @below {{stablehlo.broadcast_in_dim: broadcast_dimensions has 1 entries for an operand of rank 2 [broadcast_in_dim_c2]}}
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<1x3xf32>) -> tensor<3x4x5xf32>
  return
}

// -----

func.func @broadcast_in_dim_c3(%arg0: tensor<1x3xf32>) {
  // expected-error @below {{stablehlo.broadcast_in_dim: broadcast_dimensions has 3, which is none of the 3 dimensions of the result [broadcast_in_dim_c3]}}
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [3, 0] : (tensor<1x3xf32>) -> tensor<3x4x5xf32>
  return
}

// -----

func.func @broadcast_in_dim_c4(%arg0: tensor<1x3xf32>) {
  // expected-error @below {{stablehlo.broadcast_in_dim: broadcast_dimensions has duplicates: 0, 0 [broadcast_in_dim_c4]}}
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 0] : (tensor<1x3xf32>) -> tensor<3x4x5xf32>
  return
}

// -----

func.func @broadcast_in_dim_c6(%arg0: tensor<2x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>) {
  // expected-error @below {{stablehlo.broadcast_in_dim: the result is quantized along 1, not along 0 [broadcast_in_dim_c6]}}
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<2x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {2.000000e+00,3.000000e+00}>>
  return
}
