// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Values from the queue that the host feeds.
// CHECK-LABEL: func.func @infeed(
// CHECK: %0:2 = "stablehlo.infeed"(%arg0) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
// GENERIC-LABEL: sym_name = "infeed"
// GENERIC: %{{[0-9]+}}:2 = "stablehlo.infeed"(%{{arg[0-9]+}}) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
func.func @infeed(%arg0: !stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) {
  %0:2 = "stablehlo.infeed"(%arg0) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %0#0, %0#1 : tensor<2xf32>, !stablehlo.token
}

func.func @first() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[5, 6]> : tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @second() -> tensor<2xi32> {
  %0 = stablehlo.constant dense<[7, 8]> : tensor<2xi32>
  return %0 : tensor<2xi32>
}

func.func @reads(%t: !stablehlo.token) -> (tensor<2xi32>, tensor<2xi32>) {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  %1:2 = "stablehlo.infeed"(%0#1) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  return %0#0, %1#0 : tensor<2xi32>, tensor<2xi32>
}

func.func @run() {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "interpreter.run_parallel"(%t) {infeed = [@first, @second], programs = [[@reads]]} : (!stablehlo.token) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %0#0, dense<[5, 6]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<[7, 8]> : tensor<2xi32>
  return
}

// -----

func.func @infeed_c1(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.infeed: there is no result, not even a token [infeed_c1]}}
  "stablehlo.infeed"(%arg0) <{infeed_config = ""}> : (!stablehlo.token) -> ()
  return
}

// -----

func.func @infeed_c2(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.infeed: a result before the last is !stablehlo.token, not a tensor of static shape [infeed_c2]}}
  %0:2 = "stablehlo.infeed"(%arg0) <{infeed_config = ""}> : (!stablehlo.token) -> (!stablehlo.token, !stablehlo.token)
  return
}

// -----

func.func @infeed_c3(%arg0: !stablehlo.token) {
  // expected-error @below {{stablehlo.infeed: the last result is tensor<2xf32>, not a token [infeed_c3]}}
  %0:2 = "stablehlo.infeed"(%arg0) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<2xf32>, tensor<2xf32>)
  return
}
