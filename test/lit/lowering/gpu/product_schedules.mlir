// RUN: not hlo-opt --platform=gpu --stage=gpu %s 2>&1 | filecheck %s

// CHECK: error[HLO0806]: no product is computed by `{launch = 0 : i64, kind = "mma", threads = 128 : i64, rows = 48
// CHECK-SAME: rows, columns and terms are powers of two
structured.kernel @uneven(%x: tensor<64x256xbf16>, %y: tensor<256x64xbf16>) -> tensor<64x64xbf16> {
  %r = structured.contract ins(%x, %y : tensor<64x256xbf16>, tensor<256x64xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [256] accumulator f32 {structured.schedule = {launch = 0, kind = "mma", threads = 128, rows = 48, columns = 64, terms = 32, stages = 3, warps_down = 4}} -> tensor<64x64xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<64x64xbf16>
}
