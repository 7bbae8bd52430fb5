// RUN: mosaic-opt --start-after=canonicalize-mosaic-2 --stop-after=canonicalize-mosaic-simplify %s | filecheck %s

// Constants are folded and stand first, equal operations are one, dead ones go.
// CHECK-LABEL: func.func @folded(
// CHECK-NEXT: %[[C3:.*]] = arith.constant 3 : i32
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %a, %[[C3]] : i32
// CHECK-NEXT: memref.store %[[SUM]], %y[]
// CHECK-NEXT: memref.store %[[SUM]], %y[]
// CHECK-NEXT: return
func.func @folded(%a: i32, %y: memref<i32, #tpu.memory_space<smem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.addi %one, %two : i32
  %first = arith.addi %a, %three : i32
  %dead = arith.muli %a, %a : i32
  memref.store %first, %y[] : memref<i32, #tpu.memory_space<smem, tc>>
  %second = arith.addi %a, %three : i32
  memref.store %second, %y[] : memref<i32, #tpu.memory_space<smem, tc>>
  return
}

// Loads around a store are two.
// CHECK-LABEL: func.func @unchanged(
// CHECK-NEXT: %a = memref.load %x[]
// CHECK-NEXT: memref.store %a, %y[]
// CHECK-NEXT: %b = memref.load %x[]
// CHECK-NEXT: memref.store %b, %y[]
// CHECK-NEXT: return
func.func @unchanged(%x: memref<i32, #tpu.memory_space<smem, tc>>, %y: memref<i32, #tpu.memory_space<smem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %a = memref.load %x[] : memref<i32, #tpu.memory_space<smem, tc>>
  memref.store %a, %y[] : memref<i32, #tpu.memory_space<smem, tc>>
  %b = memref.load %x[] : memref<i32, #tpu.memory_space<smem, tc>>
  memref.store %b, %y[] : memref<i32, #tpu.memory_space<smem, tc>>
  return
}
