// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// What the processes of a group have, combined; each gets its part.
// CHECK-LABEL: func.func @reduce_scatter(
// CHECK: %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT: stablehlo.return %1 : tensor<f32>
// CHECK-NEXT: }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
// GENERIC-LABEL: sym_name = "reduce_scatter"
// GENERIC: %{{[0-9]+}} = "stablehlo.reduce_scatter"(%{{arg[0-9]+}}) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<f32>) -> ()
// GENERIC-NEXT: }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
func.func @reduce_scatter(%arg0: tensor<2x4xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

func.func @both(%x: tensor<4xi32>) -> tensor<2xi32> {
  %0 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%p: tensor<i32>, %q: tensor<i32>):
    %1 = stablehlo.add %p, %q : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<4xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @run() {
  %a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %b = stablehlo.constant dense<[10, 20, 30, 40]> : tensor<4xi32>
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@both], [@both]]} : (tensor<4xi32>, tensor<4xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[11, 22]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<[33, 44]> : tensor<2xi32>
  return
}

// -----

func.func @reduce_scatter_c1(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.reduce_scatter: 4 elements do not divide by groups of 3 [reduce_scatter_c1]}}
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @reduce_scatter_c2(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.reduce_scatter: scatter_dimension has 2, which is none of the 2 dimensions [reduce_scatter_c2]}}
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 2 : i64, use_global_device_ids}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @reduce_scatter_c3(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.reduce_scatter: replica_groups has 0 twice [reduce_scatter_c3]}}
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @reduce_scatter_c5(%arg0: tensor<2x4xf32>) {
  // expected-error @below {{stablehlo.reduce_scatter: replica_groups lacks 1 [reduce_scatter_c5]}}
  %0 = "stablehlo.reduce_scatter"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return
}
