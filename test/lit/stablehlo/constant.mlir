// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Literals of every element type, one number for all elements, and bit patterns.
// CHECK-LABEL: func.func @constant(
// CHECK: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// GENERIC-LABEL: sym_name = "constant"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
func.func @constant() -> tensor<2xf32> {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
  return %cst : tensor<2xf32>
}

// CHECK-LABEL: func.func @constant_2(
// CHECK: %c = stablehlo.constant dense<{{\[\[}}1, -2], [3, 4]]> : tensor<2x2xi32>
// GENERIC-LABEL: sym_name = "constant_2"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<{{\[\[}}1, -2], [3, 4]]> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
func.func @constant_2() -> tensor<2x2xi32> {
  %c = stablehlo.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi32>
  return %c : tensor<2x2xi32>
}

// CHECK-LABEL: func.func @constant_3(
// CHECK: %cst = stablehlo.constant dense<[0x7FC00000, 0xFF800000]> : tensor<2xf32>
// GENERIC-LABEL: sym_name = "constant_3"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<[0x7FC00000, 0xFF800000]> : tensor<2xf32>}> : () -> tensor<2xf32>
func.func @constant_3() -> tensor<2xf32> {
  %cst = stablehlo.constant dense<[0x7FC00000, 0xFF800000]> : tensor<2xf32>
  return %cst : tensor<2xf32>
}

func.func @run() {
  %0 = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>
  %1 = stablehlo.reshape %0 : (tensor<2x3xi8>) -> tensor<6xi8>
  check.expect_eq_const %1, dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi8>
  %2 = stablehlo.constant dense<0x3FC00000> : tensor<2xf32>
  check.expect_eq_const %2, dense<1.5> : tensor<2xf32>
  %3 = stablehlo.constant dense<"0x0000803F000000C0"> : tensor<2xf32>
  check.expect_eq_const %3, dense<[1.0, -2.0]> : tensor<2xf32>
  %4 = stablehlo.constant dense<(1.0, -0.0)> : tensor<complex<f64>>
  check.expect_eq_const %4, dense<(1.0, -0.0)> : tensor<complex<f64>>
  %5 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  check.expect_eq_const %5, dense<[true, false]> : tensor<2xi1>
  %6 = stablehlo.constant dense<[-8, 7]> : tensor<2xi4>
  check.expect_eq_const %6, dense<[-8, 7]> : tensor<2xi4>
  %7 = stablehlo.constant dense<> : tensor<0x3xf32>
  check.expect_eq_const %7, dense<> : tensor<0x3xf32>
  return
}

// -----

func.func @constant_c1() {
  // expected-error @below {{stablehlo.constant: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [constant_c1]}}
  %cst = stablehlo.constant() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<3xf32>
  return
}
