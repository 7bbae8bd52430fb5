// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The Hurwitz zeta function.
// CHECK-LABEL: func.func @zeta(
// CHECK: %0 = chlo.zeta %arg0, %arg1 : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "zeta"
// GENERIC: %{{[0-9]+}} = "chlo.zeta"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @zeta(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.zeta %arg0, %arg1 : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[2.0, 3.0, 1.0]> : tensor<3xf32>
  %y = stablehlo.constant dense<[1.0, 2.5, 1.0]> : tensor<3xf32>
  %0 = chlo.zeta %x, %y : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  %expected = stablehlo.constant dense<[1.64493407, 0.118102026, 0x7F800000]> : tensor<3xf32>
  check.expect_close %0, %expected, max_ulp_difference = 16 : tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @zeta_c1(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) {
  // expected-error @below {{chlo.zeta: operands have different types: tensor<2xf32> and tensor<3xf32> [chlo.zeta_c1]}}
  %0 = chlo.zeta %arg0, %arg1 : tensor<2xf32>, tensor<3xf32> -> tensor<2xf32>
  return
}
