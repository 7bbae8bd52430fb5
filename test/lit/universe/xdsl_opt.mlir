// RUN: xdsl-opt -p hlo-dce %s | filecheck %s
// RUN: xdsl-opt -p tuple-simplifier,hlo-dce %s | filecheck %s --check-prefix=TUPLE
// RUN: hlo-opt --emit mlir %s | filecheck %s --check-prefix=OURS

// xDSL's own tool knows the dialect and the passes by the entry point; `dce` and `cse` are names of
// its own passes, so ours have `hlo-` in front there.
builtin.module @m {
  hlo.computation entry @main {
    %x = hlo.parameter 0 : tensor<4xf32>
    // CHECK-NOT: hlo.negate
    // OURS: %dead = hlo.negate %x
    %dead = hlo.negate %x : tensor<4xf32>
    // CHECK: %t = hlo.tuple
    // TUPLE-NOT: hlo.tuple
    %t = hlo.tuple %x, %x : tuple<tensor<4xf32>, tensor<4xf32>>
    %e = hlo.get_tuple_element %t {index = 1} : tensor<4xf32>
    hlo.return %e
  }
}
