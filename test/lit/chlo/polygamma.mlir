// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Derivatives of digamma: the first operand says which.
// CHECK-LABEL: func.func @polygamma(
// CHECK: %0 = chlo.polygamma %arg0, %arg1 : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "polygamma"
// GENERIC: %{{[0-9]+}} = "chlo.polygamma"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @polygamma(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.polygamma %arg0, %arg1 : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf32>
  %y = stablehlo.constant dense<[1.0, 2.0, 0.5]> : tensor<3xf32>
  %0 = chlo.polygamma %x, %y : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %expected = stablehlo.constant dense<[-0.577215665, 0.644934067, -16.8287966]> : tensor<3xf32>
  check.expect_close %0, %expected, max_ulp_difference = 32 : tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @polygamma_c1(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) {
  // expected-error @below {{chlo.polygamma: operands have different types: tensor<2xf32> and tensor<3xf32> [chlo.polygamma_c1]}}
  %0 = chlo.polygamma %arg0, %arg1 : tensor<2xf32>, tensor<3xf32> -> tensor<2xf32>
  return
}
