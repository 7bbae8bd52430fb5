// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Powers; zero to zero is one, and integers to negative ones are zero but for 1 and -1.
// CHECK-LABEL: func.func @power(
// CHECK: %0 = stablehlo.power %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "power"
// GENERIC: %{{[0-9]+}} = "stablehlo.power"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @power(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.power %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[2.0, 2.0, 0.0, -2.0, -2.0, 0x7FC00000]> : tensor<6xf32>
  %y = stablehlo.constant dense<[10.0, -1.0, 0.0, 3.0, 0.5, 0.0]> : tensor<6xf32>
  %0 = stablehlo.power %x, %y : tensor<6xf32>
  %expected = stablehlo.constant dense<[1024.0, 0.5, 1.0, -8.0, 0x7FC00000, 1.0]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 1 : tensor<6xf32>, tensor<6xf32>
  %x1 = stablehlo.constant dense<[2, 3, 1, -1, -1, 5]> : tensor<6xi32>
  %y1 = stablehlo.constant dense<[10, -1, -5, -3, -2, 0]> : tensor<6xi32>
  %1 = stablehlo.power %x1, %y1 : tensor<6xi32>
  check.expect_eq_const %1, dense<[1024, 0, 1, -1, 1, 1]> : tensor<6xi32>
  return
}

// -----

func.func @power_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.power: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [power_c1]}}
  %0 = stablehlo.power %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
