// RUN: mosaic-opt --start-after=infer-vector-layout --stop-after=relayout-insertion %s | filecheck %s

// A value gets its other layout where it is used, for each operand.
// CHECK-LABEL: func.func @differ(
// CHECK: %v = arith.addf
// CHECK-NEXT: %[[FIRST:.*]] = mosaic_tc.relayout %v
// CHECK-SAME: in_layout = [#mosaic_tc.vpad<"32,{*,0},(8,128)">]
// CHECK-SAME: out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">]
// CHECK-NEXT: %[[SECOND:.*]] = mosaic_tc.relayout %v
// CHECK-NEXT: %w = arith.mulf %[[FIRST]], %[[SECOND]]
func.func @differ(%a: vector<8x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %v = arith.addf %a, %a {in_layout = [#mosaic_tc.vpad<"32,{*,0},(8,128)">, #mosaic_tc.vpad<"32,{*,0},(8,128)">], out_layout = [#mosaic_tc.vpad<"32,{*,0},(8,128)">]} : vector<8x128xf32>
  %w = arith.mulf %v, %v {in_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">, #mosaic_tc.vpad<"32,{0,0},(8,128)">], out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">]} : vector<8x128xf32>
  return
}

// Equal layouts need nothing.
// CHECK-LABEL: func.func @equal(
// CHECK-NOT: mosaic_tc.relayout
// CHECK: return
func.func @equal(%a: vector<8x128xf32>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %v = arith.addf %a, %a {in_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">, #mosaic_tc.vpad<"32,{0,0},(8,128)">], out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">]} : vector<8x128xf32>
  %w = arith.mulf %v, %v {in_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">, #mosaic_tc.vpad<"32,{0,0},(8,128)">], out_layout = [#mosaic_tc.vpad<"32,{0,0},(8,128)">]} : vector<8x128xf32>
  return
}
