// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One of two values; all three operands are broadcast to one shape.
// CHECK-LABEL: func.func @broadcast_select(
// CHECK: %0 = chlo.broadcast_select %arg0, %arg1, %arg2 : (tensor<i1>, tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "broadcast_select"
// GENERIC: %{{[0-9]+}} = "chlo.broadcast_select"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<i1>, tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
func.func @broadcast_select(%arg0: tensor<i1>, %arg1: tensor<3xf32>, %arg2: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %0 = chlo.broadcast_select %arg0, %arg1, %arg2 : (tensor<i1>, tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %p = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %y = stablehlo.constant dense<[[-1.0, -2.0], [-3.0, -4.0]]> : tensor<2x2xf32>
  %0 = chlo.broadcast_select %p, %x, %y : (tensor<2xi1>, tensor<f32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %0, dense<[[1.0, -2.0], [1.0, -4.0]]> : tensor<2x2xf32>
  return
}

// -----

func.func @broadcast_select_c1(%arg0: tensor<i1>, %arg1: tensor<3xi32>, %arg2: tensor<2x1xf32>) {
  // expected-error @below {{chlo.broadcast_select: element types differ: i32 and f32 [chlo.broadcast_select_c1]}}
  %0 = chlo.broadcast_select %arg0, %arg1, %arg2 : (tensor<i1>, tensor<3xi32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_select_c2(%arg0: tensor<i1>, %arg1: tensor<3xf32>, %arg2: tensor<2x2xf32>) {
  // expected-error @below {{chlo.broadcast_select: 2 and 3 elements do not broadcast [chlo.broadcast_select_c2]}}
  %0 = chlo.broadcast_select %arg0, %arg1, %arg2 : (tensor<i1>, tensor<3xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  return
}
