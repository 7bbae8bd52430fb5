// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One of two values, element by element or by one condition for all.
// CHECK-LABEL: func.func @select(
// CHECK: %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2xi1>, tensor<2xf32>
// GENERIC-LABEL: sym_name = "select"
// GENERIC: %{{[0-9]+}} = "stablehlo.select"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @select(%arg0: tensor<2xi1>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @select_2(
// CHECK: %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<2xf32>
// GENERIC-LABEL: sym_name = "select_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.select"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @select_2(%arg0: tensor<i1>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %p = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  %x = stablehlo.constant dense<[1.0, 2.0, 0x7FC00000]> : tensor<3xf32>
  %y = stablehlo.constant dense<[-1.0, -2.0, -3.0]> : tensor<3xf32>
  %0 = stablehlo.select %p, %x, %y : tensor<3xi1>, tensor<3xf32>
  check.expect_eq_const %0, dense<[1.0, -2.0, 0x7FC00000]> : tensor<3xf32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %1 = stablehlo.select %no, %x, %y : tensor<i1>, tensor<3xf32>
  check.expect_eq_const %1, dense<[-1.0, -2.0, -3.0]> : tensor<3xf32>
  return
}

// -----

func.func @select_c1(%arg0: tensor<3xi1>, %arg1: tensor<2xf32>, %arg2: tensor<2xf32>) {
  // expected-error @below {{stablehlo.select: pred is neither a scalar nor of the shape of on_true: tensor<3xi1> for tensor<2xf32> [select_c1]}}
  %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<3xi1>, tensor<2xf32>
  return
}

// -----

func.func @select_c2(%arg0: tensor<2xi1>, %arg1: tensor<2xf32>, %arg2: tensor<2xi32>) {
  // expected-error @below {{stablehlo.select: on_true and on_false have different types: tensor<2xf32> and tensor<2xi32> [select_c2]}}
  %0 = stablehlo.select %arg0, %arg1, %arg2 : (tensor<2xi1>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  return
}
