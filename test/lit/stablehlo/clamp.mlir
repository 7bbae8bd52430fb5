// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Between a least and a greatest value, which may be scalars.
// CHECK-LABEL: func.func @clamp(
// CHECK: %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// GENERIC-LABEL: sym_name = "clamp"
// GENERIC: %{{[0-9]+}} = "stablehlo.clamp"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @clamp(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @run() {
  %min = stablehlo.constant dense<-1.0> : tensor<f32>
  %x = stablehlo.constant dense<[-5.0, 0.5, 7.0, 0x7FC00000, 0xFF800000]> : tensor<5xf32>
  %max = stablehlo.constant dense<[1.0, 1.0, 2.0, 1.0, 1.0]> : tensor<5xf32>
  %0 = stablehlo.clamp %min, %x, %max : (tensor<f32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  check.expect_eq_const %0, dense<[-1.0, 0.5, 2.0, 0x7FC00000, -1.0]> : tensor<5xf32>
  return
}

// -----

func.func @clamp_c1(%arg0: tensor<3xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
  // expected-error @below {{stablehlo.clamp: min is neither a scalar nor of the operand's shape: tensor<3xf32> for tensor<4xf32> [clamp_c1]}}
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @clamp_c2(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<3xf32>) {
  // expected-error @below {{stablehlo.clamp: max is neither a scalar nor of the operand's shape: tensor<3xf32> for tensor<4xf32> [clamp_c2]}}
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @clamp_c3(%arg0: tensor<f64>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
  // expected-error @below {{stablehlo.clamp: element types differ: f64 and f32 [clamp_c3]}}
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @clamp_c4(%arg0: tensor<f32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
  // expected-error @below {{stablehlo.clamp: result #0 is tensor<3xf32>, but tensor<4xf32> follows from the operands [clamp_c4]}}
  %0 = stablehlo.clamp %arg0, %arg1, %arg2 : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3xf32>
  return
}
