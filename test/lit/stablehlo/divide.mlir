// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Quotients; of integers towards zero, by zero all bits set, and the least one by -1 itself.
// CHECK-LABEL: func.func @divide(
// CHECK: %0 = stablehlo.divide %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "divide"
// GENERIC: %{{[0-9]+}} = "stablehlo.divide"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @divide(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.divide %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[7.0, 1.0, -1.0, 0.0, 1.0]> : tensor<5xf32>
  %y = stablehlo.constant dense<[2.0, 0.0, 0.0, 0.0, 0x7F800000]> : tensor<5xf32>
  %0 = stablehlo.divide %x, %y : tensor<5xf32>
  check.expect_eq_const %0, dense<[3.5, 0x7F800000, 0xFF800000, 0x7FC00000, 0.0]> : tensor<5xf32>
  %x1 = stablehlo.constant dense<[7, -7, 7, 5, -2147483648]> : tensor<5xi32>
  %y1 = stablehlo.constant dense<[2, 2, -2, 0, -1]> : tensor<5xi32>
  %1 = stablehlo.divide %x1, %y1 : tensor<5xi32>
  check.expect_eq_const %1, dense<[3, -3, -3, -1, -2147483648]> : tensor<5xi32>
  %x2 = stablehlo.constant dense<[200, 7]> : tensor<2xui8>
  %y2 = stablehlo.constant dense<[7, 0]> : tensor<2xui8>
  %2 = stablehlo.divide %x2, %y2 : tensor<2xui8>
  check.expect_eq_const %2, dense<[28, 255]> : tensor<2xui8>
  return
}

// -----

func.func @divide_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.divide: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [divide_c1]}}
  %0 = stablehlo.divide %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
