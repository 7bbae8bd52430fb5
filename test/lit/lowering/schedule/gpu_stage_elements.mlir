// RUN: hlo-opt --passes=gpu-map-to-grid,gpu-stage-elements %s | filecheck %s

// CHECK-LABEL: @pad_within_sectors
// CHECK: structured.schedule = {launch = 0 : i64, kind = "staged_elements", threads = 256 : i64, tile = array<i64: 8, 128>}
structured.kernel @pad_within_sectors(%x: tensor<300x120xf32>) -> tensor<304x128xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %r = structured.assemble pieces(%x : tensor<300x120xf32>) fill(%zero : tensor<f32>) offsets [array<i64: 2, 4>] strides [array<i64: 1, 1>] -> tensor<304x128xf32>
  structured.return %r : tensor<304x128xf32>
}

// CHECK-LABEL: @windows_overlap
// CHECK: kind = "staged_elements"
structured.kernel @windows_overlap(%x: tensor<100x1000xf32>, %z: tensor<f32>) -> tensor<100x996xf32> {
  %r = structured.fold ins(%x : tensor<100x1000xf32>) maps [affine_map<(d0, d1, d2) -> (d0, d1 + d2)>] inits(%z : tensor<f32>) sizes [5] -> tensor<100x996xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<100x996xf32>
}

// CHECK-LABEL: @whole_sectors_stay
// CHECK: structured.schedule = {launch = 0 : i64, kind = "elements"}
structured.kernel @whole_sectors_stay(%x: tensor<64x1024xf32>, %y: tensor<1024xf32>) -> tensor<64x1024xf32> {
  %r = structured.map ins(%x, %y : tensor<64x1024xf32>, tensor<1024xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<64x1024xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<64x1024xf32>
}
