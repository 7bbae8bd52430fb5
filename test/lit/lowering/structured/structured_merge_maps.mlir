// RUN: hlo-opt --passes=structured-merge-maps --split-input-file %s | filecheck %s

// A map into its reader; what broadcasts is read by a composed map.
// CHECK-LABEL: structured.kernel @chain
structured.kernel @chain(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: structured.map ins(%x, %y : tensor<4x8xf32>, tensor<8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<4x8xf32> {
  // CHECK: [[EXP:%.*]] = hlo.exponential
  // CHECK-NEXT: [[QUOTIENT:%.*]] = hlo.divide [[EXP]], {{%.*}}
  // CHECK-NEXT: structured.yield [[QUOTIENT]]
  // CHECK-NOT: structured.map
  %e = structured.map ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.exponential %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %b = structured.map ins(%y : tensor<8xf32>) maps [affine_map<(d0, d1) -> (d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  %r = structured.map ins(%e, %b : tensor<4x8xf32>, tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>, %c: tensor<f32>):
    %s = hlo.divide %a, %c : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4x8xf32>
}

// -----

// Maps compose: the transpose of a transpose reads the array as it is.
// CHECK-LABEL: structured.kernel @transposes
structured.kernel @transposes(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: structured.map ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>]
  // CHECK-NOT: structured.map
  %t = structured.map ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<8x4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  %r = structured.map ins(%t : tensor<8x4xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.negate %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4x8xf32>
}

// -----

// Into the body of a fold, with its constant; the index of a reversed read is computed.
// CHECK-LABEL: structured.kernel @prologue
structured.kernel @prologue() -> tensor<i32> {
  %zero = hlo.constant "0" : tensor<i32>
  // CHECK: structured.fold ins() maps [] inits(%zero : tensor<i32>) sizes [8] -> tensor<i32> {
  // CHECK-NEXT: structured.index 0 : tensor<i32>
  // CHECK: hlo.multiply
  // CHECK: hlo.add
  // CHECK: } combiner {
  %i = structured.map ins() maps [] -> tensor<8xi32> {
    %a = structured.index 0 : tensor<i32>
    structured.yield %a : tensor<i32>
  }
  %r = structured.fold ins(%i : tensor<8xi32>) maps [affine_map<(d0) -> (-d0 + 7)>] inits(%zero : tensor<i32>) sizes [8] -> tensor<i32> {
  ^bb0(%a: tensor<i32>):
    structured.yield %a : tensor<i32>
  } combiner {
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = hlo.add %a, %b : tensor<i32>
    structured.yield %s : tensor<i32>
  }
  structured.return %r : tensor<i32>
}

// -----

// An exponential for each row would be one for each element.
// CHECK-LABEL: structured.kernel @row_statistic_stays
structured.kernel @row_statistic_stays(%x: tensor<4x8xf32>, %m: tensor<4xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %e = structured.map ins(%m : tensor<4xf32>)
  // CHECK: %r = structured.map ins(%x, %e : tensor<4x8xf32>, tensor<4xf32>)
  %e = structured.map ins(%m : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.exponential %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%x, %e : tensor<4x8xf32>, tensor<4xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.multiply %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4x8xf32>
}

// -----

// What two folds read is computed once.
// CHECK-LABEL: structured.kernel @shared_by_two_stays
structured.kernel @shared_by_two_stays(%x: tensor<4x8xf32>, %zero: tensor<f32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %e = structured.map ins(%x : tensor<4x8xf32>)
  // CHECK: structured.fold ins(%e : tensor<4x8xf32>)
  // CHECK: structured.map ins(%e
  %e = structured.map ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.exponential %a : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %sum = structured.fold ins(%e : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [8] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  %r = structured.map ins(%e, %sum : tensor<4x8xf32>, tensor<4xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.divide %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r, %sum : tensor<4x8xf32>, tensor<4xf32>
}

// -----

// Factors of a contraction are converted as they are read.
// CHECK-LABEL: structured.kernel @converted_factor
structured.kernel @converted_factor(%x: tensor<4x8xi8>, %y: tensor<8x3xbf16>) -> tensor<4x3xf32> {
  // CHECK-NEXT: structured.contract ins(%x, %y : tensor<4x8xi8>, tensor<8x3xbf16>)
  // CHECK: hlo.convert
  // CHECK-NOT: structured.map
  %c = structured.map ins(%x : tensor<4x8xi8>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xbf16> {
  ^bb0(%a: tensor<i8>):
    %s = hlo.convert %a : tensor<bf16>
    structured.yield %s : tensor<bf16>
  }
  %r = structured.contract ins(%c, %y : tensor<4x8xbf16>, tensor<8x3xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [8] accumulator f32 -> tensor<4x3xf32> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<4x3xf32>
}
