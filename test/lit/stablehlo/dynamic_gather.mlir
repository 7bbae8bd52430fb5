// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A gather whose window is computed; here it is known.
// CHECK-LABEL: func.func @dynamic_gather(
// CHECK: %c = stablehlo.constant dense<[1, 1, 3]> : tensor<3xi64>
// CHECK-NEXT: %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
// GENERIC-LABEL: sym_name = "dynamic_gather"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<[1, 1, 3]> : tensor<3xi64>}> : () -> tensor<3xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.dynamic_gather"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{[0-9]+}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
func.func @dynamic_gather(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) -> tensor<5x2x3xf32> {
  %c = stablehlo.constant dense<[1, 1, 3]> : tensor<3xi64>
  %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
  return %0 : tensor<5x2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi32>
  %rows = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi64>
  %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %rows, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<3x3xi32>, tensor<2x1xi64>, tensor<2xi64>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[7, 8], [1, 2]]> : tensor<2x2xi32>
  return
}

// -----

func.func @dynamic_gather_c1(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  %c = stablehlo.constant dense<[1, 1, 3]> : tensor<3xi64>
  // expected-error @below {{stablehlo.dynamic_gather: 2 offset, 1 collapsed and 1 batching dimensions do not make the operand's rank 3 [dynamic_gather_c1]}}
  %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @dynamic_gather_c2(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  %c = stablehlo.constant dense<[1, 1, 3]> : tensor<3xi64>
  // expected-error @below {{stablehlo.dynamic_gather: index_vector_dim has 4, which is none of the 4 places [dynamic_gather_c2]}}
  %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 4>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @dynamic_gather_c3(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  %c = stablehlo.constant dense<[1, 1, 3]> : tensor<3xi64>
  // expected-error @below {{stablehlo.dynamic_gather: start_index_map has 1 entries for indices of 2 components [dynamic_gather_c3]}}
  %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 2>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @dynamic_gather_c4(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  %c = stablehlo.constant dense<[1, 1, 3]> : tensor<3xi64>
  // expected-error @below {{stablehlo.dynamic_gather: offset_dims is not sorted: 2, 1 [dynamic_gather_c4]}}
  %0 = "stablehlo.dynamic_gather"(%arg0, %arg1, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>
  return
}
