// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Whether a number is positive infinity.
// CHECK-LABEL: func.func @is_pos_inf(
// CHECK: %0 = chlo.is_pos_inf %arg0 : tensor<2xf32> -> tensor<2xi1>
// GENERIC-LABEL: sym_name = "is_pos_inf"
// GENERIC: %{{[0-9]+}} = "chlo.is_pos_inf"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xi1>
func.func @is_pos_inf(%arg0: tensor<2xf32>) -> tensor<2xi1> {
  %0 = chlo.is_pos_inf %arg0 : tensor<2xf32> -> tensor<2xi1>
  return %0 : tensor<2xi1>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<4xf32>
  %0 = chlo.is_pos_inf %x : tensor<4xf32> -> tensor<4xi1>
  check.expect_eq_const %0, dense<[false, true, false, false]> : tensor<4xi1>
  return
}

// -----

func.func @is_pos_inf_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.is_pos_inf: result #0 is tensor<3xi1>, but tensor<2xi1> follows from the operands [chlo.is_pos_inf_c1]}}
  %0 = chlo.is_pos_inf %arg0 : tensor<2xf32> -> tensor<3xi1>
  return
}
