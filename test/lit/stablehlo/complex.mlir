// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Complex numbers of real and imaginary parts.
// CHECK-LABEL: func.func @complex(
// CHECK: %0 = stablehlo.complex %arg0, %arg1 : tensor<4xcomplex<f32>>
// GENERIC-LABEL: sym_name = "complex"
// GENERIC: %{{[0-9]+}} = "stablehlo.complex"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
func.func @complex(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.complex %arg0, %arg1 : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

func.func @run() {
  %re = stablehlo.constant dense<[1.0, -0.0, 0x7FC00000]> : tensor<3xf32>
  %im = stablehlo.constant dense<[2.0, 0x7F800000, -0.0]> : tensor<3xf32>
  %0 = stablehlo.complex %re, %im : tensor<3xcomplex<f32>>
  check.expect_eq_const %0, dense<[(1.0, 2.0), (-0.0, 0x7F800000), (0x7FC00000, -0.0)]> : tensor<3xcomplex<f32>>
  return
}

// -----

func.func @complex_c1(%arg0: tensor<4xf32>, %arg1: tensor<4xf64>) {
  // expected-error @below {{stablehlo.complex: operands have different element types: f32 and f64 [complex_c1]}}
  %0 = stablehlo.complex %arg0, %arg1 : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xcomplex<f32>>
  return
}

// -----

func.func @complex_c2(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  // expected-error @below {{stablehlo.complex: result #0 is tensor<3xcomplex<f32>>, but tensor<4xcomplex<f32>> follows from the operands [complex_c2]}}
  %0 = stablehlo.complex %arg0, %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<3xcomplex<f32>>
  return
}

// -----

func.func @complex_c3(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  // expected-error @below {{stablehlo.complex: result #0 is tensor<4xcomplex<f64>>, but tensor<4xcomplex<f32>> follows from the operands [complex_c3]}}
  %0 = stablehlo.complex %arg0, %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f64>>
  return
}
