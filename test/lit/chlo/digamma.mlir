// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The derivative of lgamma; its poles have no value.
// CHECK-LABEL: func.func @digamma(
// CHECK: %0 = chlo.digamma %arg0 : tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "digamma"
// GENERIC: %{{[0-9]+}} = "chlo.digamma"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @digamma(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.digamma %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0, 0.5, -0.5, -1.0]> : tensor<5xf32>
  %0 = chlo.digamma %x : tensor<5xf32> -> tensor<5xf32>
  %expected = stablehlo.constant dense<[-0.577215665, 0.422784335, -1.96351003, 0.036489974, 0x7FC00000]> : tensor<5xf32>
  check.expect_close %0, %expected, max_ulp_difference = 16 : tensor<5xf32>, tensor<5xf32>
  return
}

// -----

func.func @digamma_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.digamma: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.digamma_c1]}}
  %0 = chlo.digamma %arg0 : tensor<2xf32> -> tensor<3xf32>
  return
}
