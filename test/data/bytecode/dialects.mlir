// Operations with native properties of several dialects.

module attributes {gpu.container_module} {
  func.func @f(%a: memref<4x?xf32, strided<[?, 1], offset: ?>>, %i: index, %v: vector<4xf32>, %c: i1, %n: i32) -> (vector<4xf32>, i32) attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %e = arith.constant 0.0 : f32
    %cst = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %s = arith.addf %v, %cst fastmath<fast> : vector<4xf32>
    %cmp = arith.cmpi slt, %n, %n : i32
    %al = memref.alloc(%i) {alignment = 64 : i64} : memref<?x4xf32>
    %sv = memref.subview %a[0, %i] [4, 2] [1, 1] : memref<4x?xf32, strided<[?, 1], offset: ?>> to memref<4x2xf32, strided<[?, 1], offset: ?>>
    %r = scf.for %k = %c0 to %c4 step %c4 iter_args(%x = %n) -> (i32) {
      %y = arith.addi %x, %n overflow<nsw> : i32
      scf.yield %y : i32
    }
    %w = scf.while (%x = %n) : (i32) -> i32 {
      scf.condition(%c) %x : i32
    } do {
    ^bb0(%x: i32):
      scf.yield %x : i32
    }
    scf.parallel (%p) = (%c0) to (%c4) step (%c4) {
      scf.reduce
    }
    %ld = vector.load %al[%c0, %c0] : memref<?x4xf32>, vector<4xf32>
    %tr = vector.transfer_read %al[%c0, %c0], %e {in_bounds = [true]} : memref<?x4xf32>, vector<4xf32>
    %m = math.exp %ld : vector<4xf32>
    cf.cond_br %c, ^bb1(%n : i32), ^bb2
  ^bb1(%z: i32):
    cf.switch %z : i32, [default: ^bb2, 1: ^bb1(%z : i32), 2: ^bb2]
  ^bb2:
    return %s, %r : vector<4xf32>, i32
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @k { gpu.func @kern(%a: memref<4xf32>) kernel { gpu.barrier
 %t = gpu.thread_id x
 gpu.return } }
  func.func @main(%n: index, %m: memref<4xf32>) { gpu.launch_func @k::@kern blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : memref<4xf32>)
 return }
}

// -----

module { sdy.mesh @mesh = <["x"=2, "y"=4]> 
 func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"y":(1)2}], replicated={"y":(2)2}>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) { %1 = stablehlo.add %b, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=4, j=8}, custom>} : tensor<4x8xf32>
   sdy.return %1 : tensor<4x8xf32> } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32> } }

// -----

func.func @m(%a: tensor<4x4xf32>, %g: tensor<3xi32>) -> tensor<4x4xi1> { %0 = chlo.broadcast_compare %a, %a {comparison_direction = #chlo<comparison_direction LT>, compare_type = #chlo<comparison_type FLOAT>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  %v, %i = chlo.top_k(%a, k=2) : tensor<4x4xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %0 : tensor<4x4xi1> }
