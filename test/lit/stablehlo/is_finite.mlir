// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Neither infinite nor NaN.
// CHECK-LABEL: func.func @is_finite(
// CHECK: %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
// GENERIC-LABEL: sym_name = "is_finite"
// GENERIC: %{{[0-9]+}} = "stablehlo.is_finite"(%{{arg[0-9]+}}) : (tensor<4xf32>) -> tensor<4xi1>
func.func @is_finite(%arg0: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, -0.0, 0x7F800000, 0xFF800000, 0x7FC00000, 3.0e+38]> : tensor<6xf32>
  %0 = stablehlo.is_finite %x : (tensor<6xf32>) -> tensor<6xi1>
  check.expect_eq_const %0, dense<[true, true, false, false, false, true]> : tensor<6xi1>
  return
}

// -----

func.func @is_finite_c1(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.is_finite: result #0 is tensor<3xi1>, but tensor<4xi1> follows from the operands [is_finite_c1]}}
  %0 = stablehlo.is_finite %arg0 : (tensor<4xf32>) -> tensor<3xi1>
  return
}
