// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A window at computed indices, which are moved so that all of it is inside.
// CHECK-LABEL: func.func @dynamic_slice(
// CHECK: %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2, 1] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
// GENERIC-LABEL: sym_name = "dynamic_slice"
// GENERIC: %{{[0-9]+}} = "stablehlo.dynamic_slice"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) <{slice_sizes = array<i64: 2, 1>}> : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
func.func @dynamic_slice(%arg0: tensor<4x3xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<2x1xf32> {
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2, 1] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]> : tensor<4x3xi32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %one, %one, sizes = [2, 2] : (tensor<4x3xi32>, tensor<i32>, tensor<i32>) -> tensor<2x2xi32>
  check.expect_eq_const %0, dense<[[4, 5], [7, 8]]> : tensor<2x2xi32>
  %far = stablehlo.constant dense<9> : tensor<i32>
  %before = stablehlo.constant dense<-5> : tensor<i32>
  %1 = stablehlo.dynamic_slice %x, %far, %before, sizes = [2, 2] : (tensor<4x3xi32>, tensor<i32>, tensor<i32>) -> tensor<2x2xi32>
  check.expect_eq_const %1, dense<[[6, 7], [9, 10]]> : tensor<2x2xi32>
  return
}

// -----

func.func @dynamic_slice_c1(%arg0: tensor<4x3xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_slice: result #0 is tensor<2x1xf64>, but tensor<2x1xf32> follows from the operands [dynamic_slice_c1]}}
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2, 1] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf64>
  return
}

// -----

func.func @dynamic_slice_c2(%arg0: tensor<4x3xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_slice: 2 start indices and 1 slice sizes for rank 2 [dynamic_slice_c2]}}
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @dynamic_slice_c3(%arg0: tensor<4x3xf32>, %arg1: tensor<i32>, %arg2: tensor<i64>) {
  // expected-error @below {{stablehlo.dynamic_slice: start indices have different types: tensor<i32> and tensor<i64> [dynamic_slice_c3]}}
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2, 1] : (tensor<4x3xf32>, tensor<i32>, tensor<i64>) -> tensor<2x1xf32>
  return
}

// -----

func.func @dynamic_slice_c4(%arg0: tensor<4x3xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_slice: a slice of 5 elements does not fit the 4 of dimension 0 [dynamic_slice_c4]}}
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [5, 1] : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>
  return
}
