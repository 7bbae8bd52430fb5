// RUN: hlo-opt --passes=gpu-map-to-grid,gpu-map-transposes %s | filecheck %s

// CHECK-LABEL: @transposed
// CHECK: structured.schedule = {launch = 0 : i64, kind = "transpose", threads = 256 : i64, row_threads = 32 : i64, column_threads = 32 : i64, tile = array<i64: 32, 32>, pitches = array<i64: 1, 33>}
structured.kernel @transposed(%x: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %r = structured.map ins(%x : tensor<64x48xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<48x64xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<48x64xf32>
}

// CHECK-LABEL: @outer_dimensions_stay
// CHECK: kind = "elements"
structured.kernel @outer_dimensions_stay(%x: tensor<64x48x32xf32>) -> tensor<48x64x32xf32> {
  %r = structured.map ins(%x : tensor<64x48x32xf32>) maps [affine_map<(d0, d1, d2) -> (d1, d0, d2)>] -> tensor<48x64x32xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<48x64x32xf32>
}

// Rows of 36 bytes end within sectors: boxes of neighbours in both memories.
// CHECK-LABEL: @rows_within_sectors
// CHECK: kind = "transpose", {{.*}}, tile = array<i64: {{[0-9]+}}, {{[0-9]+}}, 9>
structured.kernel @rows_within_sectors(%x: tensor<64x48x9xf32>) -> tensor<48x64x9xf32> {
  %r = structured.map ins(%x : tensor<64x48x9xf32>) maps [affine_map<(d0, d1, d2) -> (d1, d0, d2)>] -> tensor<48x64x9xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<48x64x9xf32>
}

// Both rows and columns end within sectors, and no padding keeps both ways of bytes apart: two arrays.
// CHECK-LABEL: @two_arrays
// CHECK: kind = "transpose", {{.*}}, tile = array<i64: 47, 33>, pitches = array<i64: {{[0-9]+}}, {{[0-9]+}}>, written = array<i64: {{[0-9]+}}, {{[0-9]+}}>, lanes = array<i64: {{[0-9]+}}, {{[0-9]+}}>, lines = 47 : i64}
structured.kernel @two_arrays(%x: tensor<33x47xi8>) -> tensor<47x33xi8> {
  %r = structured.map ins(%x : tensor<33x47xi8>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<47x33xi8> {
  ^bb0(%a: tensor<i8>):
    structured.yield %a : tensor<i8>
  }
  structured.return %r : tensor<47x33xi8>
}
