// RUN: hlo-opt --passes=cpu-choose-algorithm %s | filecheck %s
// RUN: hlo-opt --passes=cpu-choose-algorithm{kind=merge} %s | filecheck %s --check-prefix=MERGE
// RUN: hlo-opt --passes=cpu-choose-algorithm"{kind=collect capacity=96}" %s | filecheck %s --check-prefix=COLLECT

// Short rows are counted, longer ones ordered by digits; what has no key is merged.
// CHECK-LABEL: @short
// CHECK: kind = "counting"}
// CHECK-LABEL: @long
// CHECK: kind = "radix"}
// CHECK-LABEL: @any
// CHECK: kind = "merge"}
// MERGE-COUNT-4: structured.sort {{.*}}kind = "merge"
structured.kernel @short(%x: tensor<128xf32>) -> tensor<128xf32> {
  %r = structured.sort ins(%x : tensor<128xf32>) dimension 0 -> tensor<128xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<128xf32>
}
structured.kernel @long(%x: tensor<129xf32>) -> tensor<129xf32> {
  %r = structured.sort ins(%x : tensor<129xf32>) dimension 0 -> tensor<129xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<129xf32>
}
structured.kernel @any(%x: tensor<129xf32>) -> tensor<129xf32> {
  %r = structured.sort ins(%x : tensor<129xf32>) dimension 0 -> tensor<129xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LE"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<129xf32>
}

// What is chosen stays, unless an option says otherwise.
// CHECK-LABEL: @chosen
// CHECK: kind = "merge"}
// COLLECT-LABEL: @chosen
// COLLECT: kind = "merge"}
structured.kernel @chosen(%x: tensor<129xf32>) -> tensor<129xf32> {
  %r = structured.sort ins(%x : tensor<129xf32>) dimension 0 {structured.schedule = {kind = "merge"}} -> tensor<129xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<129xf32>
}

// Few of many are collected in a buffer.
// CHECK-LABEL: @few
// CHECK: kind = "select"}
// CHECK-LABEL: @few_of_many
// CHECK: {kind = "collect", capacity = 64 : i64}
// COLLECT-LABEL: @few_of_many
// COLLECT: {kind = "collect", capacity = 96 : i64}
// MERGE-LABEL: @few_of_many
// MERGE: {kind = "collect", capacity = 64 : i64}
// CHECK-LABEL: @wide
// CHECK: kind = "order"}
structured.kernel @few(%x: tensor<100xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %v, %i = structured.top_k %x : tensor<100xf32> largest -> tensor<4xf32>, tensor<4xi32>
  structured.return %v, %i : tensor<4xf32>, tensor<4xi32>
}
structured.kernel @few_of_many(%x: tensor<1000xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %v, %i = structured.top_k %x : tensor<1000xf32> largest -> tensor<4xf32>, tensor<4xi32>
  structured.return %v, %i : tensor<4xf32>, tensor<4xi32>
}
structured.kernel @wide(%x: tensor<1000xf64>) -> (tensor<4xf64>, tensor<4xi32>) {
  %v, %i = structured.top_k %x : tensor<1000xf64> largest -> tensor<4xf64>, tensor<4xi32>
  structured.return %v, %i : tensor<4xf64>, tensor<4xi32>
}

// An op that is compiled from its HLO instruction stays without a schedule.
// CHECK-LABEL: @fold
// CHECK-NOT: structured.schedule
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

// Elements of results go in vectors along the last dimension, unless operands are read across, results are a few
// columns wide, or every line gathers the same elements.
// CHECK-LABEL: @map
// CHECK: kind = "vectors"}
// CHECK-LABEL: @across
// CHECK: kind = "squares"}
// CHECK-LABEL: @points
// CHECK: kind = "narrow"}
// CHECK-LABEL: @columns
// CHECK: kind = "columns"}
structured.kernel @map(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    %e = hlo.exponential %a : tensor<f32>
    structured.yield %e : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}
