// RUN: mosaic-opt --start-after=specialize-any-memory-space --stop-after=canonicalize-memory-space %s | filecheck %s

// VMEM, SMEM and semaphores belong to a core; without a memory it is VMEM.
// CHECK-LABEL: func.func @of_a_core(
// CHECK-SAME: memref<8x128xf32, #tpu.memory_space<vmem, tc>>
// CHECK-SAME: memref<16xi32, #tpu.memory_space<smem, tc>>
// CHECK-SAME: memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem, tc>>
// CHECK-SAME: memref<8x128xf32, #tpu.memory_space<vmem, tc>>
func.func @of_a_core(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %s: memref<16xi32, #tpu.memory_space<smem>>, %d: memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>, %n: memref<8x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  return
}

// HBM belongs to no core.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME: %x: memref<8x128xf32, #tpu.memory_space<hbm>>)
func.func @shared(%x: memref<8x128xf32, #tpu.memory_space<hbm>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  return
}
