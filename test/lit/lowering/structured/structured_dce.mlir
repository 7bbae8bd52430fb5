// RUN: hlo-opt --passes=structured-dce %s | filecheck %s

// CHECK-LABEL: structured.kernel @dead
structured.kernel @dead(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  // CHECK-NEXT: ^{{.*}}(%a: tensor<f32>):
  // CHECK-NEXT: structured.yield %a
  // CHECK: structured.return %r
  %e = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.exponential %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %n = structured.map ins(%e : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  %r = structured.map ins(%x, %y : tensor<4xf32>, tensor<4xf32>) maps [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.exponential %b : tensor<f32>
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}
