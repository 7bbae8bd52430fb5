// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Each dimension from a start to a limit by steps; the step 1 is not printed.
// CHECK-LABEL: func.func @slice(
// CHECK: %0 = stablehlo.slice %arg0 [1:8:3, 0:4:2] : (tensor<8x4xf32>) -> tensor<3x2xf32>
// GENERIC-LABEL: sym_name = "slice"
// GENERIC: %{{[0-9]+}} = "stablehlo.slice"(%{{arg[0-9]+}}) <{limit_indices = array<i64: 8, 4>, start_indices = array<i64: 1, 0>, strides = array<i64: 3, 2>}> : (tensor<8x4xf32>) -> tensor<3x2xf32>
func.func @slice(%arg0: tensor<8x4xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.slice %arg0 [1:8:3, 0:4:2] : (tensor<8x4xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @slice_2(
// CHECK: %0 = stablehlo.slice %arg0 [1:8] : (tensor<8xf32>) -> tensor<7xf32>
// GENERIC-LABEL: sym_name = "slice_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.slice"(%{{arg[0-9]+}}) <{limit_indices = array<i64: 8>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<8xf32>) -> tensor<7xf32>
func.func @slice_2(%arg0: tensor<8xf32>) -> tensor<7xf32> {
  %0 = stablehlo.slice %arg0 [1:8] : (tensor<8xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]> : tensor<3x4xi32>
  %0 = stablehlo.slice %x [0:3:2, 1:4] : (tensor<3x4xi32>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[1, 2, 3], [9, 10, 11]]> : tensor<2x3xi32>
  %1 = stablehlo.slice %x [1:1, 0:4:3] : (tensor<3x4xi32>) -> tensor<0x2xi32>
  check.expect_eq_const %1, dense<> : tensor<0x2xi32>
  return
}

// -----

func.func @slice_c1(%arg0: tensor<8x4xf32>) {
  // expected-error @below {{stablehlo.slice: result #0 is tensor<3x2xf64>, but tensor<3x2xf32> follows from the operands [slice_c1]}}
  %0 = stablehlo.slice %arg0 [1:8:3, 0:4:2] : (tensor<8x4xf32>) -> tensor<3x2xf64>
  return
}

// -----

func.func @slice_c2(%arg0: tensor<8x4xf32>) {
  // expected-error @below {{stablehlo.slice: start_indices has 1 entries for rank 2 [slice_c2]}}
  %0 = stablehlo.slice %arg0 [1:8:3] : (tensor<8x4xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @slice_c3(%arg0: tensor<8x4xf32>) {
  // expected-error @below {{stablehlo.slice: dimension 0 ends at 9, beyond its 8 elements [slice_c3]}}
  %0 = stablehlo.slice %arg0 [1:9:3, 0:4:2] : (tensor<8x4xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @slice_c4(%arg0: tensor<8x4xf32>) {
  // expected-error @below {{stablehlo.slice: dimension 0 has stride 0 [slice_c4]}}
  %0 = stablehlo.slice %arg0 [1:8:0, 0:4:2] : (tensor<8x4xf32>) -> tensor<3x2xf32>
  return
}
