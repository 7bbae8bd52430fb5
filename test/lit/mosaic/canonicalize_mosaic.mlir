// RUN: mosaic-opt --start-after=pre-canon-optimization --stop-after=canonicalize-mosaic %s | filecheck %s

// A generation without bf16 arithmetic, as v5e, computes in f32.
// CHECK-LABEL: func.func @narrow(
// CHECK: tpu.extf %a : vector<16x128xbf16> -> vector<16x128xf32>
// CHECK: arith.addf %{{.*}} : vector<16x128xf32>
// CHECK: tpu.truncf
func.func @narrow(%a: vector<16x128xbf16>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %s = arith.addf %a, %a : vector<16x128xbf16>
  return
}

// Broadcasts keep their rank, after a reshape.
// CHECK-LABEL: func.func @broadcast(
// CHECK-NEXT: %[[ROW:.*]] = tpu.reshape %a : vector<128xf32> -> vector<1x128xf32>
// CHECK-NEXT: vector.broadcast %[[ROW]] : vector<1x128xf32> to vector<8x128xf32>
func.func @broadcast(%a: vector<128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %r = vector.broadcast %a : vector<128xf32> to vector<8x128xf32>
  return
}

// A product with a batch is one for each of its indices.
// CHECK-LABEL: func.func @batch(
// CHECK-COUNT-2: tpu.matmul %{{.*}} : vector<8x128xf32>, vector<128x128xf32>, vector<8x128xf32> -> vector<8x128xf32>
// CHECK: tpu.concatenate
func.func @batch(%a: vector<2x8x128xf32>, %b: vector<2x128x128xf32>, %c: vector<2x8x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %r = tpu.matmul %a, %b, %c {dimension_numbers = #tpu.dot_dimension_numbers<[2], [1], [1], [2], [0, 0, 0, 1, 1, 2], [0], [0]>, transpose_lhs_hint = false} : vector<2x8x128xf32>, vector<2x128x128xf32>, vector<2x8x128xf32> -> vector<2x8x128xf32>
  return
}

// A choice between masks is one of bits.
// CHECK-LABEL: func.func @masks(
// CHECK-NOT: arith.select
// CHECK: arith.xori %m
// CHECK: arith.andi %m, %a
// CHECK: arith.ori
func.func @masks(%m: vector<8x128xi1>, %a: vector<8x128xi1>, %b: vector<8x128xi1>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %r = arith.select %m, %a, %b : vector<8x128xi1>, vector<8x128xi1>
  return
}

// What every generation has stays.
// CHECK-LABEL: func.func @unchanged(
// CHECK-NEXT: %s = arith.addf %a, %a : vector<8x128xf32>
// CHECK-NEXT: %b = vector.broadcast %r : vector<1x128xf32> to vector<8x128xf32>
// CHECK-NEXT: return
func.func @unchanged(%a: vector<8x128xf32>, %r: vector<1x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %s = arith.addf %a, %a : vector<8x128xf32>
  %b = vector.broadcast %r : vector<1x128xf32> to vector<8x128xf32>
  return
}
