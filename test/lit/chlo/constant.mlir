// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A literal.
// CHECK-LABEL: func.func @constant(
// CHECK: %0 = chlo.constant dense<1.000000e+00> : tensor<2xf32>
// GENERIC-LABEL: sym_name = "constant"
// GENERIC: %{{[0-9]+}} = "chlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
func.func @constant() -> tensor<2xf32> {
  %0 = chlo.constant dense<1.000000e+00> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %0 = chlo.constant dense<[1.0, -0.0]> : tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, -0.0]> : tensor<2xf32>
  return
}

// -----

func.func @constant_c1() {
  // expected-error @below {{chlo.constant: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.constant_c1]}}
  %0 = chlo.constant() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<3xf32>
  return
}
