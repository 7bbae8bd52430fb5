// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The largest elements of the last dimension and where they are, larger ones first, of equal ones the
// first.
// CHECK-LABEL: func.func @top_k(
// CHECK: %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
// GENERIC-LABEL: sym_name = "top_k"
// GENERIC: %{{[0-9]+}}:2 = "chlo.top_k"(%{{arg[0-9]+}}) <{k = 2 : i64}> : (tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>)
func.func @top_k(%arg0: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return %values, %indices : tensor<3x2xf32>, tensor<3x2xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[3.0, 9.0, 1.0, 9.0], [-1.0, 0xFF800000, -3.0, -2.0]]> : tensor<2x4xf32>
  %0:2 = chlo.top_k(%x, k = 3) : tensor<2x4xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
  check.expect_eq_const %0#0, dense<[[9.0, 9.0, 3.0], [-1.0, -2.0, -3.0]]> : tensor<2x3xf32>
  check.expect_eq_const %0#1, dense<[[1, 3, 0], [0, 3, 2]]> : tensor<2x3xi32>
  return
}

// -----

func.func @top_k_c1(%arg0: tensor<f32>) {
  // expected-error @below {{chlo.top_k: the operand is tensor<f32> [chlo.top_k_c1]}}
  %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<f32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return
}

// -----

func.func @top_k_c2(%arg0: tensor<3x8xf32>) {
  // expected-error @below {{chlo.top_k: there are 8 elements, not 9 [chlo.top_k_c2]}}
  %values, %indices = chlo.top_k(%arg0, k = 9) : tensor<3x8xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return
}

// -----

func.func @top_k_c3(%arg0: tensor<3x8xf32>) {
  // expected-error @below {{chlo.top_k: result #0 is tensor<3x3xf32>, but tensor<3x2xf32> follows from the operands [chlo.top_k_c3]}}
  %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<3x8xf32> -> (tensor<3x3xf32>, tensor<3x2xi32>)
  return
}
