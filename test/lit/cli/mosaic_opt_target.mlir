// RUN: not mosaic-opt --target=v5e %s 2>&1 | filecheck %s
// RUN: mosaic-opt --target=v6e --memory %s 2>&1 | filecheck %s --check-prefix=TAKEN

// CHECK: mosaic_opt_target.mlir:{{[0-9]+}}:{{[0-9]+}}: error[HLO0741]: v5e does not take tpu.reciprocal
// CHECK: help: cast to f32 before, and back after
// TAKEN: memory            bytes  buffers  who            type
// TAKEN: vmem              {{[0-9]+}}  of 33554432 on v6e
// TAKEN: tpu.reciprocal

func.func @main(%x: memref<16x128xbf16, #tpu.memory_space<vmem>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant 0 : index
  %v = vector.load %x[%c, %c] : memref<16x128xbf16, #tpu.memory_space<vmem>>, vector<16x128xbf16>
  %r = tpu.reciprocal %v {approx = true} : vector<16x128xbf16> -> vector<16x128xbf16>
  return
}
