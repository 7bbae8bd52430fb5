// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Bit by bit; the operand of lower rank is repeated, here along the first dimension.
// CHECK-LABEL: func.func @broadcast_or(
// CHECK: %0 = chlo.broadcast_or %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "broadcast_or"
// GENERIC: %{{[0-9]+}} = "chlo.broadcast_or"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
func.func @broadcast_or(%arg0: tensor<2x3xi32>, %arg1: tensor<3xi32>) -> tensor<2x3xi32> {
  %0 = chlo.broadcast_or %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[12, -1], [0, 8]]> : tensor<2x2xi32>
  %y = stablehlo.constant dense<[10, 7]> : tensor<2xi32>
  %0 = chlo.broadcast_or %x, %y : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[14, -1], [10, 15]]> : tensor<2x2xi32>
  return
}

// -----

func.func @broadcast_or_c1(%arg0: tensor<2x3xi32>, %arg1: tensor<3xui32>) {
  // expected-error @below {{chlo.broadcast_or: element types differ: i32 and ui32 [chlo.broadcast_or_c1]}}
  %0 = chlo.broadcast_or %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<3xui32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @broadcast_or_c2(%arg0: tensor<2x3xi32>, %arg1: tensor<3xi32>) {
  // expected-error @below {{chlo.broadcast_or: 2 are not ascending dimensions of tensor<2x3xi32> [chlo.broadcast_or_c2]}}
  %0 = chlo.broadcast_or %arg0, %arg1 {broadcast_dimensions = array<i64: 2>} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @broadcast_or_c3(%arg0: tensor<2x3xi32>, %arg1: tensor<2xi32>) {
  // expected-error @below {{chlo.broadcast_or: 2 and 3 elements do not broadcast: tensor<2x3xi32> and tensor<2xi32> [chlo.broadcast_or_c3]}}
  %0 = chlo.broadcast_or %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}
