// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Random numbers: uniform ones between two bounds, normal ones around a mean. Which ones is not said,
// so only the bounds are checked.
// CHECK-LABEL: func.func @rng(
// CHECK: %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
// CHECK-NEXT: %0 = stablehlo.rng %arg0, %arg1, %c, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "rng"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<[2, 3]> : tensor<2xi64>}> : () -> tensor<2xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.rng"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{[0-9]+}}) <{rng_distribution = #stablehlo<rng_distribution NORMAL>}> : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
func.func @rng(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %0 = stablehlo.rng %arg0, %arg1, %c, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %a = stablehlo.constant dense<2.0> : tensor<f32>
  %b = stablehlo.constant dense<3.0> : tensor<f32>
  %shape = stablehlo.constant dense<[2, 50]> : tensor<2xi64>
  %0 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x50xf32>
  %1 = stablehlo.floor %0 : tensor<2x50xf32>
  check.expect_eq_const %1, dense<2.0> : tensor<2x50xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.rng %a, %zero, %shape, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x50xf32>
  check.expect_eq_const %2, dense<2.0> : tensor<2x50xf32>
  return
}

// -----

func.func @rng_c1(%arg0: tensor<f32>, %arg1: tensor<f64>) {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @below {{stablehlo.rng: element types differ: f32 and f64 [rng_c1]}}
  %0 = stablehlo.rng %arg0, %arg1, %c, distribution = NORMAL : (tensor<f32>, tensor<f64>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @rng_c2(%arg0: tensor<i32>, %arg1: tensor<i32>) {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @below {{stablehlo.rng: NORMAL numbers are floats, not i32 [rng_c2]}}
  %0 = stablehlo.rng %arg0, %arg1, %c, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<2xi64>) -> tensor<2x3xi32>
  return
}

// -----

func.func @rng_c3(%arg0: tensor<f32>, %arg1: tensor<f32>) {
  %c = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @below {{stablehlo.rng: result #0 is tensor<3x3xf32>, but tensor<2x3xf32> follows from the operands [rng_c3]}}
  %0 = stablehlo.rng %arg0, %arg1, %c, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x3xf32>
  return
}
