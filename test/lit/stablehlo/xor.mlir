// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Bit by bit; of i1 whether they differ.
// CHECK-LABEL: func.func @xor(
// CHECK: %0 = stablehlo.xor %arg0, %arg1 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "xor"
// GENERIC: %{{[0-9]+}} = "stablehlo.xor"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @xor(%arg0: tensor<2x3xi32>, %arg1: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = stablehlo.xor %arg0, %arg1 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[12, -1, 5]> : tensor<3xi32>
  %y = stablehlo.constant dense<[10, 7, 5]> : tensor<3xi32>
  %0 = stablehlo.xor %x, %y : tensor<3xi32>
  check.expect_eq_const %0, dense<[6, -8, 0]> : tensor<3xi32>
  %x1 = stablehlo.constant dense<[true, true, false]> : tensor<3xi1>
  %y1 = stablehlo.constant dense<[true, false, false]> : tensor<3xi1>
  %1 = stablehlo.xor %x1, %y1 : tensor<3xi1>
  check.expect_eq_const %1, dense<[false, true, false]> : tensor<3xi1>
  return
}

// -----

func.func @xor_c1(%arg0: tensor<2x3xi32>, %arg1: tensor<2x4xi32>) {
  // expected-error @below {{stablehlo.xor: operands have different shapes: tensor<2x3xi32> and tensor<2x4xi32> [xor_c1]}}
  %0 = stablehlo.xor %arg0, %arg1 : (tensor<2x3xi32>, tensor<2x4xi32>) -> tensor<2x3xi32>
  return
}
