// RUN: hlo-opt --passes=gpu-map-rows,gpu-stage-rows %s | filecheck %s

// Rows of 48 bytes: 16 of them, of two threads each, fill whole sectors.
// CHECK-LABEL: @short_rows
// CHECK: structured.fold
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "staged_rows", threads = 32 : i64, row_threads = 2 : i64}
structured.kernel @short_rows(%x: tensor<300x12xf32>) -> tensor<300xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<300x12xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [12] -> tensor<300xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<300xf32>
}

// Long rows waste little when each is read alone.
// CHECK-LABEL: @long_rows
// CHECK: structured.fold
// CHECK-SAME: kind = "rows"
structured.kernel @long_rows(%x: tensor<300x4000xf32>) -> tensor<300xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<300x4000xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [4000] -> tensor<300xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<300xf32>
}
