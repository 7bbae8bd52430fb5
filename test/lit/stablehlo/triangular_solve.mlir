// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Equations with a triangular matrix, from either side, transposed or not; the other triangle is not
// looked at.
// CHECK-LABEL: func.func @triangular_solve(
// CHECK: %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
// GENERIC-LABEL: sym_name = "triangular_solve"
// GENERIC: %{{[0-9]+}} = "stablehlo.triangular_solve"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
func.func @triangular_solve(%arg0: tensor<2x3x3xf32>, %arg1: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

func.func @run() {
  %a = stablehlo.constant dense<[[2.0, 99.0], [1.0, 4.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[4.0], [10.0]]> : tensor<2x1xf32>
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  check.expect_almost_eq_const %0, dense<[[2.0], [2.0]]> : tensor<2x1xf32>
  %1 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  check.expect_almost_eq_const %1, dense<[[0.75], [2.5]]> : tensor<2x1xf32>
  %2 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  check.expect_almost_eq_const %2, dense<[[4.0], [6.0]]> : tensor<2x1xf32>
  %c = stablehlo.constant dense<[[4.0, 8.0]]> : tensor<1x2xf32>
  %3 = "stablehlo.triangular_solve"(%a, %c) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
  check.expect_almost_eq_const %3, dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  return
}

// -----

func.func @triangular_solve_c1(%arg0: tensor<2x3x3xf32>, %arg1: tensor<2x3x5xf64>) {
  // expected-error @below {{stablehlo.triangular_solve: element types differ: f32 and f64 [triangular_solve_c1]}}
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x5xf64>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @triangular_solve_c2(%arg0: tensor<2x3x3xf32>, %arg1: tensor<3x5xf32>) {
  // expected-error @below {{stablehlo.triangular_solve: ranks are 3 and 2 [triangular_solve_c2]}}
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<3x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @triangular_solve_c3(%arg0: tensor<2x3x3xf32>, %arg1: tensor<2x4x5xf32>) {
  // expected-error @below {{stablehlo.triangular_solve: the matrices of tensor<2x3x3xf32> and tensor<2x4x5xf32> do not multiply [triangular_solve_c3]}}
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @triangular_solve_c4(%arg0: tensor<2x3x3xf32>, %arg1: tensor<2x3x5xf32>) {
  // expected-error @below {{stablehlo.triangular_solve: result #0 is tensor<2x3x6xf32>, but tensor<2x3x5xf32> follows from the operands [triangular_solve_c4]}}
  %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x6xf32>
  return
}
