// RUN: hlo-opt --passes=stablehlo-refine-shapes --split-input-file %s | filecheck %s

// Sizes of the arguments go through the program; shape computations disappear.
// CHECK-LABEL: module @sizes
// CHECK: func.func @main(%arg0: tensor<6x4xf32>) -> (tensor<24xf32>, tensor<6xi32>, tensor<7x4xf32>)
// CHECK-NOT: dynamic
// CHECK: %[[FLAT:.*]] = stablehlo.reshape %arg0 : (tensor<6x4xf32>) -> tensor<24xf32>
// CHECK: %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<6xi32>
// CHECK: %[[PAD:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [1, 0], high = [0, 0], interior = [0, 0]
// CHECK: return %[[FLAT]], %[[IOTA]], %[[PAD]]
module @sizes {
  func.func @main(%x: tensor<6x4xf32>) -> (tensor<?xf32>, tensor<?xi32>, tensor<?x?xf32>) {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<6x4xf32>) -> tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %all = stablehlo.multiply %n, %four : tensor<i32>
    %shape = stablehlo.reshape %all : (tensor<i32>) -> tensor<1xi32>
    %flat = stablehlo.dynamic_reshape %x, %shape : (tensor<6x4xf32>, tensor<1xi32>) -> tensor<?xf32>
    %line = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %iota = stablehlo.dynamic_iota %line, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
    %none = stablehlo.constant dense<0> : tensor<2xi32>
    %pad = stablehlo.dynamic_pad %x, %zero, %low, %none, %none : (tensor<6x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %flat, %iota, %pad : tensor<?xf32>, tensor<?xi32>, tensor<?x?xf32>
  }
}

// -----

// A function is refined for each combination of types and constants; these leave the signature.
// CHECK-LABEL: module @functions
// CHECK: %[[A:.*]] = call @ones() : () -> tensor<3xf32>
// CHECK: %[[B:.*]] = call @ones_0() : () -> tensor<5xf32>
// CHECK: return %[[A]], %[[B]] : tensor<3xf32>, tensor<5xf32>
// CHECK: func.func private @ones() -> tensor<3xf32>
// CHECK: func.func private @ones_0() -> tensor<5xf32>
module @functions {
  func.func @main() -> (tensor<?xf32>, tensor<?xf32>) {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %a = call @ones(%three) : (tensor<i32>) -> tensor<?xf32>
    %b = call @ones(%five) : (tensor<i32>) -> tensor<?xf32>
    return %a, %b : tensor<?xf32>, tensor<?xf32>
  }
  func.func private @ones(%n: tensor<i32>) -> tensor<?xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %r = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
}

// -----

// What depends on data stays.
// CHECK-LABEL: module @data_stays
// CHECK: stablehlo.dynamic_iota %arg0, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
module @data_stays {
  func.func @main(%n: tensor<1xi32>) -> tensor<?xi32> {
    %r = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    return %r : tensor<?xi32>
  }
}
