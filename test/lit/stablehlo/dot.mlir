// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Products of vectors and matrices (an op of the past).
// CHECK-LABEL: func.func @dot(
// CHECK: %0 = stablehlo.dot %arg0, %arg1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
// GENERIC-LABEL: sym_name = "dot"
// GENERIC: %{{[0-9]+}} = "stablehlo.dot"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @dot(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

func.func @run() {
  %a = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %b = stablehlo.constant dense<[[1], [0], [-1]]> : tensor<3x1xi32>
  %0 = stablehlo.dot %a, %b : (tensor<2x3xi32>, tensor<3x1xi32>) -> tensor<2x1xi32>
  check.expect_eq_const %0, dense<[[-2], [-2]]> : tensor<2x1xi32>
  %v = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %1 = stablehlo.dot %v, %v : (tensor<3xi32>, tensor<3xi32>) -> tensor<i32>
  check.expect_eq_const %1, dense<14> : tensor<i32>
  return
}

// -----

func.func @dot_c1(%arg0: tensor<1x2x3xf32>, %arg1: tensor<3x4xf32>) {
  // expected-error @below {{stablehlo.dot: both sides have rank 1 or 2, not tensor<1x2x3xf32> and tensor<3x4xf32> [dot_c1]}}
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<1x2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_c2(%arg0: tensor<2x4xf32>, %arg1: tensor<3x4xf32>) {
  // expected-error @below {{stablehlo.dot: contracted dimensions have 4 and 3 elements [dot_c2]}}
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_c3(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) {
  // expected-error @below {{stablehlo.dot: precision_config has 3 entries [dot_c3]}}
  %0 = stablehlo.dot %arg0, %arg1, precision = [HIGH, HIGH, HIGH] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_c4(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) {
  // expected-error @below {{stablehlo.dot: result #0 is tensor<4x2xf32>, but tensor<2x4xf32> follows from the operands [dot_c4]}}
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>
  return
}
