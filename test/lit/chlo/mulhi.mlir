// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The upper half of the product of twice the width.
// CHECK-LABEL: func.func @mulhi(
// CHECK: %0 = chlo.mulhi %arg0, %arg1 : tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>
// GENERIC-LABEL: sym_name = "mulhi"
// GENERIC: %{{[0-9]+}} = "chlo.mulhi"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
func.func @mulhi(%arg0: tensor<2xi32>, %arg1: tensor<2xi32>) -> tensor<2xi32> {
  %0 = chlo.mulhi %arg0, %arg1 : tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[2147483647, -1, 65536]> : tensor<3xi32>
  %y = stablehlo.constant dense<[2, 1, 65536]> : tensor<3xi32>
  %0 = chlo.mulhi %x, %y : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
  check.expect_eq_const %0, dense<[0, -1, 1]> : tensor<3xi32>
  %x1 = stablehlo.constant dense<[255, 16]> : tensor<2xui8>
  %y1 = stablehlo.constant dense<[255, 16]> : tensor<2xui8>
  %1 = chlo.mulhi %x1, %y1 : tensor<2xui8>, tensor<2xui8> -> tensor<2xui8>
  check.expect_eq_const %1, dense<[254, 1]> : tensor<2xui8>
  return
}

// -----

func.func @mulhi_c1(%arg0: tensor<2xi32>, %arg1: tensor<3xi32>) {
  // expected-error @below {{chlo.mulhi: operands have different types: tensor<2xi32> and tensor<3xi32> [chlo.mulhi_c1]}}
  %0 = chlo.mulhi %arg0, %arg1 : tensor<2xi32>, tensor<3xi32> -> tensor<2xi32>
  return
}
