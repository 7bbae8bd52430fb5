module @double {
  func.func @main(%x: memref<8x128xf32, #tpu.memory_space<vmem>>, %y: memref<8x128xf32, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
    %c0 = arith.constant 0 : index
    %v = tpu.vector_load %x[%c0, %c0] {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>, 
    %r = arith.addf %v, %v : vector<8x128xf32>
    tpu.vector_store %y[%c0, %c0], %r {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>, 
    return
  }
}
