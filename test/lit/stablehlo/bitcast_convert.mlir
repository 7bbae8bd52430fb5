// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The same bits read as another type; narrower elements get a last dimension, the low bits first.
// CHECK-LABEL: func.func @bitcast_convert(
// CHECK: %0 = stablehlo.bitcast_convert %arg0 : (tensor<2xf64>) -> tensor<2x2xf32>
// GENERIC-LABEL: sym_name = "bitcast_convert"
// GENERIC: %{{[0-9]+}} = "stablehlo.bitcast_convert"(%{{arg[0-9]+}}) : (tensor<2xf64>) -> tensor<2x2xf32>
func.func @bitcast_convert(%arg0: tensor<2xf64>) -> tensor<2x2xf32> {
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<2xf64>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, -0.0, 0x7FC00000]> : tensor<3xf32>
  %0 = stablehlo.bitcast_convert %x : (tensor<3xf32>) -> tensor<3xi32>
  check.expect_eq_const %0, dense<[1065353216, -2147483648, 2143289344]> : tensor<3xi32>
  %i = stablehlo.constant dense<[16909060]> : tensor<1xi32>
  %1 = stablehlo.bitcast_convert %i : (tensor<1xi32>) -> tensor<1x4xui8>
  check.expect_eq_const %1, dense<[[4, 3, 2, 1]]> : tensor<1x4xui8>
  %2 = stablehlo.bitcast_convert %1 : (tensor<1x4xui8>) -> tensor<1xi32>
  check.expect_eq_const %2, dense<[16909060]> : tensor<1xi32>
  return
}

// -----

func.func @bitcast_convert_c1(%arg0: tensor<2xf64>) {
  // expected-error @below {{stablehlo.bitcast_convert: 3 elements of 32 bits do not make one of 64 bits [bitcast_convert_c1]}}
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<2xf64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @bitcast_convert_c2(%arg0: tensor<2xf64>) {
  // expected-error @below {{stablehlo.bitcast_convert: real and complex types do not convert: tensor<2xf64> and tensor<2xcomplex<f32>> [bitcast_convert_c2]}}
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<2xf64>) -> tensor<2xcomplex<f32>>
  return
}
