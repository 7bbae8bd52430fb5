// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The next float towards another one; a number that is there already stays.
// CHECK-LABEL: func.func @next_after(
// CHECK: %0 = chlo.next_after %arg0, %arg1 : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "next_after"
// GENERIC: %{{[0-9]+}} = "chlo.next_after"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
func.func @next_after(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.next_after %arg0, %arg1 : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 0.0, -0.0, 3.0, 0x7FC00000]> : tensor<5xf32>
  %y = stablehlo.constant dense<[2.0, 1.0, -1.0, 3.0, 1.0]> : tensor<5xf32>
  %0 = chlo.next_after %x, %y : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
  check.expect_eq_const %0, dense<[1.00000012, 1.40129846e-45, -1.40129846e-45, 3.0, 0x7FC00000]> : tensor<5xf32>
  return
}

// -----

func.func @next_after_c1(%arg0: tensor<2xf32>, %arg1: tensor<3xf32>) {
  // expected-error @below {{chlo.next_after: operands have different types: tensor<2xf32> and tensor<3xf32> [chlo.next_after_c1]}}
  %0 = chlo.next_after %arg0, %arg1 : tensor<2xf32>, tensor<3xf32> -> tensor<2xf32>
  return
}
