// RUN: hlo-opt --passes=gpu-map-to-grid,gpu-map-contractions %s | filecheck %s
// RUN: hlo-opt --passes='gpu-map-to-grid,gpu-map-contractions{tf32=true}' %s | filecheck %s --check-prefix=TF32
// RUN: hlo-opt --passes='gpu-map-to-grid,gpu-map-contractions{gpu=a100}' %s | filecheck %s --check-prefix=A100

// TF32-LABEL: @f32
// TF32: kind = "{{w?g?}}mma"
// TF32-SAME: format = "tf32"

// Warp groups are those of sm_90a.
// CHECK-LABEL: @bf16
// CHECK: kind = "wgmma", threads = 160 : i64, rows = 64 : i64, columns = 64 : i64, terms = 64 : i64, stages = 1 : i64
// A100-LABEL: @bf16
// A100: structured.contract
// A100-SAME: structured.schedule = {launch = 0 : i64, kind = "mma", threads = 128 : i64, rows = 64 : i64, columns = 64 : i64, terms = 64 : i64, stages = 1 : i64, warps_down = 2 : i64}
structured.kernel @bf16(%x: tensor<64x64xbf16>, %y: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %r = structured.contract ins(%x, %y : tensor<64x64xbf16>, tensor<64x64xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [64] accumulator f32 -> tensor<64x64xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<64x64xbf16>
}

// CHECK-LABEL: @f32
// CHECK: structured.contract
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "tiles", threads = 256 : i64, rows = 64 : i64, columns = 64 : i64, terms = 16 : i64, stages = 4 : i64, warps_down = 2 : i64}
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

// Terms come in stages; less shared memory has fewer terms of each.
// CHECK-LABEL: @deep
// CHECK: kind = "wgmma", threads = 288 : i64, rows = 128 : i64, columns = 256 : i64, terms = 64 : i64, stages = 2 : i64
// A100-LABEL: @deep
// A100: kind = "mma", threads = 256 : i64, rows = 128 : i64, columns = 128 : i64, terms = 32 : i64, stages = 4 : i64
structured.kernel @deep(%x: tensor<4096x4096xbf16>, %y: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %r = structured.contract ins(%x, %y : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [4096] accumulator f32 -> tensor<4096x4096xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<4096x4096xbf16>
}

// Bytes are multiplied by matrix units; those of f8 came with sm_89.
// CHECK-LABEL: @s8
// CHECK: kind = "wgmma"
// A100-LABEL: @s8
// A100: kind = "mma"
structured.kernel @s8(%x: tensor<64x64xi8>, %y: tensor<64x64xi8>) -> tensor<64x64xi32> {
  %r = structured.contract ins(%x, %y : tensor<64x64xi8>, tensor<64x64xi8>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>] sizes [64] accumulator i32 -> tensor<64x64xi32> {
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    structured.yield %a, %b : tensor<i8>, tensor<i8>
  }
  structured.return %r : tensor<64x64xi32>
}

// CHECK-LABEL: @f8
// CHECK: kind = "wgmma"
// A100-LABEL: @f8
// A100: kind = "tiles"
structured.kernel @f8(%x: tensor<64x64xf8E4M3FN>, %y: tensor<64x64xf8E4M3FN>) -> tensor<64x64xf32> {
  %r = structured.contract ins(%x, %y : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>] sizes [64] accumulator f32 -> tensor<64x64xf32> {
  ^bb0(%a: tensor<f8E4M3FN>, %b: tensor<f8E4M3FN>):
    structured.yield %a, %b : tensor<f8E4M3FN>, tensor<f8E4M3FN>
  }
  structured.return %r : tensor<64x64xf32>
}

// Few results of many terms are computed in parts.
// A100-LABEL: @parts
// A100: structured.schedule = {launch = 0 : i64, kind = "mma", threads = 128 : i64, parts = {{[0-9]+}} : i64
structured.kernel @parts(%x: tensor<64x8192xbf16>, %y: tensor<8192x64xbf16>) -> tensor<64x64xbf16> {
  %r = structured.contract ins(%x, %y : tensor<64x8192xbf16>, tensor<8192x64xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [8192] accumulator f32 -> tensor<64x64xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<64x64xbf16>
}
