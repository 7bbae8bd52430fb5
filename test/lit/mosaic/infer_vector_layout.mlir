// RUN: mosaic-opt --start-after=tiling-propagation --stop-after=infer-vector-layout %s | filecheck %s

// Vectors have the tiles of what they are loaded from; sums of rows are equal in every sublane.
// CHECK-LABEL: func.func @loaded(
// CHECK: tpu.vector_load %x[%c, %c] {in_layout = [#mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">], out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">]
// CHECK: tpu.reduce <sum>, %v [0] {in_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">], out_layout = [#mosaic_tc.vpad<"32,{*,0},(8,128)">]}
func.func @loaded(%x: memref<24x300xf32, #tpu.tiled<(8,128),[3,1]>, #tpu.memory_space<vmem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %c = arith.constant 0 : index
  %v = tpu.vector_load %x[%c, %c] {strides = array<i32>} : memref<24x300xf32, #tpu.tiled<(8,128),[3,1]>, #tpu.memory_space<vmem, tc>>, vector<24x300xf32>, 
  %s = tpu.reduce <sum>, %v [0] : vector<24x300xf32> -> vector<1x300xf32>
  return
}

// Scalars have no layout.
// CHECK-LABEL: func.func @scalars(
// CHECK-NEXT: %s = arith.addi %a, %a {in_layout = [#mosaic_tc.vpad<"none">, #mosaic_tc.vpad<"none">], out_layout = [#mosaic_tc.vpad<"none">]} : i32
// CHECK-NEXT: return {in_layout = []}
func.func @scalars(%a: i32) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %s = arith.addi %a, %a : i32
  return
}
