// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One number in the shape of the operand, also when that is not known.
// CHECK-LABEL: func.func @constant_like(
// CHECK: %0 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<2xf32>) -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "constant_like"
// GENERIC: %{{[0-9]+}} = "chlo.constant_like"(%{{arg[0-9]+}}) <{value = 1.000000e+00 : f32}> : (tensor<2xf32>) -> tensor<2xf32>
func.func @constant_like(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = "chlo.constant_like"(%x) <{value = 1.500000e+00 : f32}> : (tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[1.5, 1.5]> : tensor<2xf32>
  return
}

// -----

func.func @constant_like_c1(%arg0: tensor<2xf32>) {
  // expected-error @below {{chlo.constant_like: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [chlo.constant_like_c1]}}
  %0 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<2xf32>) -> tensor<3xf32>
  return
}
