// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Rounded to a float of fewer bits, and back: beyond its range infinite.
// CHECK-LABEL: func.func @reduce_precision(
// CHECK: %0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4xf32>
// GENERIC-LABEL: sym_name = "reduce_precision"
// GENERIC: %{{[0-9]+}} = "stablehlo.reduce_precision"(%{{arg[0-9]+}}) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
func.func @reduce_precision(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.00048828125, 1.00146484375, 65520.0, 1.0e-9, -0.0, 0x7FC00000]> : tensor<6xf32>
  %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<6xf32>
  check.expect_eq_const %0, dense<[1.0, 1.001953125, 0x7F800000, 0.0, -0.0, 0x7FC00000]> : tensor<6xf32>
  return
}

// -----

func.func @reduce_precision_c1(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.reduce_precision: result #0 is tensor<3xf32>, but tensor<4xf32> follows from the operands [reduce_precision_c1]}}
  %0 = stablehlo.reduce_precision %arg0, format = e5m10 : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @reduce_precision_c2(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.reduce_precision: exponent_bits is 0 [reduce_precision_c2]}}
  %0 = stablehlo.reduce_precision %arg0, format = e0m10 : tensor<4xf32>
  return
}

// -----

func.func @reduce_precision_c3(%a0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.reduce_precision: mantissa_bits is -1 [reduce_precision_c3]}}
  %r:1 = "stablehlo.reduce_precision"(%a0) <{exponent_bits = 5 : i32, mantissa_bits = -1 : i32}> : (tensor<4xf32>) -> (tensor<4xf32>)
  return
}
