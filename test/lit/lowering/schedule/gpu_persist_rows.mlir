// RUN: hlo-opt --passes=gpu-map-rows,gpu-stage-rows,gpu-persist-rows %s | filecheck %s

// Four blocks of four rows at once read the scales four times, 64 blocks would read them 64 times.
// CHECK-LABEL: @scaled
// CHECK: kind = "rows", threads = 1024 : i64, vector = 4 : i64, row_threads = 256 : i64, parts = 1 : i64, rounds = 4 : i64
structured.kernel @scaled(%x: tensor<64x1024xf32>, %s: tensor<1024xf32>) -> tensor<64x1024xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %t = structured.fold ins(%x : tensor<64x1024xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [1024] -> tensor<64xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  %r = structured.map ins(%x, %t, %s : tensor<64x1024xf32>, tensor<64xf32>, tensor<1024xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>] -> tensor<64x1024xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
    %d = hlo.divide %a, %b : tensor<f32>
    %e = hlo.multiply %d, %c : tensor<f32>
    structured.yield %e : tensor<f32>
  }
  structured.return %r : tensor<64x1024xf32>
}

// CHECK-LABEL: @nothing_alike
// CHECK-NOT: rounds
structured.kernel @nothing_alike(%x: tensor<64x1024xf32>) -> tensor<64xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %t = structured.fold ins(%x : tensor<64x1024xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [1024] -> tensor<64xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %t : tensor<64xf32>
}
