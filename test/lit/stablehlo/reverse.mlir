// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The order of elements turned along some dimensions.
// CHECK-LABEL: func.func @reverse(
// CHECK: %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "reverse"
// GENERIC: %{{[0-9]+}} = "stablehlo.reverse"(%{{arg[0-9]+}}) <{dimensions = array<i64: 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @reverse(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %0 = stablehlo.reverse %x, dims = [1] : tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[3, 2, 1], [6, 5, 4]]> : tensor<2x3xi32>
  %1 = stablehlo.reverse %x, dims = [0, 1] : tensor<2x3xi32>
  check.expect_eq_const %1, dense<[[6, 5, 4], [3, 2, 1]]> : tensor<2x3xi32>
  %2 = stablehlo.reverse %x, dims = [] : tensor<2x3xi32>
  check.expect_eq_const %2, dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  return
}

// -----

func.func @reverse_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.reverse: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [reverse_c1]}}
  %0 = stablehlo.reverse %arg0, dims = [0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @reverse_c2(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.reverse: dimensions has duplicates: 0, 0 [reverse_c2]}}
  %0 = stablehlo.reverse %arg0, dims = [0, 0] : tensor<2x3xf32>
  return
}

// -----

func.func @reverse_c3(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.reverse: dimensions has 2, which is none of the 2 dimensions [reverse_c3]}}
  %0 = stablehlo.reverse %arg0, dims = [2] : tensor<2x3xf32>
  return
}
