// RUN: hlo-opt --passes=gpu-map-rows %s | filecheck %s

// Several threads fold a row of 1,024 by 16 elements each; what is computed from the fold reads them again.
// CHECK-LABEL: @softmax_like
// CHECK: structured.fold
// CHECK-NOT: structured.schedule
// CHECK: structured.map
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "rows", threads = 128 : i64, vector = 4 : i64, row_threads = 64 : i64, parts = 1 : i64}
structured.kernel @softmax_like(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<512x1024xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [1024] -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.maximum %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%x, %m : tensor<512x1024xf32>, tensor<512xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>] -> tensor<512x1024xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.subtract %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<512x1024xf32>
}

// One long row is shared by blocks.
// CHECK-LABEL: @one_row
// CHECK: structured.fold
// CHECK-SAME: kind = "rows", threads = 1024 : i64, vector = 4 : i64, row_threads = 1024 : i64, parts = 64 : i64
structured.kernel @one_row(%x: tensor<1048576xf32>) -> tensor<f32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<1048576xf32>) maps [affine_map<(d0) -> (d0)>] inits(%zero : tensor<f32>) sizes [1048576] -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<f32>
}

// Another row's fold is read: the row is not enough.
// CHECK-LABEL: @of_another_row
// CHECK-NOT: structured.schedule
structured.kernel @of_another_row(%x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<512x64xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [64] -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%x, %m : tensor<512x64xf32>, tensor<512xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (-d0 + 511)>] -> tensor<512x64xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.subtract %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<512x64xf32>
}
