// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Bit by bit; the operand of lower rank is repeated, here along the first dimension.
// CHECK-LABEL: func.func @broadcast_and(
// CHECK: %0 = chlo.broadcast_and %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "broadcast_and"
// GENERIC: %{{[0-9]+}} = "chlo.broadcast_and"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
func.func @broadcast_and(%arg0: tensor<2x3xi32>, %arg1: tensor<3xi32>) -> tensor<2x3xi32> {
  %0 = chlo.broadcast_and %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[12, -1], [0, 5]]> : tensor<2x2xi32>
  %y = stablehlo.constant dense<[10, 7]> : tensor<2xi32>
  %0 = chlo.broadcast_and %x, %y : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[8, 7], [0, 5]]> : tensor<2x2xi32>
  return
}

// -----

func.func @broadcast_and_c1(%arg0: tensor<2x3xi32>, %arg1: tensor<3xui32>) {
  // expected-error @below {{chlo.broadcast_and: element types differ: i32 and ui32 [chlo.broadcast_and_c1]}}
  %0 = chlo.broadcast_and %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<3xui32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @broadcast_and_c2(%arg0: tensor<2x3xi32>, %arg1: tensor<3xi32>) {
  // expected-error @below {{chlo.broadcast_and: 2 are not ascending dimensions of tensor<2x3xi32> [chlo.broadcast_and_c2]}}
  %0 = chlo.broadcast_and %arg0, %arg1 {broadcast_dimensions = array<i64: 2>} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @broadcast_and_c3(%arg0: tensor<2x3xi32>, %arg1: tensor<2xi32>) {
  // expected-error @below {{chlo.broadcast_and: 2 and 3 elements do not broadcast: tensor<2x3xi32> and tensor<2xi32> [chlo.broadcast_and_c3]}}
  %0 = chlo.broadcast_and %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}
