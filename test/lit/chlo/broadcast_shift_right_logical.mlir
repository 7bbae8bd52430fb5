// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Shifts of bits; the operand of lower rank is repeated, here along the first dimension.
// CHECK-LABEL: func.func @broadcast_shift_right_logical(
// CHECK: %0 = chlo.broadcast_shift_right_logical %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "broadcast_shift_right_logical"
// GENERIC: %{{[0-9]+}} = "chlo.broadcast_shift_right_logical"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
func.func @broadcast_shift_right_logical(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = chlo.broadcast_shift_right_logical %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[-128, -128], [7, 127]]> : tensor<2x2xi8>
  %y = stablehlo.constant dense<[1, 8]> : tensor<2xi8>
  %0 = chlo.broadcast_shift_right_logical %x, %y : (tensor<2x2xi8>, tensor<2xi8>) -> tensor<2x2xi8>
  check.expect_eq_const %0, dense<[[64, 0], [3, 0]]> : tensor<2x2xi8>
  return
}

// -----

func.func @broadcast_shift_right_logical_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf64>) {
  // expected-error @below {{chlo.broadcast_shift_right_logical: element types differ: f32 and f64 [chlo.broadcast_shift_right_logical_c1]}}
  %0 = chlo.broadcast_shift_right_logical %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_shift_right_logical_c2(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) {
  // expected-error @below {{chlo.broadcast_shift_right_logical: 2 are not ascending dimensions of tensor<2x3xf32> [chlo.broadcast_shift_right_logical_c2]}}
  %0 = chlo.broadcast_shift_right_logical %arg0, %arg1 {broadcast_dimensions = array<i64: 2>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_shift_right_logical_c3(%arg0: tensor<2x3xf32>, %arg1: tensor<2xf32>) {
  // expected-error @below {{chlo.broadcast_shift_right_logical: 2 and 3 elements do not broadcast: tensor<2x3xf32> and tensor<2xf32> [chlo.broadcast_shift_right_logical_c3]}}
  %0 = chlo.broadcast_shift_right_logical %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}
