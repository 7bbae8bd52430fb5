// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A token that comes after all its operands; of none, a new one.
// CHECK-LABEL: func.func @after_all(
// CHECK: %0 = stablehlo.after_all %arg0, %arg1 : !stablehlo.token
// GENERIC-LABEL: sym_name = "after_all"
// GENERIC: %{{[0-9]+}} = "stablehlo.after_all"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
func.func @after_all(%arg0: !stablehlo.token, %arg1: !stablehlo.token) -> !stablehlo.token {
  %0 = stablehlo.after_all %arg0, %arg1 : !stablehlo.token
  return %0 : !stablehlo.token
}

func.func @run() {
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = stablehlo.create_token : !stablehlo.token
  %2 = stablehlo.after_all %0, %1 : !stablehlo.token
  %3 = stablehlo.after_all : !stablehlo.token
  check.expect_eq %2, %3 : !stablehlo.token
  return
}

// -----

func.func @no_token(%a: tensor<f32>) {
  // expected-error @below {{stablehlo.after_all: operand #0 must be a token, not tensor<f32> [after_all_i1]}}
  %0 = "stablehlo.after_all"(%a) : (tensor<f32>) -> !stablehlo.token
  return
}
