// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Six directions; NaN is unequal to all but in the total order of floats, where -0.0 is below 0.0.
// CHECK-LABEL: func.func @compare(
// CHECK: %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// GENERIC-LABEL: sym_name = "compare"
// GENERIC: %{{[0-9]+}} = "stablehlo.compare"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @compare(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// CHECK-LABEL: func.func @compare_2(
// CHECK: %0 = stablehlo.compare NE, %arg0, %arg1 : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
// GENERIC-LABEL: sym_name = "compare_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.compare"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
func.func @compare_2(%arg0: tensor<4xi8>, %arg1: tensor<4xi8>) -> tensor<4xi1> {
  %0 = stablehlo.compare NE, %arg0, %arg1 : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, -0.0, 0x7FC00000, 0xFF800000]> : tensor<4xf32>
  %y = stablehlo.constant dense<[2.0, 0.0, 0x7FC00000, 0x7F800000]> : tensor<4xf32>
  %0 = stablehlo.compare LT, %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %0, dense<[true, false, false, true]> : tensor<4xi1>
  %1 = stablehlo.compare NE, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %1, dense<[true, false, true, true]> : tensor<4xi1>
  %2 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %2, dense<[true, true, false, true]> : tensor<4xi1>
  %3 = stablehlo.compare EQ, %x, %x, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %3, dense<true> : tensor<4xi1>
  %i = stablehlo.constant dense<[-1, 3]> : tensor<2xi8>
  %j = stablehlo.constant dense<[1, 3]> : tensor<2xi8>
  %4 = stablehlo.compare GE, %i, %j, SIGNED : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi1>
  check.expect_eq_const %4, dense<[false, true]> : tensor<2xi1>
  %u = stablehlo.constant dense<[255, 3]> : tensor<2xui8>
  %v = stablehlo.constant dense<[1, 3]> : tensor<2xui8>
  %5 = stablehlo.compare GT, %u, %v, UNSIGNED : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xi1>
  check.expect_eq_const %5, dense<[true, false]> : tensor<2xi1>
  return
}

// -----

func.func @compare_c1(%arg0: tensor<4xf32>, %arg1: tensor<4xf64>) {
  // expected-error @below {{stablehlo.compare: element types differ: f32 and f64 [compare_c1]}}
  %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xi1>
  return
}

// -----

func.func @compare_c2(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  // expected-error @below {{stablehlo.compare: result #0 is tensor<3xi1>, but tensor<4xi1> follows from the operands [compare_c2]}}
  %0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<3xi1>
  return
}

// -----

func.func @compare_c3(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  // expected-error @below {{stablehlo.compare: compare_type SIGNED does not suit elements f32 [compare_c3]}}
  %0 = stablehlo.compare LT, %arg0, %arg1, SIGNED : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return
}
