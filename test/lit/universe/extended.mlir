// RUN: xdsl-opt %s | filecheck %s
// RUN: xdsl-opt -p canonicalize,dce %s | filecheck %s --check-prefix=PASSES

// xDSL's dialects know MLIR's ops on vectors, and xDSL's passes still know the ops.

// CHECK: arith.cmpf olt, %a, %b : vector<4xf32>
// CHECK: arith.select %m, %a, %b : vector<4xi1>, vector<4xf32>
// CHECK: memref.prefetch %p[%i], read, locality<3>, data : memref<8xf32>
// CHECK: llvm.select %m, %a, %b : vector<4xi1>, vector<4xf32>
// CHECK: "mlirhlo.permute"(%n, %a)
// PASSES: "test.op"(%n, %k)
%a, %b, %n, %p, %i, %j, %k = "test.op"() : () -> (vector<4xf32>, vector<4xf32>, vector<4xi32>, memref<8xf32>, index, i32, i32)
%m = arith.cmpf olt, %a, %b : vector<4xf32>
%s = arith.select %m, %a, %b : vector<4xi1>, vector<4xf32>
memref.prefetch %p[%i], read, locality<3>, data : memref<8xf32>
%t = llvm.select %m, %a, %b : vector<4xi1>, vector<4xf32>
%q = "mlirhlo.permute"(%n, %a) : (vector<4xi32>, vector<4xf32>) -> vector<4xf32>
%yes = arith.constant true
%one = arith.select %yes, %k, %j : i32
"test.op"(%n, %one) : (vector<4xi32>, i32) -> ()
