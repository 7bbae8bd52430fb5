// RUN: hlo-opt --platform=cpu %s --emit hlo | filecheck %s
// RUN: hlo-opt --platform=gpu %s --emit hlo | filecheck %s
// RUN: hlo-opt --platform=tpu %s --emit hlo | filecheck %s --check-prefix=TPU
// RUN: hlo-opt --passes=chlo-legalize-to-stablehlo,algsimp,dce %s --emit hlo | filecheck %s

// A pipeline of a platform takes a StableHLO program as it takes HLO.
module @m {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    // CHECK: ROOT %cosine{{.*}} = f32[] cosine(
    // TPU: ROOT %cosine{{.*}} = f32[]{:T(128)} cosine(
    %0 = stablehlo.cosine %arg0 : tensor<f32>
    return %0 : tensor<f32>
  }
}
