// RUN: hlo-opt %s | filecheck %s
// RUN: hlo-opt --emit=mlir-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt --emit=mlir-generic %s | hlo-opt - | filecheck %s

// The forms that JAX prints come out again; a generic form gets the pretty form that the op has.

// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %arg0: tensor<2x3xf32> {jax.buffer_donor = true}
// CHECK-SAME: -> (tensor<2xf32> {jax.result_info = "result"})
// GENERIC: sym_name = "main"
func.func public @main(%x: tensor<2x3xf32> {jax.buffer_donor = true}) -> (tensor<2xf32> {jax.result_info = "result"}) {
  // CHECK: %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // GENERIC: "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
  %0 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  // CHECK-NEXT: %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1]
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  // CHECK-NEXT: %1 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = "stablehlo.transpose"(%x) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: %c = stablehlo.constant dense<0> : tensor<i32>
  %3 = stablehlo.constant dense<0> : tensor<i32>
  // CHECK-NEXT: %2:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %0) : tensor<i32>, tensor<2xf32>
  // CHECK-NEXT: cond {
  %4:2 = stablehlo.while(%i = %3, %v = %1) : tensor<i32>, tensor<2xf32>
  cond {
    %5 = stablehlo.constant dense<3> : tensor<i32>
    // CHECK: stablehlo.compare LT, %iterArg, %c_1, SIGNED :
    %6 = stablehlo.compare  LT, %i, %5,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  } do {
    %5 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %i, %5 : tensor<i32>
    // CHECK: func.call @double(%iterArg_0)
    %7 = func.call @double(%v) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %6, %7 : tensor<i32>, tensor<2xf32>
  }
  // CHECK: return %2#1 : tensor<2xf32>
  return %4#1 : tensor<2xf32>
}

// CHECK-LABEL: func.func private @double
func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: stablehlo.add %arg0, %arg0 : tensor<2xf32>
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
