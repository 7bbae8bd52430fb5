// RUN: hlo-opt --passes=cpu-vectorize %s | filecheck %s
// RUN: hlo-opt --passes=cpu-vectorize{lanes=8} %s | filecheck %s --check-prefix=EIGHT
// RUN: hlo-opt --passes=cpu-vectorize{lanes=0} %s | filecheck %s --check-prefix=NONE

// CHECK-LABEL: @bits
// CHECK: {kind = "blocks", lanes = 16 : i64}
// EIGHT-LABEL: @bits
// EIGHT: {kind = "blocks", lanes = 8 : i64}
// NONE-LABEL: @bits
// NONE: {kind = "blocks", lanes = 0 : i64}
structured.kernel @bits(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<100xui32>) {
  %n, %r = structured.random_bits "rng_three_fry" %s : tensor<2xui64> {structured.schedule = {kind = "blocks"}} -> tensor<2xui64>, tensor<100xui32>
  structured.return %n, %r : tensor<2xui64>, tensor<100xui32>
}

// What has lanes keeps them, no lanes included, unless an option says otherwise.
// CHECK-LABEL: @one_by_one
// CHECK: {kind = "radix", lanes = 0 : i64}
// EIGHT-LABEL: @one_by_one
// EIGHT: {kind = "radix", lanes = 8 : i64}
structured.kernel @one_by_one(%x: tensor<300xf32>) -> tensor<300xf32> {
  %r = structured.sort ins(%x : tensor<300xf32>) dimension 0 {structured.schedule = {kind = "radix", lanes = 0 : i64}} -> tensor<300xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<300xf32>
}

// The algorithm is chosen first.
// CHECK-LABEL: @without_algorithm
// CHECK-NOT: structured.schedule
structured.kernel @without_algorithm(%x: tensor<300xf32>) -> tensor<300xf32> {
  %r = structured.sort ins(%x : tensor<300xf32>) dimension 0 -> tensor<300xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<300xf32>
}

// Windows that lie beside each other in memory are vectors.
// CHECK-LABEL: @beside
// CHECK: {kind = "windows", lanes = 8 : i64}
structured.kernel @beside(%x: tensor<6x8xf32>, %s: tensor<3x8xf32>, %z: tensor<f32>) -> tensor<6x8xf32> {
  %r = structured.select_and_scatter %x, %s, %z : tensor<6x8xf32>, tensor<3x8xf32>, tensor<f32> windows [2, 1] strides [2, 1] dilations [1, 1] base [1, 1] low [0, 0] {structured.schedule = {kind = "windows"}} -> tensor<6x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "GE"} : tensor<i1>
    structured.yield %c : tensor<i1>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<6x8xf32>
}

// CHECK-LABEL: @along
// CHECK: {kind = "windows", lanes = 0 : i64}
structured.kernel @along(%x: tensor<6x8xf32>, %s: tensor<6x4xf32>, %z: tensor<f32>) -> tensor<6x8xf32> {
  %r = structured.select_and_scatter %x, %s, %z : tensor<6x8xf32>, tensor<6x4xf32>, tensor<f32> windows [1, 2] strides [1, 2] dilations [1, 1] base [1, 1] low [0, 0] {structured.schedule = {kind = "windows"}} -> tensor<6x8xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "GE"} : tensor<i1>
    structured.yield %c : tensor<i1>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<6x8xf32>
}

// CHECK-LABEL: @sums
// CHECK: {kind = "along", lanes = 16 : i64}
// EIGHT-LABEL: @sums
// EIGHT: {kind = "along", lanes = 8 : i64}
structured.kernel @sums(%x: tensor<8x100xf32>, %z: tensor<8xf32>) -> (tensor<8x100xf32>, tensor<8xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x100xf32>) inits(%z : tensor<8xf32>) dimension 1 associative {structured.schedule = {kind = "along"}} -> tensor<8x100xf32>, tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %n = hlo.add %s, %a : tensor<f32>
    structured.yield %n, %n : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x100xf32>, tensor<8xf32>
}
// CHECK-LABEL: @down
// CHECK: {kind = "elements", lanes = 0 : i64}
structured.kernel @down(%x: tensor<8x64xf32>, %z: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x64xf32>) inits(%z : tensor<64xf32>) dimension 0 {structured.schedule = {kind = "elements"}} -> tensor<8x64xf32>, tensor<64xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %h = hlo.subtract %s, %a : tensor<f32>
    structured.yield %h, %h : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @updates
// CHECK: {kind = "windows", lanes = 16 : i64}
// EIGHT-LABEL: @updates
// EIGHT: {kind = "windows", lanes = 8 : i64}
structured.kernel @updates(%x: tensor<100x16xf32>, %i: tensor<5000xi32>, %u: tensor<5000x16xf32>) -> tensor<100x16xf32> {
  %r = structured.scatter targets(%x : tensor<100x16xf32>) indices(%i : tensor<5000xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5000x16xf32>) dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)> {structured.schedule = {kind = "windows"}} -> tensor<100x16xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<100x16xf32>
}
