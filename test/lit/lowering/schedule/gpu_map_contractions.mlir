// RUN: hlo-opt --passes=gpu-map-to-grid,gpu-map-contractions %s | filecheck %s

// CHECK-LABEL: @bf16
// CHECK: structured.contract
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "mma", threads = 128 : i64}
structured.kernel @bf16(%x: tensor<64x64xbf16>, %y: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %r = structured.contract ins(%x, %y : tensor<64x64xbf16>, tensor<64x64xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [64] accumulator f32 -> tensor<64x64xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<64x64xbf16>
}

// CHECK-LABEL: @f32
// CHECK: structured.contract
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "tiles", threads = 256 : i64}
structured.kernel @f32(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = structured.contract ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [64] accumulator f32 -> tensor<64x64xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    structured.yield %a, %b : tensor<f32>, tensor<f32>
  }
  structured.return %r : tensor<64x64xf32>
}

// CHECK-LABEL: @few_columns_stay
// CHECK: structured.contract
// CHECK-SAME: kind = "elements"
structured.kernel @few_columns_stay(%x: tensor<64x64xf32>, %y: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %r = structured.contract ins(%x, %y : tensor<64x64xf32>, tensor<64x2xf32>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [64] accumulator f32 -> tensor<64x2xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    structured.yield %a, %b : tensor<f32>, tensor<f32>
  }
  structured.return %r : tensor<64x2xf32>
}
