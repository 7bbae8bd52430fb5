// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Slices of one dimension by their indices (an op of the past); indices are moved inside.
// CHECK-LABEL: func.func @torch_index_select(
// CHECK: %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<5x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
// GENERIC-LABEL: sym_name = "torch_index_select"
// GENERIC: %{{[0-9]+}} = "stablehlo.torch_index_select"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<5x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
func.func @torch_index_select(%arg0: tensor<5x4xf32>, %arg1: tensor<2xi32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<5x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %i = stablehlo.constant dense<[2, 0, 2]> : tensor<3xi32>
  %0 = "stablehlo.torch_index_select"(%x, %i) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<3x2xi32>, tensor<3xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %0, dense<[[5, 6], [1, 2], [5, 6]]> : tensor<3x2xi32>
  return
}

// -----

func.func @torch_index_select_c1(%arg0: tensor<5x4xf32>, %arg1: tensor<2xi32>) {
  // expected-error @below {{stablehlo.torch_index_select: dim 2 and batch_dims 0 do not suit tensor<5x4xf32> and tensor<2xi32> [torch_index_select_c1]}}
  %0 = "stablehlo.torch_index_select"(%arg0, %arg1) <{batch_dims = 0 : i64, dim = 2 : i64}> : (tensor<5x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  return
}
