// Schedules that fit no op of the CPU are refused, as are kernels that are compiled from HLO.

// RUN: not hlo-opt --platform=cpu --stage=loops %s 2>&1 | filecheck %s --check-prefix=KIND
// RUN: sed 's/"bubble", lanes = 16/"radix", lanes = 12/' %s > %t.lanes
// RUN: not hlo-opt --platform=cpu --stage=loops %t.lanes 2>&1 | filecheck %s --check-prefix=LANES
// RUN: sed 's/"bubble"/"radix"/; s/"LT"/"LE"/' %s > %t.key
// RUN: not hlo-opt --platform=cpu --stage=loops %t.key 2>&1 | filecheck %s --check-prefix=KEY
// RUN: sed 's/{kind = "bubble", lanes = 16 : i64/{launch = 0 : i64, kind = "radix_sort"/' %s > %t.gpu
// RUN: not hlo-opt --platform=cpu --stage=loops %t.gpu 2>&1 | filecheck %s --check-prefix=GPU
// RUN: sed 's/"bubble"/"radix"/' %s > %t.fold
// RUN: not hlo-opt --platform=cpu --stage=loops %t.fold 2>&1 | filecheck %s --check-prefix=FOLD

// KIND: error[HLO0806]: `{kind = "bubble", lanes = 16 : i64, chunk = 1 : i64}` is no schedule of `structured.sort`: its kinds are counting, radix, merge
// LANES: error[HLO0806]: `{kind = "radix", lanes = 12 : i64, chunk = 1 : i64}` is no schedule of `structured.sort`: lanes are 0 or a power of two from 2 to 64
// KEY: error[HLO0806]: `{kind = "radix", lanes = 16 : i64, chunk = 1 : i64}` is no schedule of `structured.sort`: its comparator orders by no key
// GPU: error[HLO0806]: `{launch = 0 : i64, kind = "radix_sort", chunk = 1 : i64}` on `structured.sort` is not a schedule
// FOLD: error[HLO0432]: `structured.fold` has no lowering to loops: the CPU compiler makes loops of its HLO instruction
structured.kernel @k(%x: tensor<300xf32>) -> tensor<300xf32> {
  %r = structured.sort ins(%x : tensor<300xf32>) dimension 0 {structured.schedule = {kind = "bubble", lanes = 16 : i64, chunk = 1 : i64}} -> tensor<300xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<300xf32>
}
structured.kernel @fold(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %z = hlo.constant "0" : tensor<f32>
  %r = structured.fold ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%z : tensor<f32>) sizes [8] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %n = hlo.add %a, %s : tensor<f32>
    structured.yield %n : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}
