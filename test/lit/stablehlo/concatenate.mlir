// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One after the other along a dimension, empty ones too.
// CHECK-LABEL: func.func @concatenate(
// CHECK: %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
// GENERIC-LABEL: sym_name = "concatenate"
// GENERIC: %{{[0-9]+}} = "stablehlo.concatenate"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimension = 1 : i64}> : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
func.func @concatenate(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) -> tensor<2x7xf32> {
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %y = stablehlo.constant dense<[[5], [6]]> : tensor<2x1xi32>
  %empty = stablehlo.constant dense<> : tensor<2x0xi32>
  %0 = stablehlo.concatenate %x, %empty, %y, dim = 1 : (tensor<2x2xi32>, tensor<2x0xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[1, 2, 5], [3, 4, 6]]> : tensor<2x3xi32>
  return
}

// -----

func.func @concatenate_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf64>) {
  // expected-error @below {{stablehlo.concatenate: element types differ: f32 and f64 [concatenate_c1]}}
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3xf32>, tensor<2x4xf64>) -> tensor<2x7xf32>
  return
}

// -----

func.func @concatenate_c2(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) {
  // expected-error @below {{stablehlo.concatenate: shapes do not join: tensor<2x3xf32> and tensor<3x4xf32> [concatenate_c2]}}
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x7xf32>
  return
}

// -----

func.func @concatenate_c3() {
  // expected-error @below {{stablehlo.concatenate: there is no input [concatenate_c3]}}
  %0 = stablehlo.concatenate , dim = 1 : () -> tensor<2x7xf32>
  return
}

// -----

func.func @concatenate_c4(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.concatenate: dimension 2 is none of the 2 dimensions [concatenate_c4]}}
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 2 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  return
}
