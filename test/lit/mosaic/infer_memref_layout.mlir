// RUN: mosaic-opt --start-after=canonicalize-memory-space --stop-after=infer-memref-layout %s | filecheck %s

// Arguments get tiles; the body works on references without a layout.
// CHECK-LABEL: func.func @tiled(
// CHECK-SAME: %x: memref<24x300xf32, #tpu.tiled<(8,128),[3,1]>, #tpu.memory_space<vmem, tc>>
// CHECK-SAME: %s: memref<16xi32, #tpu.tiled<(128),[1]>, #tpu.memory_space<smem, tc>>
// CHECK: %[[PLAIN:.*]] = tpu.erase_memref_layout %x
// CHECK-SAME: -> memref<24x300xf32, #tpu.memory_space<vmem, tc>>
// CHECK: vector.load %[[PLAIN]]
func.func @tiled(%x: memref<24x300xf32, #tpu.memory_space<vmem, tc>>, %s: memref<16xi32, #tpu.memory_space<smem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant 0 : index
  %v = vector.load %x[%c, %c] : memref<24x300xf32, #tpu.memory_space<vmem, tc>>, vector<24x300xf32>
  return
}

// A layout that is stated stays.
// CHECK-LABEL: func.func @stated(
// CHECK-SAME: %x: memref<8x256xf32, #tpu.tiled<(4,128),[2,1]>, #tpu.memory_space<vmem, tc>>)
// CHECK-NOT: tpu.erase_memref_layout
// CHECK: return
func.func @stated(%x: memref<8x256xf32, #tpu.tiled<(4,128),[2,1]>, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  return
}
