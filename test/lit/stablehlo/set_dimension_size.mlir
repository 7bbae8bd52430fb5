// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A dimension shortened to a computed size; what lies beyond counts no more.
// CHECK-LABEL: func.func @set_dimension_size(
// CHECK: %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
// GENERIC-LABEL: sym_name = "set_dimension_size"
// GENERIC: %{{[0-9]+}} = "stablehlo.set_dimension_size"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
func.func @set_dimension_size(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>> {
  %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  return %0 : tensor<?xf32, #stablehlo.bounds<4>>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  %size = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?xf32, #stablehlo.bounds<4>>) -> tensor<i32>
  check.expect_eq_const %size, dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xf32, #stablehlo.bounds<4>>, tensor<f32>) -> tensor<f32>
  check.expect_eq_const %1, dense<7.0> : tensor<f32>
  return
}

// -----

func.func @set_dimension_size_c1(%arg0: tensor<4xf32>, %arg1: tensor<1xi32>) {
  // expected-error @below {{stablehlo.set_dimension_size: size is tensor<1xi32>, not a scalar [set_dimension_size_c1]}}
  %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 0 : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  return
}

// -----

func.func @set_dimension_size_c2(%arg0: tensor<4xf32>, %arg1: tensor<i32>) {
  // expected-error @below {{stablehlo.set_dimension_size: dimension has 1, which is none of the 1 dimensions [set_dimension_size_c2]}}
  %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 1 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  return
}

// -----

func.func @set_dimension_size_c3(%arg0: tensor<4xf32>, %arg1: tensor<i32>) {
  // expected-error @below {{stablehlo.set_dimension_size: result #0 is tensor<5xf32>, but tensor<?xf32, #stablehlo.bounds<4>> follows from the operands [set_dimension_size_c3]}}
  %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<5xf32>
  return
}
