// RUN: hlo-opt --platform=gpu --stage=gpu %s | filecheck %s --check-prefix=GPU
// RUN: hlo-opt --platform=gpu --stage=ptx %s | filecheck %s --check-prefix=PTX

// Tiles, stages and warps are those of the schedule.
// GPU: memref<3x2048xbf16, 3
// GPU: nvgpu.device_async_copy
// GPU: nvgpu.device_async_create_group
// GPU: nvgpu.device_async_wait
// GPU-SAME: num_groups = 1
// GPU: nvgpu.ldmatrix
// GPU: nvgpu.mma.sync

// PTX-LABEL: .entry staged(
// PTX: cp.async.cg.shared.global
// PTX: cp.async.commit_group
// PTX: cp.async.wait_group {{.*}}1
// PTX: bar.sync
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
structured.kernel @staged(%x: tensor<64x256xbf16>, %y: tensor<256x64xbf16>) -> tensor<64x64xbf16> {
  %r = structured.contract ins(%x, %y : tensor<64x256xbf16>, tensor<256x64xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [256] accumulator f32 {structured.schedule = {launch = 0, kind = "mma", threads = 128, rows = 64, columns = 64, terms = 32, stages = 3, warps_down = 4}} -> tensor<64x64xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<64x64xbf16>
}

// A factor that is computed is multiplied from the same tiles.
// PTX-LABEL: .entry negated(
// PTX: st.shared.v4.b32
// PTX: cp.async.cg.shared.global
// PTX: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
structured.kernel @negated(%x: tensor<64x256xi8>, %y: tensor<64x256xi8>) -> tensor<64x64xi32> {
  %r = structured.contract ins(%x, %y : tensor<64x256xi8>, tensor<64x256xi8>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>] sizes [256] accumulator i32 {structured.schedule = {launch = 0, kind = "mma", threads = 128, rows = 64, columns = 64, terms = 64, stages = 2, warps_down = 2}} -> tensor<64x64xi32> {
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %n = hlo.negate %a : tensor<i8>
    structured.yield %n, %b : tensor<i8>, tensor<i8>
  }
  structured.return %r : tensor<64x64xi32>
}
