// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Powers of e; large ones overflow, small ones vanish.
// CHECK-LABEL: func.func @exponential(
// CHECK: %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "exponential"
// GENERIC: %{{[0-9]+}} = "stablehlo.exponential"(%{{arg[0-9]+}}) <{result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @exponential(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @exponential_2(
// CHECK: %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "exponential_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.exponential"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @exponential_2(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.exponential %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, 1.0, -1.0, 100.0, -200.0, 0xFF800000, 0x7FC00000]> : tensor<7xf32>
  %0 = stablehlo.exponential %x : tensor<7xf32>
  %expected = stablehlo.constant dense<[1.0, 2.71828183, 0.367879441, 0x7F800000, 0.0, 0.0, 0x7FC00000]> : tensor<7xf32>
  check.expect_close %0, %expected, max_ulp_difference = 2 : tensor<7xf32>, tensor<7xf32>
  %x1 = stablehlo.constant dense<[0.0, 12.0]> : tensor<2xf16>
  %1 = stablehlo.exponential %x1 : tensor<2xf16>
  %expected2 = stablehlo.constant dense<[1.0, 0x7C00]> : tensor<2xf16>
  check.expect_close %1, %expected2, max_ulp_difference = 1 : tensor<2xf16>, tensor<2xf16>
  return
}

// -----

func.func @exponential_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.exponential: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [exponential_c1]}}
  %0 = stablehlo.exponential %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
