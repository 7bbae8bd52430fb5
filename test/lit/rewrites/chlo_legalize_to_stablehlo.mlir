// RUN: hlo-opt --passes=chlo-legalize-to-stablehlo --split-input-file %s | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[ONE:%[a-z0-9_]+]] = stablehlo.constant dense<1.000000e+00>
// CHECK: stablehlo.atan2 %arg0, [[ONE]]
// CHECK-NOT: chlo.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.atan %x : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Narrow floats go through f32.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.convert %arg0 : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: stablehlo.convert %{{[0-9]+}} : (tensor<4xf32>) -> tensor<4xbf16>
func.func @main(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = chlo.lgamma %x : tensor<4xbf16> -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// Broadcasting ops bring their operands to one shape.
// CHECK-LABEL: func.func @main
// CHECK: [[B:%[0-9]+]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
// CHECK: stablehlo.add %arg0, [[B]] : tensor<2x3xf32>
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = chlo.broadcast_add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// What HLO has an instruction for stays.
// CHECK-LABEL: func.func @main
// CHECK: chlo.erf
// CHECK: chlo.top_k
func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  %1, %2 = chlo.top_k(%0, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return %1 : tensor<2xf32>
}
