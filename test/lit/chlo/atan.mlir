// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Arc tangents.
// CHECK-LABEL: func.func @atan(
// CHECK: %0 = chlo.atan %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "atan"
// GENERIC: %{{[0-9]+}} = "chlo.atan"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @atan(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.atan %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, -0.0, 1.0, -1.0, 0x7F800000, 0xFF800000]> : tensor<6xf32>
  %0 = chlo.atan %x : tensor<6xf32> -> tensor<6xf32>
  %expected = stablehlo.constant dense<[0.0, -0.0, 0.785398163, -0.785398163, 1.57079633, -1.57079633]> : tensor<6xf32>
  check.expect_close %0, %expected, max_ulp_difference = 4 : tensor<6xf32>, tensor<6xf32>
  return
}

// -----

func.func @atan_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.atan: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.atan_c1]}}
  %0 = chlo.atan %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
