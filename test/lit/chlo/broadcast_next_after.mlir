// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The next floats towards others; the operand of lower rank is repeated, here along the first
// dimension.
// CHECK-LABEL: func.func @broadcast_next_after(
// CHECK: %0 = chlo.broadcast_next_after %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "broadcast_next_after"
// GENERIC: %{{[0-9]+}} = "chlo.broadcast_next_after"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
func.func @broadcast_next_after(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = chlo.broadcast_next_after %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1.0, 0.0], [3.0, -0.0]]> : tensor<2x2xf32>
  %y = stablehlo.constant dense<[2.0, 1.0]> : tensor<2xf32>
  %0 = chlo.broadcast_next_after %x, %y : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %0, dense<[[1.00000012, 1.40129846e-45], [2.99999976, 1.40129846e-45]]> : tensor<2x2xf32>
  return
}

// -----

func.func @broadcast_next_after_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf64>) {
  // expected-error @below {{chlo.broadcast_next_after: element types differ: f32 and f64 [chlo.broadcast_next_after_c1]}}
  %0 = chlo.broadcast_next_after %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<3xf64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_next_after_c2(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) {
  // expected-error @below {{chlo.broadcast_next_after: 2 are not ascending dimensions of tensor<2x3xf32> [chlo.broadcast_next_after_c2]}}
  %0 = chlo.broadcast_next_after %arg0, %arg1 {broadcast_dimensions = array<i64: 2>} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_next_after_c3(%arg0: tensor<2x3xf32>, %arg1: tensor<2xf32>) {
  // expected-error @below {{chlo.broadcast_next_after: 2 and 3 elements do not broadcast: tensor<2x3xf32> and tensor<2xf32> [chlo.broadcast_next_after_c3]}}
  %0 = chlo.broadcast_next_after %arg0, %arg1 {broadcast_dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}
