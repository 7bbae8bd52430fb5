// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The size of a dimension as an i32.
// CHECK-LABEL: func.func @get_dimension_size(
// CHECK: %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
// GENERIC-LABEL: sym_name = "get_dimension_size"
// GENERIC: %{{[0-9]+}} = "stablehlo.get_dimension_size"(%{{arg[0-9]+}}) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
func.func @get_dimension_size(%arg0: tensor<?x3xf32>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}

func.func @run() {
  %x = stablehlo.constant dense<0.0> : tensor<3x5xf32>
  %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<3x5xf32>) -> tensor<i32>
  check.expect_eq_const %0, dense<5> : tensor<i32>
  return
}

// -----

func.func @get_dimension_size_c1(%arg0: tensor<?x3xf32>) {
  // expected-error @below {{stablehlo.get_dimension_size: dimension has 2, which is none of the 2 dimensions [get_dimension_size_c1]}}
  %0 = stablehlo.get_dimension_size %arg0, dim = 2 : (tensor<?x3xf32>) -> tensor<i32>
  return
}
