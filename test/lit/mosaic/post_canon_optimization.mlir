// RUN: mosaic-opt %s -o %t
// RUN: mosaic-opt --start-after=canonicalize-mosaic --stop-after=post-canon-optimization %s | diff %t -

// The TPU compiler's stage has nothing to do on our operations: the module stays as it is, loops too.
func.func @main(%x: memref<8x128xf32, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %l = arith.constant 0 : i32
  %u = arith.constant 2 : i32
  %s = arith.constant 1 : i32
  scf.for %i = %l to %u step %s : i32 {
    %c = arith.constant 0 : index
    %v = tpu.vector_load %x[%c, %c] {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem, tc>>, vector<8x128xf32>, 
    %w = arith.addf %v, %v : vector<8x128xf32>
    tpu.vector_store %x[%c, %c], %w {strides = array<i32>} : memref<8x128xf32, #tpu.memory_space<vmem, tc>>, vector<8x128xf32>, 
    scf.yield
  }
  return
}
