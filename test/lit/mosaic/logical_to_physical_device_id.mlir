// RUN: mosaic-opt --start-after=apply-vector-layout-simplify --stop-after=logical-to-physical-device-id %s | filecheck %s

// A signal to another device names its core, the first.
// CHECK-LABEL: func.func @remote(
// CHECK: %[[CORE:.*]] = arith.constant 0 : i32
// CHECK-NEXT: tpu.sem_signal %s, %n device_id %d core_id %[[CORE]]
func.func @remote(%s: memref<!tpu.semaphore, #tpu.tiled<,[]>, #tpu.memory_space<semaphore_mem, tc>>, %d: i32) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %n = arith.constant 1 : i32
  tpu.sem_signal %s, %n device_id %d : memref<!tpu.semaphore, #tpu.tiled<,[]>, #tpu.memory_space<semaphore_mem, tc>>
  return
}

// One to the device itself names neither.
// CHECK-LABEL: func.func @local(
// CHECK-NEXT: %n = arith.constant 1 : i32
// CHECK-NEXT: tpu.sem_signal %s, %n :
func.func @local(%s: memref<!tpu.semaphore, #tpu.tiled<,[]>, #tpu.memory_space<semaphore_mem, tc>>) attributes {tpu.core_type = #tpu.core_type<tc>} {
  %n = arith.constant 1 : i32
  tpu.sem_signal %s, %n : memref<!tpu.semaphore, #tpu.tiled<,[]>, #tpu.memory_space<semaphore_mem, tc>>
  return
}
