// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Values as one.
// CHECK-LABEL: func.func @tuple(
// CHECK: %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<2xf32>, tensor<3xi32>>
// GENERIC-LABEL: sym_name = "tuple"
// GENERIC: %{{[0-9]+}} = "stablehlo.tuple"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2xf32>, tensor<3xi32>) -> tuple<tensor<2xf32>, tensor<3xi32>>
func.func @tuple(%arg0: tensor<2xf32>, %arg1: tensor<3xi32>) -> tuple<tensor<2xf32>, tensor<3xi32>> {
  %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<2xf32>, tensor<3xi32>>
  return %0 : tuple<tensor<2xf32>, tensor<3xi32>>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.tuple %x, %y : tuple<tensor<2xi32>, tensor<f32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xi32>, tensor<f32>>) -> tensor<f32>
  check.expect_eq_const %1, dense<0.5> : tensor<f32>
  return
}

// -----

func.func @tuple_c1(%arg0: tensor<2xf32>, %arg1: tensor<3xi32>) {
  // expected-error @below {{stablehlo.tuple: result #0 is tuple<tensor<3xf32>, tensor<3xi32>>, but tuple<tensor<2xf32>, tensor<3xi32>> follows from the operands [tuple_c1]}}
  %0 = stablehlo.tuple %arg0, %arg1 : (tensor<2xf32>, tensor<3xi32>) -> tuple<tensor<3xf32>, tensor<3xi32>>
  return
}
