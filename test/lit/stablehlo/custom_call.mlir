// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A call of something outside of the program; the interpreter knows the checks by their names.
// CHECK-LABEL: func.func @custom_call(
// CHECK: %0 = stablehlo.custom_call @f(%arg0) : (tensor<4xf32>) -> tensor<2xi32>
// GENERIC-LABEL: sym_name = "custom_call"
// GENERIC: %{{[0-9]+}} = "stablehlo.custom_call"(%{{arg[0-9]+}}) <{call_target_name = "f"}> : (tensor<4xf32>) -> tensor<2xi32>
func.func @custom_call(%arg0: tensor<4xf32>) -> tensor<2xi32> {
  %0 = stablehlo.custom_call @f(%arg0) : (tensor<4xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// CHECK-LABEL: func.func @custom_call_2(
// CHECK: %0 = stablehlo.custom_call @f(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i32}, has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "custom_call_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.custom_call"(%{{arg[0-9]+}}) <{api_version = 4 : i32, backend_config = {a = 1 : i32}, call_target_name = "f", has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @custom_call_2(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%arg0) {api_version = 4 : i32, backend_config = {a = 1 : i32}, has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%x, %x) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  %0 = stablehlo.custom_call @annotate_device_placement(%x) : (tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, 2.0]> : tensor<2xf32>
  return
}

// -----

func.func @no_target(%a: tensor<4xf32>) {
  // expected-error @below {{stablehlo.custom_call needs 'call_target_name'}}
  %0 = "stablehlo.custom_call"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
