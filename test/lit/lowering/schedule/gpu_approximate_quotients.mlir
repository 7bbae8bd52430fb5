// RUN: hlo-opt --passes=gpu-approximate-quotients %s | filecheck %s
// RUN: hlo-opt --passes=gpu-approximate-quotients %s | hlo-opt - | filecheck %s

// An exponential is rounded, and so are sums of exponentials.
// CHECK-LABEL: @softmax
// CHECK: hlo.divide %{{.*}} attributes {structured.ulp = 2 : i64}
structured.kernel @softmax(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %w = structured.map ins(%x : tensor<8x16xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<8x16xf32> {
  ^bb0(%a: tensor<f32>):
    %e = hlo.exponential %a : tensor<f32>
    structured.yield %e : tensor<f32>
  }
  %sum = structured.fold ins(%w : tensor<8x16xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [16] -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%w, %sum : tensor<8x16xf32>, tensor<8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>] -> tensor<8x16xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %q = hlo.divide %a, %b : tensor<f32>
    structured.yield %q : tensor<f32>
  }
  structured.return %r : tensor<8x16xf32>
}

// Sums of inputs, and means, may be exact.
// CHECK-LABEL: @part_of_sum_stays
// CHECK: hlo.divide
// CHECK-NOT: structured.ulp
// CHECK-LABEL: @choices
structured.kernel @part_of_sum_stays(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  %sum = structured.fold ins(%x : tensor<8x16xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [16] -> tensor<8xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%x, %sum : tensor<8x16xf32>, tensor<8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>] -> tensor<8x16xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %q = hlo.divide %a, %b : tensor<f32>
    structured.yield %q : tensor<f32>
  }
  structured.return %r : tensor<8x16xf32>
}

// A choice between an exponential and zero is rounded or special, one between it and a number may be exact.
structured.kernel @choices(%x: tensor<8xf32>, %p: tensor<8xi1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r, %s = structured.map ins(%x, %p : tensor<8xf32>, tensor<8xi1>) maps [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] -> tensor<8xf32>, tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<i1>):
    %e = hlo.exponential %a : tensor<f32>
    %zero = hlo.constant "0" : tensor<f32>
    %three = hlo.constant "3" : tensor<f32>
    // CHECK: [[MASKED:%.*]] = hlo.select %{{.*}}, %{{.*}}, %zero
    %masked = hlo.select %b, %e, %zero : tensor<f32>
    // CHECK: [[CHOSEN:%.*]] = hlo.select %{{.*}}, %{{.*}}, %three
    %chosen = hlo.select %b, %e, %three : tensor<f32>
    // CHECK: hlo.divide [[MASKED]], %{{.*}} attributes {structured.ulp = 2 : i64}
    %q = hlo.divide %masked, %a : tensor<f32>
    // CHECK: hlo.divide %{{.*}}, [[CHOSEN]] : tensor<f32>
    %t = hlo.divide %a, %chosen : tensor<f32>
    structured.yield %q, %t : tensor<f32>, tensor<f32>
  }
  structured.return %r, %s : tensor<8xf32>, tensor<8xf32>
}

// Whole numbers may be exact whatever they were; so may roots, and f64 has no approximate quotient.
// CHECK-LABEL: @exact_again_stay
// CHECK: hlo.divide
// CHECK-NOT: structured.ulp
structured.kernel @exact_again_stay(%x: tensor<8xf32>, %y: tensor<8xf64>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf64>) {
  %r, %s, %t = structured.map ins(%x, %y : tensor<8xf32>, tensor<8xf64>) maps [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] -> tensor<8xf32>, tensor<8xf32>, tensor<8xf64> {
  ^bb0(%a: tensor<f32>, %b: tensor<f64>):
    %l = hlo.log %a : tensor<f32>
    %f = hlo.floor %l : tensor<f32>
    %q = hlo.divide %a, %f : tensor<f32>
    %root = hlo.sqrt %a : tensor<f32>
    %u = hlo.divide %a, %root : tensor<f32>
    %e = hlo.exponential %b : tensor<f64>
    %v = hlo.divide %b, %e : tensor<f64>
    structured.yield %q, %u, %v : tensor<f32>, tensor<f32>, tensor<f64>
  }
  structured.return %r, %s, %t : tensor<8xf32>, tensor<8xf32>, tensor<8xf64>
}
