// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Updates combined with what is there, in any number; those outside are left out.
// CHECK-LABEL: func.func @scatter(
// CHECK: %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
// CHECK-NEXT: ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT: %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT: stablehlo.return %1 : tensor<f32>
// CHECK-NEXT: }) : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>) -> tensor<5x4x3xf32>
// GENERIC-LABEL: sym_name = "scatter"
// GENERIC: %{{[0-9]+}} = "stablehlo.scatter"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<f32>) -> ()
// GENERIC-NEXT: }) : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>) -> tensor<5x4x3xf32>
func.func @scatter(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>, %arg2: tensor<5x2x3xf32>) -> tensor<5x4x3xf32> {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>) -> tensor<5x4x3xf32>
  return %0 : tensor<5x4x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %at = stablehlo.constant dense<[[1], [3], [1], [4], [-1]]> : tensor<5x1xi32>
  %y = stablehlo.constant dense<[10, 20, 30, 40, 50]> : tensor<5xi32>
  %0 = "stablehlo.scatter"(%x, %at, %y) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<4xi32>, tensor<5x1xi32>, tensor<5xi32>) -> tensor<4xi32>
  check.expect_eq_const %0, dense<[1, 42, 3, 24]> : tensor<4xi32>
  %m = stablehlo.constant dense<0.0> : tensor<2x3xf32>
  %column = stablehlo.constant dense<[2]> : tensor<1xi32>
  %v = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %2 = "stablehlo.scatter"(%m, %column, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<2x3xf32>
  check.expect_eq_const %2, dense<[[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]> : tensor<2x3xf32>
  return
}

// -----

func.func @scatter_c1(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x4x4xf32>, %arg2: tensor<5x2x2xi32>, %arg3: tensor<5x2x3xf32>, %arg4: tensor<5x2x3xf32>) {
  // expected-error @below {{stablehlo.scatter: shapes differ: tensor<5x4x3xf32> and tensor<5x4x4xf32> [scatter_c1]}}
  %0:2 = "stablehlo.scatter"(%arg0, %arg1, %arg2, %arg3, %arg4) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
  ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>, %arg7: tensor<f32>, %arg8: tensor<f32>):
    stablehlo.return %arg5, %arg8 : tensor<f32>, tensor<f32>
  }) : (tensor<5x4x3xf32>, tensor<5x4x4xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>) -> (tensor<5x4x3xf32>, tensor<5x4x3xf32>)
  return
}

// -----

func.func @scatter_c2(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>, %arg2: tensor<5x2x3xf32>) {
  // expected-error @below {{stablehlo.scatter: 1 window, 0 inserted and 1 batching dimensions do not make the inputs' rank 3 [scatter_c2]}}
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>) -> tensor<5x4x3xf32>
  return
}

// -----

func.func @scatter_c3(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x4x3xf32>, %arg2: tensor<5x2x2xi32>, %arg3: tensor<5x2x3xf32>, %arg4: tensor<5x2x2xf32>) {
  // expected-error @below {{stablehlo.scatter: shapes differ: tensor<5x2x3xf32> and tensor<5x2x2xf32> [scatter_c3]}}
  %0:2 = "stablehlo.scatter"(%arg0, %arg1, %arg2, %arg3, %arg4) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
  ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>, %arg7: tensor<f32>, %arg8: tensor<f32>):
    stablehlo.return %arg5, %arg8 : tensor<f32>, tensor<f32>
  }) : (tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>, tensor<5x2x2xf32>) -> (tensor<5x4x3xf32>, tensor<5x4x3xf32>)
  return
}

// -----

func.func @scatter_c4(%arg0: tensor<5x4x3xf32>, %arg1: tensor<5x2x2xi32>, %arg2: tensor<5x2x4xf32>) {
  // expected-error @below {{stablehlo.scatter: a window of 4 elements does not fit the 3 of the input [scatter_c4]}}
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x4xf32>) -> tensor<5x4x3xf32>
  return
}
