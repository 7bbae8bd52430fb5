// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The first process of a group gives its value to all.
// CHECK-LABEL: func.func @collective_broadcast(
// CHECK: %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
// GENERIC-LABEL: sym_name = "collective_broadcast"
// GENERIC: %{{[0-9]+}} = "stablehlo.collective_broadcast"(%{{arg[0-9]+}}) <{replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
func.func @collective_broadcast(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @both(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @run() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@both], [@both]]} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[3, 4]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<[3, 4]> : tensor<2xi32>
  return
}

// -----

func.func @collective_broadcast_c1(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.collective_broadcast: replica_groups has a replica twice [collective_broadcast_c1]}}
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<0> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @collective_broadcast_c2(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.collective_broadcast: replica_groups has -1 [collective_broadcast_c2]}}
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0, -1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @collective_broadcast_c3(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.collective_broadcast: result #0 is tensor<5xf32>, but tensor<4xf32> follows from the operands [collective_broadcast_c3]}}
  %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<5xf32>
  return
}
