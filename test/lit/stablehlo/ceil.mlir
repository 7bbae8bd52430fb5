// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Towards positive infinity; what rounds up to zero from below stays negative.
// CHECK-LABEL: func.func @ceil(
// CHECK: %0 = stablehlo.ceil %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "ceil"
// GENERIC: %{{[0-9]+}} = "stablehlo.ceil"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @ceil(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.ceil %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-1.5, -0.5, 0.25, 0x7F800000, 0x7FC00000]> : tensor<5xf32>
  %0 = stablehlo.ceil %x : tensor<5xf32>
  check.expect_eq_const %0, dense<[-1.0, -0.0, 1.0, 0x7F800000, 0x7FC00000]> : tensor<5xf32>
  return
}

// -----

func.func @ceil_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.ceil: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [ceil_c1]}}
  %0 = stablehlo.ceil %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
