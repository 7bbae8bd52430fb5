// RUN: mosaic-opt --start-after=relayout-insertion --stop-after=apply-vector-layout %s | filecheck %s

// Vectors become registers of 8 by 128.
// CHECK-LABEL: func.func @registers(
// CHECK-COUNT-2: tpu.load %{{.*}}{{.*}} sublanes [true, true, true, true, true, true, true, true] : memref<16x128xf32, {{.*}}>, vector<8x128xf32>
// CHECK: arith.addf %{{.*}} : vector<8x128xf32>
// CHECK: arith.addf %{{.*}} : vector<8x128xf32>
// CHECK-COUNT-2: tpu.store
// CHECK: return
func.func @registers(%x: memref<16x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant {in_layout = [], out_layout = [#mosaic_tc.vpad<"none">]} 0 : index
  %v = tpu.vector_load %x[%c, %c] {in_layout = [#mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">], out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">], strides = array<i32>} : memref<16x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>>, vector<16x128xf32>, 
  %w = arith.addf %v, %v {in_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">, #mosaic_tc.vpad<"32,{0,0},(8,128)">], out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">]} : vector<16x128xf32>
  tpu.vector_store %x[%c, %c], %w {in_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">, #mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">], strides = array<i32>} : memref<16x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>>, vector<16x128xf32>, 
  return {in_layout = []}
}

// Scalars stay.
// CHECK-LABEL: func.func @scalars(
// CHECK-NEXT: %s = arith.addi %a, %a
// CHECK-NEXT: return
func.func @scalars(%a: i32) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %s = arith.addi %a, %a {in_layout = [#mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">], out_layout = [#mosaic_tc.vpad<"none">]} : i32
  return {in_layout = []}
}
