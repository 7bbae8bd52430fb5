// RUN: hlo-opt --passes=gpu-map-to-grid,gpu-vectorize %s | filecheck %s

// CHECK-LABEL: @bf16
// CHECK: structured.schedule = {launch = 0 : i64, kind = "elements", vector = 8 : i64}
structured.kernel @bf16(%x: tensor<64x1024xbf16>, %y: tensor<1024xbf16>) -> tensor<64x1024xbf16> {
  %r = structured.map ins(%x, %y : tensor<64x1024xbf16>, tensor<1024xbf16>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<64x1024xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %s = hlo.add %a, %b : tensor<bf16>
    structured.yield %s : tensor<bf16>
  }
  structured.return %r : tensor<64x1024xbf16>
}

// CHECK-LABEL: @odd_rows_stay
// CHECK: structured.schedule = {launch = 0 : i64, kind = "elements"}
structured.kernel @odd_rows_stay(%x: tensor<1024x33xf32>) -> tensor<1024x33xf32> {
  %r = structured.map ins(%x : tensor<1024x33xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<1024x33xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.negate %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<1024x33xf32>
}

// CHECK-LABEL: @reversed_stays
// CHECK: structured.schedule = {launch = 0 : i64, kind = "elements"}
structured.kernel @reversed_stays(%x: tensor<65536xf32>) -> tensor<65536xf32> {
  %r = structured.map ins(%x : tensor<65536xf32>) maps [affine_map<(d0) -> (-d0 + 65535)>] -> tensor<65536xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<65536xf32>
}
