// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// How many bits are set.
// CHECK-LABEL: func.func @popcnt(
// CHECK: %0 = stablehlo.popcnt %arg0 : tensor<2x3xi32>
// GENERIC-LABEL: sym_name = "popcnt"
// GENERIC: %{{[0-9]+}} = "stablehlo.popcnt"(%{{arg[0-9]+}}) : (tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @popcnt(%arg0: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %0 = stablehlo.popcnt %arg0 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0, 1, 127, -1, -128]> : tensor<5xi8>
  %0 = stablehlo.popcnt %x : tensor<5xi8>
  check.expect_eq_const %0, dense<[0, 1, 7, 8, 1]> : tensor<5xi8>
  %x1 = stablehlo.constant dense<[0, 18446744073709551615]> : tensor<2xui64>
  %1 = stablehlo.popcnt %x1 : tensor<2xui64>
  check.expect_eq_const %1, dense<[0, 64]> : tensor<2xui64>
  return
}

// -----

func.func @popcnt_c1(%arg0: tensor<2x3xi32>) {
  // expected-error @below {{stablehlo.popcnt: result #0 is tensor<3x2xi32>, but tensor<2x3xi32> follows from the operands [popcnt_c1]}}
  %0 = stablehlo.popcnt %arg0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return
}
