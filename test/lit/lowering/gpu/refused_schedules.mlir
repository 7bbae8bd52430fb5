// Schedules that GPUs have no code for are refused, whoever wrote them.

// RUN: hlo-opt --platform=gpu --stage=gpu %s | filecheck %s --check-prefix=FITS
// RUN: sed 's/vector = 4/lanes = 4/' %s > %t.lanes
// RUN: not hlo-opt --platform=gpu --stage=gpu %t.lanes 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: sed 's/vector = 4/tile = array<i64: 4, 4>/' %s > %t.tile
// RUN: not hlo-opt --platform=gpu --stage=gpu %t.tile 2>&1 | filecheck %s --check-prefix=FIELD
// RUN: sed 's/vector = 4/vector = 32/' %s > %t.vector
// RUN: not hlo-opt --platform=gpu --stage=gpu %t.vector 2>&1 | filecheck %s --check-prefix=VECTOR
// RUN: sed 's/threads = 128/threads = 100/' %s > %t.threads
// RUN: not hlo-opt --platform=gpu --stage=gpu %t.threads 2>&1 | filecheck %s --check-prefix=THREADS
// RUN: sed 's/"elements"/"sort"/' %s > %t.sort
// RUN: not hlo-opt --platform=gpu --stage=gpu %t.sort 2>&1 | filecheck %s --check-prefix=OP
// RUN: sed 's/"elements"/"bubble"/' %s > %t.kind
// RUN: not hlo-opt --platform=gpu --stage=gpu %t.kind 2>&1 | filecheck %s --check-prefix=KIND

// FITS: kernel
// TYPE: error[HLO0806]: `lanes` of the schedule of `structured.map` is `4 : i64`
// FIELD: error[HLO0806]: {{.*}} is no schedule of `structured.map`: elements takes no tile, but threads, vector
// VECTOR: error[HLO0806]: {{.*}}: vector is a power of two, 16 at most
// THREADS: error[HLO0806]: {{.*}}: threads are a multiple of 32
// OP: error[HLO0806]: {{.*}}: `structured.map` is not computed so
// KIND: error[HLO0806]: {{.*}}: the kinds are elements,
structured.kernel @twice(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = structured.map ins(%x : tensor<64x64xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] {structured.schedule = {launch = 0, kind = "elements", threads = 128, vector = 4}} -> tensor<64x64xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.add %a, %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<64x64xf32>
}
