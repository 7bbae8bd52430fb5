// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Which partition this is.
// CHECK-LABEL: func.func @partition_id(
// CHECK: %0 = stablehlo.partition_id : tensor<ui32>
// GENERIC-LABEL: sym_name = "partition_id"
// GENERIC: %{{[0-9]+}} = "stablehlo.partition_id"() : () -> tensor<ui32>
func.func @partition_id() -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}

func.func @both() -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}

func.func @run() {
  %0:2 = "interpreter.run_parallel"() {programs = [[@both, @both]]} : () -> (tensor<ui32>, tensor<ui32>)
  check.expect_eq_const %0#0, dense<0> : tensor<ui32>
  check.expect_eq_const %0#1, dense<1> : tensor<ui32>
  return
}

// -----

func.func @signed() {
  // expected-error @below {{stablehlo.partition_id: result #0 must be a tensor of unsigned integer elements, not tensor<i32> [partition_id_o1]}}
  %0 = "stablehlo.partition_id"() : () -> tensor<i32>
  return
}
