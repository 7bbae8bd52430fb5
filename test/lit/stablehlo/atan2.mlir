// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Angles of points (y, x), by the signs of both, of zeros too.
// CHECK-LABEL: func.func @atan2(
// CHECK: %0 = stablehlo.atan2 %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "atan2"
// GENERIC: %{{[0-9]+}} = "stablehlo.atan2"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @atan2(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.atan2 %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, 1.0, 0xFF800000, 0.0]> : tensor<6xf32>
  %y = stablehlo.constant dense<[-1.0, -1.0, 0.0, 1.0, 0x7F800000, 0.0]> : tensor<6xf32>
  %0 = stablehlo.atan2 %x, %y : tensor<6xf32>
  %expected = stablehlo.constant dense<[3.14159265, -3.14159265, 1.57079633, 0.785398163, -0.785398163, 0.0]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 2 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @atan2_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.atan2: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [atan2_c1]}}
  %0 = stablehlo.atan2 %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
