// RUN: not hlo-opt %s 2>&1 | filecheck %s

// The place is that of the operand, in the file as it is.
// CHECK: invalid.mlir:7:22: error[HLO0032]: %x is used as tensor<5xf32>, but it is tensor<4xf32>
// CHECK-NEXT: %0 = stablehlo.add %x, %x : tensor<5xf32>
func.func @types_differ(%x: tensor<4xf32>) -> tensor<5xf32> {
  %0 = stablehlo.add %x, %x : tensor<5xf32>
  return %0 : tensor<5xf32>
}
