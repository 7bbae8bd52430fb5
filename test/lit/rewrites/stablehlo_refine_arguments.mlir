// RUN: hlo-opt --passes='stablehlo-refine-arguments{types="tensor<6x4xf32>,tensor<f32>"},stablehlo-refine-shapes' %s | filecheck %s
// RUN: not hlo-opt --passes='stablehlo-refine-arguments{types="tensor<6x5xf32>,tensor<f32>"}' %s 2>&1 | filecheck %s --check-prefix=WRONG

// WRONG: error[HLO0429]: argument 0 is tensor<?x4xf32>, which a tensor<6x5xf32> is not

// CHECK: func.func @main(%arg0: tensor<6x4xf32>, %arg1: tensor<f32>) -> tensor<6x4xf32>
// CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
// CHECK: %[[S:.*]] = stablehlo.add %arg0, %[[B]] : tensor<6x4xf32>
// CHECK: return %[[S]]
func.func @main(%x: tensor<?x4xf32>, %y: tensor<f32>) -> tensor<?x4xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %one = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %shape = stablehlo.concatenate %one, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %y, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
  %s = stablehlo.add %x, %b : tensor<?x4xf32>
  return %s : tensor<?x4xf32>
}
