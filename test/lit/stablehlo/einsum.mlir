// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Sums of products by a formula of letters (an op of the past).
// CHECK-LABEL: func.func @einsum(
// CHECK: %0 = stablehlo.einsum %arg0, %arg1, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
// GENERIC-LABEL: sym_name = "einsum"
// GENERIC: %{{[0-9]+}} = "stablehlo.einsum"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{einsum_config = "ab,bc->ac"}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @einsum(%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.einsum %arg0, %arg1, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

func.func @run() {
  %a = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %b = stablehlo.constant dense<[[1, 10], [100, 1000]]> : tensor<2x2xi32>
  %0 = stablehlo.einsum %a, %b, config = "ij,kj->ik" : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[21, 2100], [43, 4300]]> : tensor<2x2xi32>
  return
}

// -----

func.func @no_matrix(%a: !stablehlo.token, %b: tensor<3x4xf32>) {
  // expected-error @below {{stablehlo.einsum: operand #0 must be a tensor of bool or integer or float or complex or per-tensor quantized or per-axis quantized elements, not !stablehlo.token [einsum_i1]}}
  %0 = "stablehlo.einsum"(%a, %b) <{einsum_config = "ab,bc->ac"}> : (!stablehlo.token, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
