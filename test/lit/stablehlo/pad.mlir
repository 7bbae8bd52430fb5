// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Padding at both ends and between elements; negative padding takes away.
// CHECK-LABEL: func.func @pad(
// CHECK: %0 = stablehlo.pad %arg0, %arg1, low = [1, -1], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
// GENERIC-LABEL: sym_name = "pad"
// GENERIC: %{{[0-9]+}} = "stablehlo.pad"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 1, -1>, interior_padding = array<i64: 1, 0>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
func.func @pad(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) -> tensor<4x2xf32> {
  %0 = stablehlo.pad %arg0, %arg1, low = [1, -1], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %p = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.pad %x, %p, low = [1], high = [2], interior = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<8xi32>
  check.expect_eq_const %0, dense<[0, 1, 0, 2, 0, 3, 0, 0]> : tensor<8xi32>
  %1 = stablehlo.pad %x, %p, low = [-1], high = [1], interior = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  check.expect_eq_const %1, dense<[2, 3, 0]> : tensor<3xi32>
  %2 = stablehlo.pad %x, %p, low = [-1], high = [-1], interior = [2] : (tensor<3xi32>, tensor<i32>) -> tensor<5xi32>
  check.expect_eq_const %2, dense<[0, 0, 2, 0, 0]> : tensor<5xi32>
  return
}

// -----

func.func @pad_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<f64>) {
  // expected-error @below {{stablehlo.pad: element types differ: f32 and f64 [pad_c1]}}
  %0 = stablehlo.pad %arg0, %arg1, low = [1, -1], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f64>) -> tensor<4x2xf32>
  return
}

// -----

func.func @pad_c2(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  // expected-error @below {{stablehlo.pad: edge_padding_low has 1 entries for rank 2 [pad_c2]}}
  %0 = stablehlo.pad %arg0, %arg1, low = [1], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @pad_c3(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  // expected-error @below {{stablehlo.pad: interior padding is negative: -1, 0 [pad_c3]}}
  %0 = stablehlo.pad %arg0, %arg1, low = [1, -1], high = [0, 0], interior = [-1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @pad_c4(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  // expected-error @below {{stablehlo.pad: dimension 1 would have -6 elements [pad_c4]}}
  %0 = stablehlo.pad %arg0, %arg1, low = [1, -9], high = [0, 0], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>
  return
}
