// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Each process hands every other one its part.
// CHECK-LABEL: func.func @all_to_all(
// CHECK: %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
// GENERIC-LABEL: sym_name = "all_to_all"
// GENERIC: %{{[0-9]+}} = "stablehlo.all_to_all"(%{{arg[0-9]+}}) <{concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
func.func @all_to_all(%arg0: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

func.func @both(%x: tensor<2x2xi32>) -> tensor<4x1xi32> {
  %0 = "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x2xi32>) -> tensor<4x1xi32>
  return %0 : tensor<4x1xi32>
}

func.func @run() {
  %a = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %b = stablehlo.constant dense<[[5, 6], [7, 8]]> : tensor<2x2xi32>
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@both], [@both]]} : (tensor<2x2xi32>, tensor<2x2xi32>) -> (tensor<4x1xi32>, tensor<4x1xi32>)
  check.expect_eq_const %0#0, dense<[[1], [3], [5], [7]]> : tensor<4x1xi32>
  check.expect_eq_const %0#1, dense<[[2], [4], [6], [8]]> : tensor<4x1xi32>
  return
}

// -----

func.func @all_to_all_c1(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.all_to_all: split_dimension has 2, which is none of the 2 dimensions [all_to_all_c1]}}
  %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 2 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @all_to_all_c2(%arg0: tensor<2x5xf32>) {
  // expected-error @below {{stablehlo.all_to_all: 5 elements do not split into 2 [all_to_all_c2]}}
  %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x5xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @all_to_all_c3(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.all_to_all: concat_dimension has 2, which is none of the 2 dimensions [all_to_all_c3]}}
  %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @all_to_all_c4(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.all_to_all: split_count is 0 [all_to_all_c4]}}
  %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 0 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}