structured.kernel @across(%x: tensor<40x64xf32>) -> tensor<64x40xf32> {
  %r = structured.map ins(%x : tensor<40x64xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<64x40xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<64x40xf32>
}
structured.kernel @points(%x: tensor<1000x3xf32>) -> tensor<1000x3xf32> {
  %r = structured.map ins(%x : tensor<1000x3xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<1000x3xf32> {
  ^bb0(%a: tensor<f32>):
    %e = hlo.negate %a : tensor<f32>
    structured.yield %e : tensor<f32>
  }
  structured.return %r : tensor<1000x3xf32>
}
structured.kernel @columns(%x: tensor<100x64xf32>, %i: tensor<30xi32>) -> tensor<100x30xf32> {
  %r = structured.gather %x : tensor<100x64xf32> indices(%i : tensor<30xi32>) maps [affine_map<(d0, d1) -> (d1)>] dimensions [1] limits [63] offsets affine_map<(d0, d1) -> (d0, 0)> -> tensor<100x30xf32>
  structured.return %r : tensor<100x30xf32>
}

// Scans whose folds may be cut go along a line in vectors, others in vectors of lines where there are such.
// CHECK-LABEL: @sums
// CHECK: kind = "along"}
// CHECK-LABEL: @down
// CHECK: kind = "across"}
// CHECK-LABEL: @line
// CHECK: kind = "elements"}
structured.kernel @sums(%x: tensor<8x100xf32>, %z: tensor<8xf32>) -> (tensor<8x100xf32>, tensor<8xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x100xf32>) inits(%z : tensor<8xf32>) dimension 1 associative -> tensor<8x100xf32>, tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %n = hlo.add %s, %a : tensor<f32>
    structured.yield %n, %n : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x100xf32>, tensor<8xf32>
}
structured.kernel @down(%x: tensor<8x64xf32>, %z: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x64xf32>) inits(%z : tensor<64xf32>) dimension 0 -> tensor<8x64xf32>, tensor<64xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %h = hlo.subtract %s, %a : tensor<f32>
    structured.yield %h, %h : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x64xf32>, tensor<64xf32>
}
structured.kernel @line(%x: tensor<8x64xf32>, %z: tensor<8xf32>) -> (tensor<8x64xf32>, tensor<8xf32>) {
  %r, %l = structured.scan ins(%x : tensor<8x64xf32>) inits(%z : tensor<8xf32>) dimension 1 -> tensor<8x64xf32>, tensor<8xf32> {
  ^bb0(%a: tensor<f32>, %s: tensor<f32>):
    %h = hlo.subtract %s, %a : tensor<f32>
    structured.yield %h, %h : tensor<f32>, tensor<f32>
  }
  structured.return %r, %l : tensor<8x64xf32>, tensor<8xf32>
}

// Sorted indices keep small windows in registers.
// CHECK-LABEL: @rows
// CHECK: kind = "windows"}
// CHECK-LABEL: @sorted_rows
// CHECK: kind = "runs"}
// CHECK-LABEL: @long_sorted_rows
// CHECK: kind = "windows"}
structured.kernel @rows(%x: tensor<100x16xf32>, %i: tensor<5000xi32>, %u: tensor<5000x16xf32>) -> tensor<100x16xf32> {
  %r = structured.scatter targets(%x : tensor<100x16xf32>) indices(%i : tensor<5000xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5000x16xf32>) dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)> -> tensor<100x16xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<100x16xf32>
}
structured.kernel @sorted_rows(%x: tensor<100x16xf32>, %i: tensor<5000xi32>, %u: tensor<5000x16xf32>) -> tensor<100x16xf32> {
  %r = structured.scatter targets(%x : tensor<100x16xf32>) indices(%i : tensor<5000xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5000x16xf32>) dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)> sorted -> tensor<100x16xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<100x16xf32>
}
structured.kernel @long_sorted_rows(%x: tensor<100x256xf32>, %i: tensor<5000xi32>, %u: tensor<5000x256xf32>) -> tensor<100x256xf32> {
  %r = structured.scatter targets(%x : tensor<100x256xf32>) indices(%i : tensor<5000xi32>) maps [affine_map<(d0, d1) -> (d0)>] updates(%u : tensor<5000x256xf32>) dimensions [0] limits [99] offsets affine_map<(d0, d1) -> (0, d1)> sorted -> tensor<100x256xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }
  structured.return %r : tensor<100x256xf32>
}
