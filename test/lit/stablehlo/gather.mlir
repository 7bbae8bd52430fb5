// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Windows at computed indices, which are moved so that all of each is inside; with batch dimensions,
// each from its own part.
// CHECK-LABEL: func.func @gather(
// CHECK: %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
// GENERIC-LABEL: sym_name = "gather"
// GENERIC: %{{[0-9]+}} = "stablehlo.gather"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
func.func @gather(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) -> tensor<5x2x3xf32> {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
  return %0 : tensor<5x2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi32>
  %rows = stablehlo.constant dense<[[2], [0], [7], [-4]]> : tensor<4x1xi64>
  %0 = "stablehlo.gather"(%x, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<3x3xi32>, tensor<4x1xi64>) -> tensor<4x2xi32>
  check.expect_eq_const %0, dense<[[7, 8], [1, 2], [7, 8], [1, 2]]> : tensor<4x2xi32>
  %columns = stablehlo.constant dense<[[0, 2], [1, 1], [2, 0]]> : tensor<3x2xi32>
  %1 = "stablehlo.gather"(%x, %columns) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<3x3xi32>, tensor<3x2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %1, dense<[[1, 3], [5, 5], [9, 7]]> : tensor<3x2xi32>
  return
}

// -----

func.func @gather_c1(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  // expected-error @below {{stablehlo.gather: 2 offset, 1 collapsed and 1 batching dimensions do not make the operand's rank 3 [gather_c1]}}
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @gather_c2(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  // expected-error @below {{stablehlo.gather: index_vector_dim has 4, which is none of the 4 places [gather_c2]}}
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 4>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @gather_c3(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  // expected-error @below {{stablehlo.gather: start_index_map has 1 entries for indices of 2 components [gather_c3]}}
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @gather_c4(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>) {
  // expected-error @below {{stablehlo.gather: offset_dims is not sorted: 2, 1 [gather_c4]}}
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2, 1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 3>}> : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>
  return
}
