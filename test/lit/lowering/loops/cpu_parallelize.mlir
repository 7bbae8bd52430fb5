// RUN: hlo-opt --passes=cpu-parallelize %s | filecheck %s
// RUN: hlo-opt --passes=cpu-parallelize{chunk=32} %s | filecheck %s --check-prefix=CHUNK

// CHECK-LABEL: @bits
// CHECK: {kind = "blocks", lanes = 16 : i64, chunk = 4096 : i64}
// CHUNK-LABEL: @bits
// CHUNK: {kind = "blocks", lanes = 16 : i64, chunk = 32 : i64}
structured.kernel @bits(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<100xui32>) {
  %n, %r = structured.random_bits "rng_three_fry" %s : tensor<2xui64> {structured.schedule = {kind = "blocks", lanes = 16 : i64}} -> tensor<2xui64>, tensor<100xui32>
  structured.return %n, %r : tensor<2xui64>, tensor<100xui32>
}

// Sixteen parts at most, each with buffers of its own.
// CHECK-LABEL: @rows
// CHECK: {kind = "radix", lanes = 16 : i64, chunk = 4 : i64}
structured.kernel @rows(%x: tensor<64x300xf32>) -> tensor<64x300xf32> {
  %r = structured.sort ins(%x : tensor<64x300xf32>) dimension 1 {structured.schedule = {kind = "radix", lanes = 16 : i64}} -> tensor<64x300xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<64x300xf32>
}

// What is cut stays as it is, unless an option says otherwise.
// CHECK-LABEL: @cut
// CHECK: chunk = 8 : i64}
// CHUNK-LABEL: @cut
// CHUNK: chunk = 32 : i64}
structured.kernel @cut(%x: tensor<64x300xf32>) -> tensor<64x300xf32> {
  %r = structured.sort ins(%x : tensor<64x300xf32>) dimension 1 {structured.schedule = {kind = "radix", lanes = 16 : i64, chunk = 8 : i64}} -> tensor<64x300xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<64x300xf32>
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

// A line at a time, or four vectors of lines.
// CHECK-LABEL: @sums
// CHECK: {kind = "along", lanes = 16 : i64, chunk = 1 : i64}
structured.kernel @sums(%x: tensor<8x100xf32>, %z: tensor<8xf32>) -> (tensor<8x100xf32>, tensor<8xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x100xf32>) inits(%z : tensor<8xf32>) dimension 1 associative {structured.schedule = {kind = "along", lanes = 16 : i64}} -> tensor<8x100xf32>, tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %n = hlo.add %s, %a : tensor<f32>
    structured.yield %n, %n : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x100xf32>, tensor<8xf32>
}
// CHECK-LABEL: @down
// CHECK: {kind = "across", lanes = 16 : i64, chunk = 4 : i64}
// CHUNK-LABEL: @down
// CHUNK: {kind = "across", lanes = 16 : i64, chunk = 32 : i64}
structured.kernel @down(%x: tensor<8x64xf32>, %z: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x64xf32>) inits(%z : tensor<64xf32>) dimension 0 {structured.schedule = {kind = "across", lanes = 16 : i64}} -> tensor<8x64xf32>, tensor<64xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %h = hlo.subtract %s, %a : tensor<f32>
    structured.yield %h, %h : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x64xf32>, tensor<64xf32>
}

// Columns that no index moves, 64 of them at least.
// CHECK-LABEL: @columns
// CHECK: {kind = "windows", lanes = 16 : i64, chunk = 64 : i64}
// CHUNK-LABEL: @columns
// CHUNK: {kind = "windows", lanes = 16 : i64, chunk = 32 : i64}
// CHECK-LABEL: @few_columns
// CHECK: {kind = "windows", lanes = 16 : i64, chunk = 96 : i64}
structured.kernel @columns(%x: tensor<100x256xf32>, %i: tensor<5000xi32>, %u: tensor<5000x256xf32>) -> tensor<100x256xf32> {
  %r = structured.scatter targets(%x : tensor<100x256xf32>) indices(%i : tensor<5000xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5000x256xf32>) dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)> {structured.schedule = {kind = "windows", lanes = 16 : i64}} -> tensor<100x256xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<100x256xf32>
}
structured.kernel @few_columns(%x: tensor<100x96xf32>, %i: tensor<5000xi32>, %u: tensor<5000x96xf32>) -> tensor<100x96xf32> {
  %r = structured.scatter targets(%x : tensor<100x96xf32>) indices(%i : tensor<5000xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5000x96xf32>) dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)> {structured.schedule = {kind = "windows", lanes = 16 : i64}} -> tensor<100x96xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<100x96xf32>
}
