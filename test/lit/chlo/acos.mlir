// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Arc cosines, of -1 to 1.
// CHECK-LABEL: func.func @acos(
// CHECK: %0 = chlo.acos %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "acos"
// GENERIC: %{{[0-9]+}} = "chlo.acos"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @acos(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.acos %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, -1.0, 0.0, 0.5, 2.0]> : tensor<5xf32>
  %0 = chlo.acos %x : tensor<5xf32> -> tensor<5xf32>
  %expected = stablehlo.constant dense<[0.0, 3.14159265, 1.57079633, 1.04719755, 0x7FC00000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @acos_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.acos: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.acos_c1]}}
  %0 = chlo.acos %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
