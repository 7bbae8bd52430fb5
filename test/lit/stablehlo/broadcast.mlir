// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// New dimensions in front (an op of the past).
// CHECK-LABEL: func.func @broadcast(
// CHECK: %0 = stablehlo.broadcast %arg0, sizes = [4] : (tensor<2xf32>) -> tensor<4x2xf32>
// GENERIC-LABEL: sym_name = "broadcast"
// GENERIC: %{{[0-9]+}} = "stablehlo.broadcast"(%{{arg[0-9]+}}) <{broadcast_sizes = array<i64: 4>}> : (tensor<2xf32>) -> tensor<4x2xf32>
func.func @broadcast(%arg0: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.broadcast %arg0, sizes = [4] : (tensor<2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %0 = stablehlo.broadcast %x, sizes = [3] : (tensor<2xi32>) -> tensor<3x2xi32>
  check.expect_eq_const %0, dense<[[1, 2], [1, 2], [1, 2]]> : tensor<3x2xi32>
  return
}

// -----

func.func @broadcast_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{stablehlo.broadcast: result #0 is tensor<4x2xf32>, but tensor<5x2xf32> follows from the operands [broadcast_c1]}}
  %0 = stablehlo.broadcast %arg0, sizes = [5] : (tensor<2xf32>) -> tensor<4x2xf32>
  return
}
