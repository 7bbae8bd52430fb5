// RUN: hlo-opt --passes=stablehlo-canonicalize-dynamism %s | filecheck %s

// CHECK: func.func @main
// CHECK: %[[R:.*]] = stablehlo.reshape %arg0 : (tensor<6xf32>) -> tensor<2x3xf32>
// CHECK: %[[S:.*]] = stablehlo.slice %arg0 [1:5:2] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK: %[[D:.*]] = stablehlo.dynamic_slice %arg0, %{{.*}}, sizes = [4] : (tensor<6xf32>, tensor<i32>) -> tensor<4xf32>
// CHECK: %[[P:.*]] = stablehlo.real_dynamic_slice
// CHECK: return %[[R]], %[[S]], %[[D]], %[[P]]
func.func @main(%x: tensor<6xf32>, %at: tensor<1xi32>, %end: tensor<1xi32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<4xf32>, tensor<?xf32>) {
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
  %r = stablehlo.dynamic_reshape %x, %shape : (tensor<6xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %five = stablehlo.constant dense<5> : tensor<1xi32>
  %s = stablehlo.real_dynamic_slice %x, %one, %five, %two : (tensor<6xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
  %d = stablehlo.real_dynamic_slice %x, %at, %end, %one : (tensor<6xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xf32>
  %p = stablehlo.real_dynamic_slice %x, %at, %end, %one : (tensor<6xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %r, %s, %d, %p : tensor<2x3xf32>, tensor<2xf32>, tensor<4xf32>, tensor<?xf32>
}
