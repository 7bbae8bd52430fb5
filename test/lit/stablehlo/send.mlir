// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A value over a channel, to another device or to the host.
// CHECK-LABEL: func.func @send(
// CHECK: %0 = "stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
// GENERIC-LABEL: sym_name = "send"
// GENERIC: %{{[0-9]+}} = "stablehlo.send"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
func.func @send(%arg0: tensor<2xf32>, %arg1: !stablehlo.token) -> !stablehlo.token {
  %0 = "stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return %0 : !stablehlo.token
}

func.func @sends(%x: tensor<2xi32>, %t: !stablehlo.token) -> !stablehlo.token {
  %0 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  return %0 : !stablehlo.token
}

func.func @receives(%t: !stablehlo.token) -> (tensor<2xi32>, !stablehlo.token) {
  %0:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  return %0#0, %0#1 : tensor<2xi32>, !stablehlo.token
}

func.func @run() {
  %x = stablehlo.constant dense<[5, 6]> : tensor<2xi32>
  %t = stablehlo.create_token : !stablehlo.token
  %0:3 = "interpreter.run_parallel"(%x, %t, %t) {programs = [[@sends], [@receives]]} : (tensor<2xi32>, !stablehlo.token, !stablehlo.token) -> (!stablehlo.token, tensor<2xi32>, !stablehlo.token)
  check.expect_eq_const %0#1, dense<[5, 6]> : tensor<2xi32>
  return
}

// -----

func.func @send_c1(%arg0: tensor<2xf32>, %arg1: !stablehlo.token) {
  // expected-error @below {{stablehlo.send: the channel's type is 1, not 2 (DEVICE_TO_HOST) [send_c1]}}
  %0 = "stablehlo.send"(%arg0, %arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return
}
