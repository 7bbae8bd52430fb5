// RUN: hlo-opt %s | filecheck %s
// RUN: hlo-opt %s | hlo-opt - | filecheck %s
// RUN: hlo-opt --print-op-generic %s | hlo-opt - | filecheck %s

// CHECK-LABEL: structured.kernel @scaled_sum(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32>
structured.kernel @scaled_sum(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: structured.map ins(%x, %y : tensor<4x8xf32>, tensor<8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<4x8xf32> {
  // CHECK-NEXT: ^{{.*}}(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: hlo.add %a, %b : tensor<f32>
  // CHECK-NEXT: structured.yield
  %r = structured.map ins(%x, %y : tensor<4x8xf32>, tensor<8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  // CHECK: structured.return
  structured.return %r : tensor<4x8xf32>
}

// CHECK-LABEL: structured.kernel @iota
structured.kernel @iota() -> (tensor<4xf32>, tensor<4xi32>) attributes {structured.schedule = "none"} {
  // CHECK-NEXT: structured.map ins() maps [] -> tensor<4xf32>, tensor<4xi32> {
  %r, %i = structured.map ins() maps [] -> tensor<4xf32>, tensor<4xi32> {
    // CHECK-NEXT: structured.index 0 : tensor<i32>
    %index = structured.index 0 : tensor<i32>
    %number = hlo.convert %index : tensor<f32>
    structured.yield %number, %index : tensor<f32>, tensor<i32>
  }
  structured.return %r, %i : tensor<4xf32>, tensor<4xi32>
}

// CHECK-LABEL: structured.kernel @pad
structured.kernel @pad(%x: tensor<4xf32>, %u: tensor<2xf32>, %at: tensor<i32>) -> tensor<9xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  // CHECK: structured.assemble pieces(%x, %u : tensor<4xf32>, tensor<2xf32>) fill(%zero : tensor<f32>) indices(%at : tensor<i32>) offsets [array<i64: 1>, array<i64: -9223372036854775808>] strides [array<i64: 2>, array<i64: 1>] -> tensor<9xf32>
  %r = structured.assemble pieces(%x, %u : tensor<4xf32>, tensor<2xf32>) fill(%zero : tensor<f32>) indices(%at : tensor<i32>) offsets [array<i64: 1>, array<i64: -9223372036854775808>] strides [array<i64: 2>, array<i64: 1>] -> tensor<9xf32>
  structured.return %r : tensor<9xf32>
}

// CHECK-LABEL: structured.kernel @row_sums
structured.kernel @row_sums(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  // CHECK: structured.fold ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [8] -> tensor<4xf32> {
  // CHECK: } combiner {
  %r = structured.fold ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%zero : tensor<f32>) sizes [8] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}

// CHECK-LABEL: structured.kernel @dot
structured.kernel @dot(%x: tensor<4x8xbf16>, %y: tensor<8x3xbf16>) -> tensor<4x3xbf16> {
  // CHECK: structured.contract ins(%x, %y : tensor<4x8xbf16>, tensor<8x3xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [8] accumulator f32 -> tensor<4x3xbf16> {
  %r = structured.contract ins(%x, %y : tensor<4x8xbf16>, tensor<8x3xbf16>) maps [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>] sizes [8] accumulator f32 -> tensor<4x3xbf16> {
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    structured.yield %a, %b : tensor<bf16>, tensor<bf16>
  }
  structured.return %r : tensor<4x3xbf16>
}

// CHECK-LABEL: structured.kernel @take
structured.kernel @take(%x: tensor<9x4xf32>, %i: tensor<5xi32>) -> tensor<5x4xf32> {
  // CHECK: structured.gather %x : tensor<9x4xf32> indices(%i : tensor<5xi32>) maps [affine_map<(d0, d1) -> (d0)>] dimensions [0] limits [8] offsets affine_map<(d0, d1) -> (0, d1)> -> tensor<5x4xf32>
  %r = structured.gather %x : tensor<9x4xf32> indices(%i : tensor<5xi32>) maps [affine_map<(d0, d1) -> (d0)>] dimensions [0] limits [8] offsets affine_map<(d0, d1) -> (0, d1)> -> tensor<5x4xf32>
  structured.return %r : tensor<5x4xf32>
}

// CHECK-LABEL: structured.kernel @accumulate
structured.kernel @accumulate(%x: tensor<9x4xf32>, %i: tensor<5xi32>, %u: tensor<5x4xf32>) -> tensor<9x4xf32> {
  // CHECK: structured.scatter targets(%x : tensor<9x4xf32>) indices(%i : tensor<5xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5x4xf32>) dimensions [0] limits [8] offsets affine_map<(d0, d1) -> (0, d1)> unique -> tensor<9x4xf32> {
  %r = structured.scatter targets(%x : tensor<9x4xf32>) indices(%i : tensor<5xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5x4xf32>) dimensions [0] limits [8] offsets affine_map<(d0, d1) -> (0, d1)> unique -> tensor<9x4xf32> {
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %s = hlo.add %old, %new : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<9x4xf32>
}

// CHECK-LABEL: structured.kernel @ordered
structured.kernel @ordered(%x: tensor<4x8xf32>, %zero: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x2xf32>) {
  // CHECK: structured.scan ins(%x : tensor<4x8xf32>) inits(%zero : tensor<4xf32>) dimension 1 associative -> tensor<4x8xf32>, tensor<4xf32> {
  %sums, %last = structured.scan ins(%x : tensor<4x8xf32>) inits(%zero : tensor<4xf32>) dimension 1 associative -> tensor<4x8xf32>, tensor<4xf32> {
  ^bb0(%a: tensor<f32>, %state: tensor<f32>):
    %s = hlo.add %state, %a : tensor<f32>
    structured.yield %s, %s : tensor<f32>, tensor<f32>
  }
  // CHECK: structured.sort ins(%x : tensor<4x8xf32>) dimension 1 stable -> tensor<4x8xf32> {
  %sorted = structured.sort ins(%x : tensor<4x8xf32>) dimension 1 stable -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %less : tensor<i1>
  }
  // CHECK: structured.top_k %x : tensor<4x8xf32> largest -> tensor<4x2xf32>, tensor<4x2xi32>
  %most, %where = structured.top_k %x : tensor<4x8xf32> largest -> tensor<4x2xf32>, tensor<4x2xi32>
  structured.return %sums, %sorted, %most : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x2xf32>
}

// CHECK-LABEL: structured.kernel @routines
structured.kernel @routines(%state: tensor<2xui64>, %x: tensor<3x3xf32>) -> (tensor<5xui32>, tensor<3x3xf32>) {
  // CHECK: structured.random_bits "rng_three_fry" %state : tensor<2xui64> -> tensor<2xui64>, tensor<5xui32>
  %next, %bits = structured.random_bits "rng_three_fry" %state : tensor<2xui64> -> tensor<2xui64>, tensor<5xui32>
  // CHECK: structured.library "cholesky" ins(%x : tensor<3x3xf32>) settings {lower = true} -> tensor<3x3xf32>
  %l = structured.library "cholesky" ins(%x : tensor<3x3xf32>) settings {lower = true} -> tensor<3x3xf32>
  structured.return %bits, %l : tensor<5xui32>, tensor<3x3xf32>
}

// CHECK-LABEL: structured.kernel @pool_gradient
structured.kernel @pool_gradient(%x: tensor<6xf32>, %g: tensor<3xf32>) -> tensor<6xf32> {
  %zero = hlo.constant "0" : tensor<f32>
  // CHECK: structured.select_and_scatter %x, %g, %zero : tensor<6xf32>, tensor<3xf32>, tensor<f32> windows [2] strides [2] dilations [1] base [1] low [0] -> tensor<6xf32> {
  %r = structured.select_and_scatter %x, %g, %zero : tensor<6xf32>, tensor<3xf32>, tensor<f32> windows [2] strides [2] dilations [1] base [1] low [0] -> tensor<6xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %keeps = hlo.compare %a, %b {direction = "GE"} : tensor<i1>
    structured.yield %keeps : tensor<i1>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<6xf32>
}
