// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A window exchanged at computed indices, which are moved so that all of it is inside.
// CHECK-LABEL: func.func @dynamic_update_slice(
// CHECK: %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
// GENERIC-LABEL: sym_name = "dynamic_update_slice"
// GENERIC: %{{[0-9]+}} = "stablehlo.dynamic_update_slice"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
func.func @dynamic_update_slice(%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<4x3xf32> {
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0, 1, 2, 3, 4]> : tensor<5xi32>
  %y = stablehlo.constant dense<[-1, -2]> : tensor<2xi32>
  %i = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<5xi32>, tensor<2xi32>, tensor<i32>) -> tensor<5xi32>
  check.expect_eq_const %0, dense<[0, -1, -2, 3, 4]> : tensor<5xi32>
  %far = stablehlo.constant dense<4> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %x, %y, %far : (tensor<5xi32>, tensor<2xi32>, tensor<i32>) -> tensor<5xi32>
  check.expect_eq_const %1, dense<[0, 1, 2, -1, -2]> : tensor<5xi32>
  %before = stablehlo.constant dense<-3> : tensor<i32>
  %2 = stablehlo.dynamic_update_slice %x, %y, %before : (tensor<5xi32>, tensor<2xi32>, tensor<i32>) -> tensor<5xi32>
  check.expect_eq_const %2, dense<[-1, -2, 2, 3, 4]> : tensor<5xi32>
  return
}

// -----

func.func @dynamic_update_slice_c1(%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_update_slice: result #0 is tensor<3x4xf32>, but tensor<4x3xf32> follows from the operands [dynamic_update_slice_c1]}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @dynamic_update_slice_c2(%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xf64>, %arg2: tensor<i32>, %arg3: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_update_slice: element types differ: f32 and f64 [dynamic_update_slice_c2]}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x3xf32>, tensor<2x1xf64>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @dynamic_update_slice_c3(%arg0: tensor<4x3xf32>, %arg1: tensor<2xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_update_slice: the update has rank 1, not 2 [dynamic_update_slice_c3]}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4x3xf32>, tensor<2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @dynamic_update_slice_c4(%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<i32>) {
  // expected-error @below {{stablehlo.dynamic_update_slice: 1 start indices for rank 2 [dynamic_update_slice_c4]}}
  %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2 : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<i32>) -> tensor<4x3xf32>
  return
}
