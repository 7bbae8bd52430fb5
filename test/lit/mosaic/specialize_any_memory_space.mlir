// RUN: mosaic-opt --stop-after=specialize-any-memory-space %s | filecheck %s

// `any` becomes `hbm`, and the argument keeps that it was not stated.
// CHECK-LABEL: func.func @unspecified(
// CHECK-SAME: %x: memref<8x128xf32, #tpu.memory_space<hbm>> {llo.unspecified_memory_space}
// CHECK: tpu.memref_slice %x{{.*}} : memref<8x128xf32, #tpu.memory_space<hbm>> -> memref<8x128xf32, #tpu.memory_space<hbm>>
func.func @unspecified(%x: memref<8x128xf32, #tpu.memory_space<any>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant 0 : i32
  %s = tpu.memref_slice %x[%c, %c] : memref<8x128xf32, #tpu.memory_space<any>> -> memref<8x128xf32, #tpu.memory_space<any>>
  return
}

// A memory that is stated stays.
// CHECK-LABEL: func.func @stated(
// CHECK-SAME: %x: memref<8x128xf32, #tpu.memory_space<vmem>>, %y: memref<8x128xf32, #tpu.memory_space<hbm>>)
func.func @stated(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %y: memref<8x128xf32, #tpu.memory_space<hbm>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  return
}
