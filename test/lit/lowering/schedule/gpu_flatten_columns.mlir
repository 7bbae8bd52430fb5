// RUN: hlo-opt --passes=gpu-map-columns,gpu-flatten-columns %s | filecheck %s

// Eight rows of 132 bytes are 33 sectors.
// CHECK-LABEL: @odd_columns
// CHECK: kind = "flat_columns", threads = {{[0-9]+}} : i64, vector = 4 : i64, row_threads = {{8|16|32}} : i64
structured.kernel @odd_columns(%x: tensor<500x33xf32>) -> tensor<33xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<500x33xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] inits(%zero : tensor<f32>) sizes [500] -> tensor<33xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<33xf32>
}

// CHECK-LABEL: @whole_sectors
// CHECK: kind = "columns"
structured.kernel @whole_sectors(%x: tensor<500x32xf32>) -> tensor<32xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %m = structured.fold ins(%x : tensor<500x32xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] inits(%zero : tensor<f32>) sizes [500] -> tensor<32xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %m : tensor<32xf32>
}
