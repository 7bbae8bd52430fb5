// RUN: hlo-opt --passes=gpu-map-columns %s | filecheck %s

// CHECK-LABEL: @columns
// CHECK: structured.fold
// CHECK-SAME: kind = "columns", threads = 256 : i64, vector = 4 : i64, row_threads = 8 : i64, parts = 64 : i64
structured.kernel @columns(%x: tensor<4096x512xf32>) -> tensor<512xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<4096x512xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] inits(%zero : tensor<f32>) sizes [4096] -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<512xf32>
}

// CHECK-LABEL: @rows_stay
// CHECK-NOT: structured.schedule
structured.kernel @rows_stay(%x: tensor<512x4096xf32>) -> tensor<512xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<512x4096xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [4096] -> tensor<512xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<512xf32>
}
