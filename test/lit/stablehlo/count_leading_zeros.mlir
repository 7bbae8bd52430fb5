// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Zero bits above the highest one; all of them for zero.
// CHECK-LABEL: func.func @count_leading_zeros(
// CHECK: %0 = stablehlo.count_leading_zeros %arg0 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "count_leading_zeros"
// GENERIC: %{{[0-9]+}} = "stablehlo.count_leading_zeros"(%{{arg[0-9]+}}) : (tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @count_leading_zeros(%arg0: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = stablehlo.count_leading_zeros %arg0 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0, 1, 64, 127, -1]> : tensor<5xi8>
  %0 = stablehlo.count_leading_zeros %x : tensor<5xi8>
  check.expect_eq_const %0, dense<[8, 7, 1, 1, 0]> : tensor<5xi8>
  %x1 = stablehlo.constant dense<[0, 1, -1]> : tensor<3xi64>
  %1 = stablehlo.count_leading_zeros %x1 : tensor<3xi64>
  check.expect_eq_const %1, dense<[64, 63, 0]> : tensor<3xi64>
  return
}

// -----

func.func @count_leading_zeros_c1(%arg0: tensor<2x3xi32>) {
  // expected-error @below {{stablehlo.count_leading_zeros: result #0 is tensor<3x2xi32>, but tensor<2x3xi32> follows from the operands [count_leading_zeros_c1]}}
  %0 = stablehlo.count_leading_zeros %arg0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return
}
