// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC

// Sums and permutations by a formula of letters (an op of the past).
// CHECK-LABEL: func.func @unary_einsum(
// CHECK: %0 = stablehlo.unary_einsum %arg0, config = "ab->a" : (tensor<2x3xf32>) -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "unary_einsum"
// GENERIC: %{{[0-9]+}} = "stablehlo.unary_einsum"(%{{arg[0-9]+}}) <{einsum_config = "ab->a"}> : (tensor<2x3xf32>) -> tensor<2xf32>
func.func @unary_einsum(%arg0: tensor<2x3xf32>) -> tensor<2xf32> {
  %0 = stablehlo.unary_einsum %arg0, config = "ab->a" : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Not executed: no conversion to HLO knows the op, XLA has none either.

// -----

func.func @no_matrix(%a: !stablehlo.token) {
  // expected-error @below {{stablehlo.unary_einsum: operand #0 must be a tensor of bool or integer or float or complex or per-tensor quantized or per-axis quantized elements, not !stablehlo.token [unary_einsum_i1]}}
  %0 = "stablehlo.unary_einsum"(%a) <{einsum_config = "ab->a"}> : (!stablehlo.token) -> tensor<2xf32>
  return
}
