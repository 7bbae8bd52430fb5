// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Windows that slide over the operand, each combined with a start value; also dilated and padded.
// CHECK-LABEL: func.func @reduce_window(
// CHECK: %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1, 1>, padding = dense<{{\[\[}}1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %1 : tensor<f32>
// CHECK-NEXT: }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x2xf32>
// GENERIC-LABEL: sym_name = "reduce_window"
// GENERIC: %{{[0-9]+}} = "stablehlo.reduce_window"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{base_dilations = array<i64: 1, 1>, padding = dense<{{\[\[}}1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<f32>) -> ()
// GENERIC-NEXT: }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x2xf32>
func.func @reduce_window(%arg0: tensor<4x4xf32>, %arg1: tensor<f32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<5xi32>, tensor<i32>) -> tensor<3xi32>
  check.expect_eq_const %0, dense<[6, 9, 12]> : tensor<3xi32>
  %2 = "stablehlo.reduce_window"(%x, %zero) <{base_dilations = array<i64: 2>, padding = dense<[[1, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 3>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %3 = stablehlo.maximum %a, %b : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }) : (tensor<5xi32>, tensor<i32>) -> tensor<4xi32>
  check.expect_eq_const %2, dense<[2, 3, 4, 5]> : tensor<4xi32>
  return
}

// -----

func.func @reduce_window_c1(%arg0: tensor<4x4xf32>) {
  // expected-error @below {{stablehlo.reduce_window: 1 operands are not inputs and as many initial values [reduce_window_c1]}}
  %0 = "stablehlo.reduce_window"(%arg0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x4xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @reduce_window_c2(%arg0: tensor<4x4xf32>, %arg1: tensor<4x5xf32>, %arg2: tensor<f32>, %arg3: tensor<f32>) {
  // expected-error @below {{stablehlo.reduce_window: shapes differ: tensor<4x4xf32> and tensor<4x5xf32> [reduce_window_c2]}}
  %0:2 = "stablehlo.reduce_window"(%arg0, %arg1, %arg2, %arg3) <{base_dilations = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
    %1 = stablehlo.add %arg4, %arg5 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<4x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @reduce_window_c3(%arg0: tensor<4x4xf32>, %arg1: tensor<i32>) {
  // expected-error @below {{stablehlo.reduce_window: element types differ: f32 and i32 [reduce_window_c3]}}
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<i32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @reduce_window_c4(%arg0: tensor<4x4xf32>, %arg1: tensor<f32>) {
  // expected-error @below {{stablehlo.reduce_window: window_dimensions has 1 entries for rank 2 [reduce_window_c4]}}
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x2xf32>
  return
}
