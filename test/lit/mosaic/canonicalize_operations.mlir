// RUN: mosaic-opt --start-after=infer-memref-layout-simplify --stop-after=canonicalize-operations %s | filecheck %s

// Operations of `vector` and casts become those of `tpu`; the sum of rows adds its start.
// CHECK-LABEL: func.func @of_vectors(
// CHECK: %v = tpu.vector_load %x[%c, %c]
// CHECK-NEXT: %w = tpu.extf %v : vector<16x128xbf16> -> vector<16x128xf32>
// CHECK-NEXT: %[[REDUCED:.*]] = tpu.reduce <sum>, %w [0] : vector<16x128xf32> -> vector<1x128xf32>
// CHECK-NEXT: %[[FLAT:.*]] = tpu.reshape %[[REDUCED]] : vector<1x128xf32> -> vector<128xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[FLAT]], %z : vector<128xf32>
// CHECK-NEXT: tpu.reshape %[[SUM]] : vector<128xf32> -> vector<1x128xf32>
// CHECK-NEXT: tpu.truncf %{{.*}} {rounding_mode = #tpu.rounding_mode<to_nearest_even>}
// CHECK-NEXT: tpu.vector_store %y[%c, %c]
func.func @of_vectors(%x: memref<16x128xbf16, #tpu.memory_space<vmem, tc>>, %y: memref<1x128xbf16, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant 0 : index
  %z = arith.constant dense<0.0> : vector<128xf32>
  %v = vector.load %x[%c, %c] : memref<16x128xbf16, #tpu.memory_space<vmem, tc>>, vector<16x128xbf16>
  %w = arith.extf %v : vector<16x128xbf16> to vector<16x128xf32>
  %s = vector.multi_reduction <add>, %w, %z [0] : vector<16x128xf32> to vector<128xf32>
  %r = vector.shape_cast %s : vector<128xf32> to vector<1x128xf32>
  %t = arith.truncf %r : vector<1x128xf32> to vector<1x128xbf16>
  vector.store %t, %y[%c, %c] : memref<1x128xbf16, #tpu.memory_space<vmem, tc>>, vector<1x128xbf16>
  return
}

// An extremum that starts with the neutral element adds nothing.
// CHECK-LABEL: func.func @neutral(
// CHECK-NOT: arith.maximumf
// CHECK: return
func.func @neutral(%x: vector<16x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %z = arith.constant dense<0xFF800000> : vector<128xf32>
  %s = vector.multi_reduction <maximumf>, %x, %z [0] : vector<16x128xf32> to vector<128xf32>
  return
}

// Arithmetic stays.
// CHECK-LABEL: func.func @arithmetic(
// CHECK-NEXT: %s = arith.addf %x, %x : vector<8x128xf32>
// CHECK-NEXT: return
func.func @arithmetic(%x: vector<8x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %s = arith.addf %x, %x : vector<8x128xf32>
  return
}
