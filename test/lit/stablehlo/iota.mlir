// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Numbers counted along one dimension, in any type; narrow integers wrap.
// CHECK-LABEL: func.func @iota(
// CHECK: %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "iota"
// GENERIC: %{{[0-9]+}} = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>
func.func @iota() -> tensor<2x3xi32> {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[0, 1, 2], [0, 1, 2]]> : tensor<2x3xi32>
  %1 = stablehlo.iota dim = 0 : tensor<2x3xf32>
  check.expect_eq_const %1, dense<[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]> : tensor<2x3xf32>
  %2 = stablehlo.iota dim = 0 : tensor<5xi2>
  %3 = stablehlo.convert %2 : (tensor<5xi2>) -> tensor<5xi32>
  check.expect_eq_const %3, dense<[0, 1, -2, -1, 0]> : tensor<5xi32>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @below {{stablehlo.iota: iota_dimension has 2, which is none of the 2 dimensions [iota_c1]}}
  %0 = stablehlo.iota dim = 2 : tensor<2x3xi32>
  return
}
