// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A token that comes after nothing.
// CHECK-LABEL: func.func @create_token(
// CHECK: %0 = stablehlo.create_token : !stablehlo.token
// GENERIC-LABEL: sym_name = "create_token"
// GENERIC: %{{[0-9]+}} = "stablehlo.create_token"() : () -> !stablehlo.token
func.func @create_token() -> !stablehlo.token {
  %0 = stablehlo.create_token : !stablehlo.token
  return %0 : !stablehlo.token
}

func.func @run() {
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = stablehlo.after_all %0 : !stablehlo.token
  check.expect_eq %0, %1 : !stablehlo.token
  return
}

// -----

func.func @no_token() {
  // expected-error @below {{stablehlo.create_token: result #0 must be a token, not tensor<i1> [create_token_o1]}}
  %0 = "stablehlo.create_token"() : () -> tensor<i1>
  return
}
