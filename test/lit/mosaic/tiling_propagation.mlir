// RUN: mosaic-opt --start-after=canonicalize-mosaic-simplify --stop-after=tiling-propagation %s | filecheck %s

// Loads, and views before them, take the reference with its tiles.
// CHECK-LABEL: func.func @through_views(
// CHECK-NOT: tpu.erase_memref_layout
// CHECK: %s = tpu.memref_slice %x[%i, %i] : memref<24x256xf32, #tpu.tiled<(8,128),[2,1]>, #tpu.memory_space<vmem, tc>> -> memref<8x128xf32, #tpu.tiled<(8,128),[2,1]>, #tpu.memory_space<vmem, tc>>
// CHECK-NEXT: tpu.vector_load %s[%c, %c]
// CHECK: return
func.func @through_views(%x: memref<24x256xf32, #tpu.tiled<(8,128),[2,1]>, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant 0 : index
  %i = arith.constant 0 : i32
  %e = tpu.erase_memref_layout %x : memref<24x256xf32, #tpu.tiled<(8,128),[2,1]>, #tpu.memory_space<vmem, tc>> -> memref<24x256xf32, #tpu.memory_space<vmem, tc>>
  %s = tpu.memref_slice %e[%i, %i] : memref<24x256xf32, #tpu.memory_space<vmem, tc>> -> memref<8x128xf32, #tpu.memory_space<vmem, tc>>
  %v = tpu.vector_load %s[%c, %c] {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem, tc>>, vector<8x128xf32>, 
  return
}

// A reference that a loop carries keeps its type.
// CHECK-LABEL: func.func @carried(
// CHECK: %e = tpu.erase_memref_layout %x
// CHECK: scf.if {{.*}}
// CHECK: scf.yield %e
func.func @carried(%b: i1, %x: memref<8x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>>, %y: memref<8x128xf32, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %e = tpu.erase_memref_layout %x : memref<8x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>> -> memref<8x128xf32, #tpu.memory_space<vmem, tc>>
  %r = scf.if %b -> (memref<8x128xf32, #tpu.memory_space<vmem, tc>>) {
    scf.yield %e : memref<8x128xf32, #tpu.memory_space<vmem, tc>>
  } else {
    scf.yield %y : memref<8x128xf32, #tpu.memory_space<vmem, tc>>
  }
  return
}
