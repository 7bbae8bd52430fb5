// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Bits that follow from a state alone: known answers of Threefry and Philox.
// CHECK-LABEL: func.func @rng_bit_generator(
// CHECK: %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
// GENERIC-LABEL: sym_name = "rng_bit_generator"
// GENERIC: %{{[0-9]+}}:2 = "stablehlo.rng_bit_generator"(%{{arg[0-9]+}}) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
func.func @rng_bit_generator(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>) {
  %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %output_state, %output : tensor<2xui64>, tensor<4xui32>
}

func.func @run() {
  %state = stablehlo.constant dense<0> : tensor<2xui64>
  %0:2 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>)
  check.expect_eq_const %0#1, dense<[1797259609, 2579123966]> : tensor<2xui32>
  check.expect_eq_const %0#0, dense<[0, 1]> : tensor<2xui64>
  %long = stablehlo.constant dense<0> : tensor<3xui64>
  %1:2 = stablehlo.rng_bit_generator %long, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  check.expect_eq_const %1#1, dense<[1713891541, 3781805453, 3159862348, 2600524760]> : tensor<4xui32>
  check.expect_eq_const %1#0, dense<[0, 1, 0]> : tensor<3xui64>
  return
}

// -----

func.func @rng_bit_generator_c1(%arg0: tensor<2xui64>) {
  // expected-error @below {{stablehlo.rng_bit_generator: the state is tensor<2xui64> before and tensor<3xui64> after [rng_bit_generator_c1]}}
  %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return
}
