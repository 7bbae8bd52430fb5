// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Towards negative infinity.
// CHECK-LABEL: func.func @floor(
// CHECK: %0 = stablehlo.floor %arg0 : tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "floor"
// GENERIC: %{{[0-9]+}} = "stablehlo.floor"(%{{arg[0-9]+}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @floor(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.floor %arg0 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[-1.5, -0.0, 0.75, 0xFF800000, 0x7FC00000]> : tensor<5xf32>
  %0 = stablehlo.floor %x : tensor<5xf32>
  check.expect_eq_const %0, dense<[-2.0, -0.0, 0.0, 0xFF800000, 0x7FC00000]> : tensor<5xf32>
  return
}

// -----

func.func @floor_c1(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.floor: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [floor_c1]}}
  %0 = stablehlo.floor %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}
