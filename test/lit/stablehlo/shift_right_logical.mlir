// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Zeros enter from above.
// CHECK-LABEL: func.func @shift_right_logical(
// CHECK: %0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "shift_right_logical"
// GENERIC: %{{[0-9]+}} = "stablehlo.shift_right_logical"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @shift_right_logical(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-128, -1, -1, 64]> : tensor<4xi8>
  %y = stablehlo.constant dense<[7, 8, 1, 3]> : tensor<4xi8>
  %0 = stablehlo.shift_right_logical %x, %y : tensor<4xi8>
  check.expect_eq_const %0, dense<[1, 0, 127, 8]> : tensor<4xi8>
  return
}

// -----

func.func @shift_right_logical_c1(%arg0: tensor<2x3xi32>, %arg1: tensor<2x4xi32>) {
  // expected-error @below {{stablehlo.shift_right_logical: operands have different shapes: tensor<2x3xi32> and tensor<2x4xi32> [shift_right_logical_c1]}}
  %0 = stablehlo.shift_right_logical %arg0, %arg1 : (tensor<2x3xi32>, tensor<2x4xi32>) -> tensor<2x3xi32>
  return
}
