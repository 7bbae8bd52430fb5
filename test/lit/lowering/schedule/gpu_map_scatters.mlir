// RUN: hlo-opt --passes=gpu-map-to-grid %s | filecheck %s
// RUN: hlo-opt --passes='gpu-map-to-grid{deterministic=true}' %s | filecheck %s --check-prefix=SAME

// Sums may be rounded in any order, unless results are to be the same in every run.
// CHECK-LABEL: @sums
// CHECK: structured.scatter
// CHECK-SAME: kind = "scatter", vector = 4 : i64}
// SAME-LABEL: @sums
// SAME: structured.scatter
// SAME-SAME: kind = "scatter_in_order"}
structured.kernel @sums(%x: tensor<512xf32>, %i: tensor<4096xi32>, %u: tensor<4096xf32>) -> tensor<512xf32> {
  %r = structured.scatter targets(%x : tensor<512xf32>) indices(%i : tensor<4096xi32>) maps [affine_map<(d0) -> (d0)>] updates(%u : tensor<4096xf32>) dimensions [0] limits [511] offsets affine_map<(d0) -> (0)> -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<512xf32>
}

// Maxima are the same in any order.
// CHECK-LABEL: @maxima
// CHECK: kind = "scatter"}
// SAME-LABEL: @maxima
// SAME: kind = "scatter"}
structured.kernel @maxima(%x: tensor<512xf32>, %i: tensor<64xi32>, %u: tensor<64xf32>) -> tensor<512xf32> {
  %r = structured.scatter targets(%x : tensor<512xf32>) indices(%i : tensor<64xi32>) maps [affine_map<(d0) -> (d0)>] updates(%u : tensor<64xf32>) dimensions [0] limits [511] offsets affine_map<(d0) -> (0)> -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.maximum %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<512xf32>
}

// The last one stays: updates of one element keep their order, by sorting or, of few, by one thread.
// CHECK-LABEL: @last
// CHECK: kind = "scatter_in_order"}
// CHECK-LABEL: @last_of_few
// CHECK: kind = "scatter_by_one"}
// CHECK-LABEL: @unique
// CHECK: kind = "scatter"}
structured.kernel @last(%x: tensor<512xf32>, %i: tensor<64xi32>, %u: tensor<64xf32>) -> tensor<512xf32> {
  %r = structured.scatter targets(%x : tensor<512xf32>) indices(%i : tensor<64xi32>) maps [affine_map<(d0) -> (d0)>] updates(%u : tensor<64xf32>) dimensions [0] limits [511] offsets affine_map<(d0) -> (0)> -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    structured.yield %b : tensor<f32>
  }
  structured.return %r : tensor<512xf32>
}
structured.kernel @last_of_few(%x: tensor<512xf32>, %i: tensor<8xi32>, %u: tensor<8xf32>) -> tensor<512xf32> {
  %r = structured.scatter targets(%x : tensor<512xf32>) indices(%i : tensor<8xi32>) maps [affine_map<(d0) -> (d0)>] updates(%u : tensor<8xf32>) dimensions [0] limits [511] offsets affine_map<(d0) -> (0)> -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    structured.yield %b : tensor<f32>
  }
  structured.return %r : tensor<512xf32>
}
structured.kernel @unique(%x: tensor<512xf32>, %i: tensor<64xi32>, %u: tensor<64xf32>) -> tensor<512xf32> {
  %r = structured.scatter targets(%x : tensor<512xf32>) indices(%i : tensor<64xi32>) maps [affine_map<(d0) -> (d0)>] updates(%u : tensor<64xf32>) dimensions [0] limits [511] offsets affine_map<(d0) -> (0)> unique -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    structured.yield %b : tensor<f32>
  }
  structured.return %r : tensor<512xf32>
}
