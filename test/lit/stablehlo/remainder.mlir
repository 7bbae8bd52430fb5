// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Of division towards zero, with the sign of the dividend; integers by zero stay.
// CHECK-LABEL: func.func @remainder(
// CHECK: %0 = stablehlo.remainder %arg0, %arg1 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "remainder"
// GENERIC: %{{[0-9]+}} = "stablehlo.remainder"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @remainder(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.remainder %arg0, %arg1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[7.0, -7.0, 5.5, 1.0, -0.0]> : tensor<5xf32>
  %y = stablehlo.constant dense<[3.0, 3.0, 0x7F800000, 0.0, 2.0]> : tensor<5xf32>
  %0 = stablehlo.remainder %x, %y : tensor<5xf32>
  check.expect_eq_const %0, dense<[1.0, -1.0, 5.5, 0x7FC00000, -0.0]> : tensor<5xf32>
  %x1 = stablehlo.constant dense<[7, -7, 7, 5, -2147483648]> : tensor<5xi32>
  %y1 = stablehlo.constant dense<[3, 3, -3, 0, -1]> : tensor<5xi32>
  %1 = stablehlo.remainder %x1, %y1 : tensor<5xi32>
  check.expect_eq_const %1, dense<[1, -1, 1, 5, 0]> : tensor<5xi32>
  return
}

// -----

func.func @remainder_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.remainder: operands have different shapes: tensor<2x3xf32> and tensor<2x4xf32> [remainder_c1]}}
  %0 = stablehlo.remainder %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}
