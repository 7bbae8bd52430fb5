// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A collective that begins here and ends at its async_done.
// CHECK-LABEL: func.func @async_start(
// CHECK: %0 = "stablehlo.async_start"(%arg0) ({
// CHECK-NEXT: ^bb0(%arg1: tensor<4xf32>):
// CHECK-NEXT: %2 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT: stablehlo.return %2 : tensor<8xf32>
// CHECK-NEXT: }) : (tensor<4xf32>) -> !stablehlo.future<tensor<8xf32>>
// CHECK-NEXT: %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<8xf32>>) -> tensor<8xf32>
// GENERIC-LABEL: sym_name = "async_start"
// GENERIC: %{{[0-9]+}} = "stablehlo.async_start"(%{{arg[0-9]+}}) ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<4xf32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.all_gather"(%{{arg[0-9]+}}) <{all_gather_dim = 0 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<8xf32>) -> ()
// GENERIC-NEXT: }) : (tensor<4xf32>) -> !stablehlo.future<tensor<8xf32>>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.async_done"(%{{[0-9]+}}) : (!stablehlo.future<tensor<8xf32>>) -> tensor<8xf32>
func.func @async_start(%arg0: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.async_start"(%arg0) ({
  ^bb0(%arg1: tensor<4xf32>):
    %2 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<8xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<8xf32>>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

func.func @both(%x: tensor<2xi32>) -> tensor<4xi32> {
  %f = "stablehlo.async_start"(%x) ({
  ^bb0(%y: tensor<2xi32>):
    %1 = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<4xi32>
    stablehlo.return %1 : tensor<4xi32>
  }) : (tensor<2xi32>) -> !stablehlo.future<tensor<4xi32>>
  %0 = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xi32>>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

func.func @run() {
  %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %b = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@both], [@both]]} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  check.expect_eq_const %0#0, dense<[1, 2, 3, 4]> : tensor<4xi32>
  check.expect_eq_const %0#1, dense<[1, 2, 3, 4]> : tensor<4xi32>
  return
}

// -----

func.func @no_future(%a: tensor<4xf32>) {
  // expected-error @below {{stablehlo.async_start: the result must be a future, not tensor<8xf32> [async_start_o1]}}
  %0 = "stablehlo.async_start"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    %1 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }) : (tensor<4xf32>) -> tensor<8xf32>
  return
}
