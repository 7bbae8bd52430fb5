// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Values into the queue that the host reads; what is left here is the token.
// CHECK-LABEL: func.func @outfeed(
// CHECK: %0 = "stablehlo.outfeed"(%arg0, %arg1) <{outfeed_config = ""}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
// GENERIC-LABEL: sym_name = "outfeed"
// GENERIC: %{{[0-9]+}} = "stablehlo.outfeed"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{outfeed_config = ""}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
func.func @outfeed(%arg0: tensor<2xf32>, %arg1: !stablehlo.token) -> !stablehlo.token {
  %0 = "stablehlo.outfeed"(%arg0, %arg1) <{outfeed_config = ""}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
  return %0 : !stablehlo.token
}

func.func @writes(%x: tensor<2xi32>, %t: !stablehlo.token) -> (tensor<2xi32>, !stablehlo.token) {
  %0 = "stablehlo.outfeed"(%x, %t) <{outfeed_config = ""}> : (tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
  return %x, %0 : tensor<2xi32>, !stablehlo.token
}

func.func @run() {
  %x = stablehlo.constant dense<[5, 6]> : tensor<2xi32>
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "interpreter.run_parallel"(%x, %t) {programs = [[@writes]]} : (tensor<2xi32>, !stablehlo.token) -> (tensor<2xi32>, !stablehlo.token)
  check.expect_eq_const %0#0, dense<[5, 6]> : tensor<2xi32>
  check.expect_eq %0#1, %t : !stablehlo.token
  return
}

// -----

func.func @no_token(%a: tensor<2xi32>) {
  // expected-error @below {{stablehlo.outfeed: the last operand is not a token [outfeed_i2]}}
  %0 = "stablehlo.outfeed"(%a, %a) <{outfeed_config = ""}> : (tensor<2xi32>, tensor<2xi32>) -> !stablehlo.token
  return
}
