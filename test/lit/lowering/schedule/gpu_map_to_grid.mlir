// RUN: hlo-opt --passes=gpu-map-to-grid %s | filecheck %s

// What is read once is computed where it is read; results of one shape share a launch.
// CHECK-LABEL: @two_results
// CHECK: %e = structured.map
// CHECK-NOT: structured.schedule
// CHECK: %r = structured.map
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "elements"}
// CHECK: %q = structured.map
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "elements"}
structured.kernel @two_results(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = structured.map ins(%x : tensor<8xf32>) maps [affine_map<(d0) -> (-d0 + 7)>] -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.negate %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%e : tensor<8xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.abs %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %q = structured.map ins(%x : tensor<8xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.floor %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r, %q : tensor<8xf32>, tensor<8xf32>
}

// A sort is launched by itself, after what it reads is in memory or is computed where it is read.
// CHECK-LABEL: @sorted
// CHECK: structured.sort
// CHECK-SAME: structured.schedule = {launch = 0 : i64, kind = "sort"}
structured.kernel @sorted(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = structured.sort ins(%x : tensor<8xf32>) dimension 0 -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %less : tensor<i1>
  }
  structured.return %r : tensor<8xf32>
}
