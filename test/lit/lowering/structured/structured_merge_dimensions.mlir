// RUN: hlo-opt --passes=structured-merge-dimensions %s | filecheck %s

// Neighbours go together where every read goes on from one to the next; dimensions of one element go.
// CHECK-LABEL: structured.kernel @rows(%x: tensor<32x16xf32>, %y: tensor<16xf32>) -> tensor<32x16xf32>
// CHECK-NEXT: structured.map ins(%x, %y : tensor<32x16xf32>, tensor<16xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<32x16xf32>
structured.kernel @rows(%x: tensor<4x8x1x16xf32>, %y: tensor<16xf32>) -> tensor<4x8x1x16xf32> {
  %r = structured.map ins(%x, %y : tensor<4x8x1x16xf32>, tensor<16xf32>) maps [affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>] -> tensor<4x8x1x16xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4x8x1x16xf32>
}

// An index keeps its dimension, a transpose both of its own.
// CHECK-LABEL: structured.kernel @indices(%x: tensor<4x8x16xf32>) -> tensor<8x4x16xf32>
// CHECK: structured.index 1
structured.kernel @indices(%x: tensor<4x8x4x4xf32>) -> tensor<8x4x4x4xf32> {
  %r = structured.map ins(%x : tensor<4x8x4x4xf32>) maps [affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>] -> tensor<8x4x4x4xf32> {
  ^bb0(%a: tensor<f32>):
    %i = structured.index 1 : tensor<i32>
    %f = hlo.convert %i : tensor<f32>
    %s = hlo.add %a, %f : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<8x4x4x4xf32>
}

// Pieces: offsets count whole inner dimensions.
// CHECK-LABEL: structured.kernel @pieces(%x: tensor<2x24xf32>, %y: tensor<2x8xf32>) -> tensor<2x32xf32>
// CHECK-NEXT: structured.assemble
// CHECK-SAME: offsets [array<i64: 0, 0>, array<i64: 0, 24>]
structured.kernel @pieces(%x: tensor<2x3x8xf32>, %y: tensor<2x1x8xf32>) -> tensor<2x4x8xf32> {
  %r = structured.assemble pieces(%x, %y : tensor<2x3x8xf32>, tensor<2x1x8xf32>) offsets [array<i64: 0, 0, 0>, array<i64: 0, 3, 0>] strides [array<i64: 1, 1, 1>, array<i64: 1, 1, 1>] -> tensor<2x4x8xf32>
  structured.return %r : tensor<2x4x8xf32>
}

// One that has one element along a dimension is viewed with it.
// CHECK-LABEL: structured.kernel @column(%x: tensor<8x4xf32>, %y: tensor<8xf32>) -> tensor<8x5xf32>
// CHECK-NEXT: [[Y:%.*]] = structured.map ins(%y : tensor<8xf32>) maps [affine_map<(d0, d1) -> (d0)>] -> tensor<8x1xf32>
// CHECK: structured.assemble pieces(%x, [[Y]] : tensor<8x4xf32>, tensor<8x1xf32>)
structured.kernel @column(%x: tensor<8x4xf32>, %y: tensor<8x1xf32>) -> tensor<8x5xf32> {
  %r = structured.assemble pieces(%x, %y : tensor<8x4xf32>, tensor<8x1xf32>) offsets [array<i64: 0, 0>, array<i64: 0, 4>] strides [array<i64: 1, 1>, array<i64: 1, 1>] -> tensor<8x5xf32>
  structured.return %r : tensor<8x5xf32>
}

// Lines that are gathered stay lines.
// CHECK-LABEL: structured.kernel @lines(%x: tensor<100x64xf32>, %i: tensor<30xi32>) -> tensor<30x64xf32>
// CHECK: dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)>
structured.kernel @lines(%x: tensor<100x8x8xf32>, %i: tensor<5x6xi32>) -> tensor<5x6x8x8xf32> {
  %r = structured.gather %x : tensor<100x8x8xf32> indices(%i : tensor<5x6xi32>) maps [affine_map<(d0, d1, d2, d3) -> (d0, d1)>] dimensions [0] limits [99] offsets affine_map<(d0, d1, d2, d3) -> (0, d2, d3)> -> tensor<5x6x8x8xf32>
  structured.return %r : tensor<5x6x8x8xf32>
}

// Other ops tell dimensions apart: their kernels stay.
// CHECK-LABEL: structured.kernel @fold(%x: tensor<4x8xf32>)
structured.kernel @fold(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %z = hlo.constant "0" : tensor<f32>
  %r = structured.fold ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%z : tensor<f32>) sizes [8] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %n = hlo.add %a, %s : tensor<f32>
    structured.yield %n : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}

// What a reshape takes apart is one again; the rows of a slice go together behind the first.
// CHECK-LABEL: structured.kernel @reshape(%x: tensor<24xf32>) -> tensor<24xf32>
// CHECK-NEXT: maps [affine_map<(d0) -> (d0)>]
structured.kernel @reshape(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %r = structured.map ins(%x : tensor<4x6xf32>) maps [affine_map<(d0) -> (d0 floordiv 6, d0 mod 6)>] -> tensor<24xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<24xf32>
}
// CHECK-LABEL: structured.kernel @slice(%x: tensor<35xf32>, %y: tensor<20xf32>) -> tensor<20xf32>
// CHECK-NEXT: maps [affine_map<(d0) -> ({{.*}}d0 + 10){{.*}}, affine_map<(d0) -> (d0)>]
structured.kernel @slice(%x: tensor<7x5xf32>, %y: tensor<20xf32>) -> tensor<4x5xf32> {
  %r = structured.map ins(%x, %y : tensor<7x5xf32>, tensor<20xf32>) maps [affine_map<(d0, d1) -> (d0 + 2, d1)>, affine_map<(d0, d1) -> (d0 * 5 + d1)>] -> tensor<4x5xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4x5xf32>
}
