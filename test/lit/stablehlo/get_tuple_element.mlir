// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One of the values that are one, also of those inside it.
// CHECK-LABEL: func.func @get_tuple_element(
// CHECK: %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<3xi32>
// GENERIC-LABEL: sym_name = "get_tuple_element"
// GENERIC: %{{[0-9]+}} = "stablehlo.get_tuple_element"(%{{arg[0-9]+}}) <{index = 1 : i32}> : (tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<3xi32>
func.func @get_tuple_element(%arg0: tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<3xi32> {
  %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.tuple %x, %y : tuple<tensor<2xi32>, tensor<f32>>
  %1 = stablehlo.tuple %y, %0 : tuple<tensor<f32>, tuple<tensor<2xi32>, tensor<f32>>>
  %2 = stablehlo.get_tuple_element %1[1] : (tuple<tensor<f32>, tuple<tensor<2xi32>, tensor<f32>>>) -> tuple<tensor<2xi32>, tensor<f32>>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<2xi32>, tensor<f32>>) -> tensor<2xi32>
  check.expect_eq_const %3, dense<[1, 2]> : tensor<2xi32>
  return
}

// -----

func.func @get_tuple_element_c1(%arg0: tuple<tensor<2xf32>, tensor<3xi32>>) {
  // expected-error @below {{stablehlo.get_tuple_element: index 2 is beyond the 2 elements [get_tuple_element_c1]}}
  %0 = stablehlo.get_tuple_element %arg0[2] : (tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<3xi32>
  return
}

// -----

func.func @get_tuple_element_c2(%arg0: tuple<tensor<2xf32>, tensor<3xi32>>) {
  // expected-error @below {{stablehlo.get_tuple_element: result #0 is tensor<2xf32>, but tensor<3xi32> follows from the operands [get_tuple_element_c2]}}
  %0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<2xf32>
  return
}
