// RUN: hlo-opt --passes=stablehlo-legalize-quant-to-math --split-input-file %s | filecheck %s

// Half to even, after clamping to what is stored.
// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<4xi8>
// CHECK: [[D:%[0-9]+]] = stablehlo.divide %arg0, {{%[a-z0-9_]+}} : tensor<4xf32>
// CHECK: [[A:%[0-9]+]] = stablehlo.add [[D]], {{%[a-z0-9_]+}} : tensor<4xf32>
// CHECK: [[C:%[0-9]+]] = stablehlo.clamp {{%[a-z0-9_]+}}, [[A]], {{%[a-z0-9_]+}}
// CHECK: [[R:%[0-9]+]] = stablehlo.round_nearest_even [[C]] : tensor<4xf32>
// CHECK: stablehlo.convert [[R]] : (tensor<4xf32>) -> tensor<4xi8>
func.func @main(%x: tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>> {
  %0 = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
}

// -----

// Scales by axis.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xi8>) -> tensor<4x2xf32>
// CHECK: stablehlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
// CHECK: stablehlo.broadcast_in_dim %{{[a-z0-9_]+}}, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
// CHECK-NOT: quant
func.func @main(%x: tensor<4x2x!quant.uniform<i8:f32:1, {0.5:3, 0.25}>>) -> tensor<4x2xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<4x2x!quant.uniform<i8:f32:1, {0.5:3, 0.25}>>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Products are accumulated in 32 bits; a scale of 1 keeps them integers.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xi8>, %arg1: tensor<2x3xi8>) -> tensor<4x3xi32>
// CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x2xi8>, tensor<2x3xi8>) -> tensor<4x3xi32>
// CHECK-NOT: f32
func.func @main(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>, %y: tensor<2x3x!quant.uniform<i8:f32, 0.25>>) -> tensor<4x3x!quant.uniform<i32:f32, 0.125>> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x3x!quant.uniform<i8:f32, 0.25>>) -> tensor<4x3x!quant.uniform<i32:f32, 0.125>>
  return %0 : tensor<4x3x!quant.uniform<i32:f32, 0.125>>
}

// -----

// What only moves elements stays, on what is stored.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x2xi8>) -> tensor<2x4xi8>
// CHECK-NEXT: stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x2xi8>) -> tensor<2x4xi8>
// CHECK-NEXT: return
func.func @main(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4x!quant.uniform<i8:f32, 0.5>> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x4x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<2x4x!quant.uniform<i8:f32, 0.5>>
}
