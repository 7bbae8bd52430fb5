// RUN: hlo-opt --passes=stablehlo-target-independent-optimization --split-input-file %s | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %0 = stablehlo.multiply %one, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A quotient by 1 stays, as in XLA.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.divide
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %0 = stablehlo.divide %x, %one : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.constant dense<[2, 3, 4, 5]> : tensor<4xi32>
// CHECK-NEXT: return
func.func @main() -> tensor<4xi32> {
  %a = stablehlo.constant dense<1> : tensor<4xi32>
  %b = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0 = stablehlo.add %a, %b : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.slice %arg0 [1:2, 0:2]
// CHECK-NEXT: return
func.func @main(%x: tensor<2x3xf32>) -> tensor<1x2xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %far = stablehlo.constant dense<-9> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %one, %far, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// -----

// State that a loop never changes is read from outside.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while(%iterArg = %arg0) : tensor<f32>
// CHECK: stablehlo.add %iterArg, %arg1
func.func @main(%x: tensor<f32>, %step: tensor<f32>) -> tensor<f32> {
  %0:2 = stablehlo.while(%s = %x, %d = %step) : tensor<f32>, tensor<f32>
    cond {
      %1 = stablehlo.compare LT, %s, %d, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %s, %d : tensor<f32>
      stablehlo.return %1, %d : tensor<f32>, tensor<f32>
    }
  return %0#0 : tensor<f32>
}
