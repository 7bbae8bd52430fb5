// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// L times its transpose is the operand, whose other half is not looked at.
// CHECK-LABEL: func.func @cholesky(
// CHECK: %0 = stablehlo.cholesky %arg0, lower = true : tensor<3x4x4xf32>
// GENERIC-LABEL: sym_name = "cholesky"
// GENERIC: %{{[0-9]+}} = "stablehlo.cholesky"(%{{arg[0-9]+}}) <{lower = true}> : (tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
func.func @cholesky(%arg0: tensor<3x4x4xf32>) -> tensor<3x4x4xf32> {
  %0 = stablehlo.cholesky %arg0, lower = true : tensor<3x4x4xf32>
  return %0 : tensor<3x4x4xf32>
}

func.func @run() {
  %a = stablehlo.constant dense<[[4.0, 99.0], [2.0, 10.0]]> : tensor<2x2xf32>
  %0 = stablehlo.cholesky %a, lower = true : tensor<2x2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<2x2xf32>
  %row = stablehlo.iota dim = 0 : tensor<2x2xi32>
  %column = stablehlo.iota dim = 1 : tensor<2x2xi32>
  %1 = stablehlo.compare GE, %row, %column : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
  %2 = stablehlo.select %1, %0, %zero : tensor<2x2xi1>, tensor<2x2xf32>
  check.expect_almost_eq_const %2, dense<[[2.0, 0.0], [1.0, 3.0]]> : tensor<2x2xf32>
  %bad = stablehlo.constant dense<[[-1.0]]> : tensor<1x1xf32>
  %3 = stablehlo.cholesky %bad, lower = true : tensor<1x1xf32>
  check.expect_eq_const %3, dense<0x7FC00000> : tensor<1x1xf32>
  return
}

// -----

func.func @cholesky_c1(%arg0: tensor<3x4x4xf32>) {
  // expected-error @below {{stablehlo.cholesky: result #0 is tensor<4x4x4xf32>, but tensor<3x4x4xf32> follows from the operands [cholesky_c1]}}
  %0 = stablehlo.cholesky %arg0, lower = true : (tensor<3x4x4xf32>) -> tensor<4x4x4xf32>
  return
}

// -----

func.func @cholesky_c2(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.cholesky: the operand has rank 1 [cholesky_c2]}}
  %0 = stablehlo.cholesky %arg0, lower = true : (tensor<4xf32>) -> tensor<3x4x4xf32>
  return
}

// -----

func.func @cholesky_c3(%arg0: tensor<3x4x5xf32>) {
  // expected-error @below {{stablehlo.cholesky: the matrices of tensor<3x4x5xf32> are not square [cholesky_c3]}}
  %0 = stablehlo.cholesky %arg0, lower = true : (tensor<3x4x5xf32>) -> tensor<3x4x4xf32>
  return
}
