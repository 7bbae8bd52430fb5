// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A broadcast whose shape is computed; here it is known.
// CHECK-LABEL: func.func @dynamic_broadcast_in_dim(
// CHECK: %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
// GENERIC-LABEL: sym_name = "dynamic_broadcast_in_dim"
// GENERIC: %{{[0-9]+}} = "stablehlo.dynamic_broadcast_in_dim"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{broadcast_dimensions = array<i64: 0, 1>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>}> : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
func.func @dynamic_broadcast_in_dim(%arg0: tensor<1x3xf32>, %arg1: tensor<2xi64>) -> tensor<?x3xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0, 1] : (tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[1, 1, 1], [2, 2, 2]]> : tensor<2x3xi32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c1(%arg0: tensor<1x3xf32>, %arg1: tensor<2xi64>) {
  // expected-error @below {{stablehlo.dynamic_broadcast_in_dim: element types differ: f32 and f64 [dynamic_broadcast_in_dim_c1]}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf64>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c2(%arg0: tensor<1x3xf32>, %arg1: tensor<2xi64>) {
  // expected-error @below {{stablehlo.dynamic_broadcast_in_dim: 1 broadcast_dimensions for rank 2 [dynamic_broadcast_in_dim_c2]}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c3(%arg0: tensor<1x3xf32>, %arg1: tensor<2xi64>) {
  // expected-error @below {{stablehlo.dynamic_broadcast_in_dim: broadcast_dimensions has 2, which is none of the 2 dimensions of the result [dynamic_broadcast_in_dim_c3]}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0, 2] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c4(%arg0: tensor<1x3xf32>, %arg1: tensor<2xi64>) {
  // expected-error @below {{stablehlo.dynamic_broadcast_in_dim: broadcast_dimensions has duplicates: 1, 1 [dynamic_broadcast_in_dim_c4]}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [1, 1] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
  return
}

// -----

func.func @dynamic_broadcast_in_dim_c6(%arg0: tensor<2x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>, %arg1: tensor<2xi64>) {
  // expected-error @below {{stablehlo.dynamic_broadcast_in_dim: the result is quantized along 1, not along 0 [dynamic_broadcast_in_dim_c6]}}
  %0 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg1, dims = [0] : (tensor<2x!quant.uniform<i8:f32:0, {2.000000e+00,3.000000e+00}>>, tensor<2xi64>) -> tensor<2x2x!quant.uniform<i8:f32:1, {2.000000e+00,3.000000e+00}>>
  return
}
