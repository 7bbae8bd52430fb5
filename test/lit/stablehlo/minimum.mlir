// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The smaller one; NaN wins, i1 is `and`.
// CHECK-LABEL: func.func @minimum(
// CHECK: %0 = stablehlo.minimum %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "minimum"
// GENERIC: %{{[0-9]+}} = "stablehlo.minimum"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @minimum(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.minimum %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 0x7FC00000, 0xFF800000, -0.0]> : tensor<4xf32>
  %y = stablehlo.constant dense<[2.0, 1.0, 5.0, 0.0]> : tensor<4xf32>
  %0 = stablehlo.minimum %x, %y : tensor<4xf32>
  check.expect_eq_const %0, dense<[1.0, 0x7FC00000, 0xFF800000, -0.0]> : tensor<4xf32>
  %x1 = stablehlo.constant dense<[-1, 127]> : tensor<2xi8>
  %y1 = stablehlo.constant dense<[1, -128]> : tensor<2xi8>
  %1 = stablehlo.minimum %x1, %y1 : tensor<2xi8>
  check.expect_eq_const %1, dense<[-1, -128]> : tensor<2xi8>
  %x2 = stablehlo.constant dense<[true, true]> : tensor<2xi1>
  %y2 = stablehlo.constant dense<[false, true]> : tensor<2xi1>
  %2 = stablehlo.minimum %x2, %y2 : tensor<2xi1>
  check.expect_eq_const %2, dense<[false, true]> : tensor<2xi1>
  return
}

// -----

func.func @minimum_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.minimum: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [minimum_c1]}}
  %0 = stablehlo.minimum %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
