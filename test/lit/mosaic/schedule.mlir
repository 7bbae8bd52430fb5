// RUN: mosaic-opt --start-after=late-loop-unroll --stop-after=schedule %s | filecheck %s

// What waits for nothing on a unit of its own starts before what waits; each operation has its cycle.
// CHECK-LABEL: func.func @reordered(
// CHECK: %a = math.exp %x {cycle = 0 : i64}
// CHECK-NEXT: %c = arith.addi %n, %n
// CHECK-NEXT: %b = arith.mulf %a, %a {cycle = {{[1-9][0-9]*}} : i64}
// CHECK-NEXT: return {cycle = {{[1-9][0-9]*}} : i64}
func.func @reordered(%x: vector<8x128xf32>, %n: i32) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %a = math.exp %x : vector<8x128xf32>
  %b = arith.mulf %a, %a : vector<8x128xf32>
  %c = arith.addi %n, %n : i32
  return
}

// Accesses of memory keep their order.
// CHECK-LABEL: func.func @in_order(
// CHECK: %v = memref.load %s[]
// CHECK-NEXT: memref.store %n, %s[]
// CHECK-NEXT: %w = memref.load %s[]
func.func @in_order(%s: memref<i32, #tpu.memory_space<smem, tc>>, %n: i32) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %v = memref.load %s[] : memref<i32, #tpu.memory_space<smem, tc>>
  memref.store %n, %s[] : memref<i32, #tpu.memory_space<smem, tc>>
  %w = memref.load %s[] : memref<i32, #tpu.memory_space<smem, tc>>
  return
}
