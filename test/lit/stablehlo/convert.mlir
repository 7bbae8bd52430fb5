// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// From any element type to any: floats to integers towards zero, and into range; integers lose high
// bits; what is not zero is true; to narrower floats the nearest, halves to even.
// CHECK-LABEL: func.func @convert(
// CHECK: %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi8>
// GENERIC-LABEL: sym_name = "convert"
// GENERIC: %{{[0-9]+}} = "stablehlo.convert"(%{{arg[0-9]+}}) : (tensor<4xf32>) -> tensor<4xi8>
func.func @convert(%arg0: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

func.func @run() {
  %x = stablehlo.constant dense<[-1.75, 2.75, 1.0e10, 0xFF800000, 0x7FC00000]> : tensor<5xf32>
  %0 = stablehlo.convert %x : (tensor<5xf32>) -> tensor<5xi32>
  check.expect_eq_const %0, dense<[-1, 2, 2147483647, -2147483648, 0]> : tensor<5xi32>
  %i = stablehlo.constant dense<[300, -129, -1]> : tensor<3xi32>
  %1 = stablehlo.convert %i : (tensor<3xi32>) -> tensor<3xi8>
  check.expect_eq_const %1, dense<[44, 127, -1]> : tensor<3xi8>
  %2 = stablehlo.convert %i : (tensor<3xi32>) -> tensor<3xui32>
  check.expect_eq_const %2, dense<[300, 4294967167, 4294967295]> : tensor<3xui32>
  %y = stablehlo.constant dense<[0.0, -0.0, 0.5, 0x7FC00000]> : tensor<4xf32>
  %3 = stablehlo.convert %y : (tensor<4xf32>) -> tensor<4xi1>
  check.expect_eq_const %3, dense<[false, false, true, true]> : tensor<4xi1>
  %p = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %4 = stablehlo.convert %p : (tensor<2xi1>) -> tensor<2xf32>
  check.expect_eq_const %4, dense<[1.0, 0.0]> : tensor<2xf32>
  %z = stablehlo.constant dense<[1.00390625, 1.01171875, 3.4e38, -0.0]> : tensor<4xf32>
  %5 = stablehlo.convert %z : (tensor<4xf32>) -> tensor<4xbf16>
  check.expect_eq_const %5, dense<[1.0, 1.015625, 0x7F80, -0.0]> : tensor<4xbf16>
  %6 = stablehlo.convert %y : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  check.expect_eq_const %6, dense<[(0.0, 0.0), (-0.0, 0.0), (0.5, 0.0), (0x7FC00000, 0.0)]> : tensor<4xcomplex<f32>>
  return
}

// -----

func.func @convert_c1(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.convert: result #0 is tensor<3xi8>, but tensor<4xi8> follows from the operands [convert_c1]}}
  %0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<3xi8>
  return
}
