// RUN: hlo-opt --passes=gpu-map-to-grid %s | filecheck %s

// A slice of an operand that is replaced is a launch of the slice alone: the operand's buffer becomes the result's.
// CHECK-LABEL: @row
// CHECK: structured.assemble
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "update"}
structured.kernel @row(%x: tensor<8x4xf32>, %r: tensor<1x4xf32>, %i: tensor<i32>) -> tensor<8x4xf32> {
  %u = structured.assemble pieces(%x, %r : tensor<8x4xf32>, tensor<1x4xf32>) indices(%i : tensor<i32>) offsets [array<i64: 0, 0>, array<i64: -9223372036854775808, 0>] strides [array<i64: 1, 1>, array<i64: 1, 1>] -> tensor<8x4xf32>
  structured.return %u : tensor<8x4xf32>
}

// Of a slice that is made of another one, it comes to memory before.
// CHECK-LABEL: @of_another
// CHECK: structured.gather
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "elements"}
// CHECK: structured.assemble
// CHECK-SAME: structured.schedule = {launch = 1 : i64, kind = "update"}
structured.kernel @of_another(%x: tensor<8x4xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<8x4xf32> {
  %r = structured.gather %x : tensor<8x4xf32> indices(%j : tensor<i32>) maps [affine_map<(d0, d1) -> ()>] dimensions [0] limits [7] offsets affine_map<(d0, d1) -> (0, d1)> -> tensor<1x4xf32>
  %u = structured.assemble pieces(%x, %r : tensor<8x4xf32>, tensor<1x4xf32>) indices(%i : tensor<i32>) offsets [array<i64: 0, 0>, array<i64: -9223372036854775808, 0>] strides [array<i64: 1, 1>, array<i64: 1, 1>] -> tensor<8x4xf32>
  structured.return %u : tensor<8x4xf32>
}

// What is read after the slice is replaced has to stay, as have results that are no operand at first.
// CHECK-LABEL: @read_later
// CHECK: structured.assemble
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "elements"}
structured.kernel @read_later(%x: tensor<8xf32>, %r: tensor<1xf32>, %i: tensor<i32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %u = structured.assemble pieces(%x, %r : tensor<8xf32>, tensor<1xf32>) indices(%i : tensor<i32>) offsets [array<i64: 0>, array<i64: -9223372036854775808>] strides [array<i64: 1>, array<i64: 1>] -> tensor<8xf32>
  %h = structured.map ins(%x : tensor<8xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.abs %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %u, %h : tensor<8xf32>, tensor<4xf32>
}
