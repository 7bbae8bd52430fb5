// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A value from a channel, of another device or of the host.
// CHECK-LABEL: func.func @recv(
// CHECK: %0:2 = "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
// GENERIC-LABEL: sym_name = "recv"
// GENERIC: %{{[0-9]+}}:2 = "stablehlo.recv"(%{{arg[0-9]+}}) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
func.func @recv(%arg0: !stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) {
  %0:2 = "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %0#0, %0#1 : tensor<2xf32>, !stablehlo.token
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

func.func @recv_c1(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.recv: the channel's type is 1, not 3 (HOST_TO_DEVICE) [recv_c1]}}
  %0:2 = "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return
}

// -----

func.func @recv_c2(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.recv: there is no result, not even a token [recv_c2]}}
  "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> ()
  return
}

// -----

func.func @recv_c3(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.recv: a result before the last is !stablehlo.token, not a tensor of static shape [recv_c3]}}
  %0:2 = "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (!stablehlo.token, !stablehlo.token)
  return
}

// -----

func.func @recv_c4(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.recv: the last result is tensor<2xf32>, not a token [recv_c4]}}
  %0:2 = "stablehlo.recv"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>)
  return
}
