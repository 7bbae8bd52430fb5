// RUN: mosaic-opt --start-after=canonicalize-operations --stop-after=pre-canon-optimization %s | filecheck %s

// A product contracts the last dimension of a right side that would be transposed for it.
// CHECK-LABEL: func.func @transposed(
// CHECK-NOT: tpu.transpose
// CHECK: tpu.matmul %a, %b, %c
// CHECK-SAME: #tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>
func.func @transposed(%a: vector<8x128xf32>, %b: vector<256x128xf32>, %c: vector<8x256xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %t = tpu.transpose %b, [1, 0] : vector<256x128xf32> -> vector<128x256xf32>
  %r = tpu.matmul %a, %t, %c {dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>, transpose_lhs_hint = false} : vector<8x128xf32>, vector<128x256xf32>, vector<8x256xf32> -> vector<8x256xf32>
  return
}

// A left side that is transposed stays, and a transposition that others use.
// CHECK-LABEL: func.func @left(
// CHECK-NEXT: %t = tpu.transpose %a
// CHECK-NEXT: tpu.matmul %t, %b, %c
// CHECK-SAME: #tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>
func.func @left(%a: vector<128x8xf32>, %b: vector<128x256xf32>, %c: vector<8x256xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %t = tpu.transpose %a, [1, 0] : vector<128x8xf32> -> vector<8x128xf32>
  %r = tpu.matmul %t, %b, %c {dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>, transpose_lhs_hint = false} : vector<8x128xf32>, vector<128x256xf32>, vector<8x256xf32> -> vector<8x256xf32>
  return
}
