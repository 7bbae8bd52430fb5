// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Fourier transforms of the last dimensions: complex, inverse, of real numbers, to real numbers.
// CHECK-LABEL: func.func @fft(
// CHECK: %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
// GENERIC-LABEL: sym_name = "fft"
// GENERIC: %{{[0-9]+}} = "stablehlo.fft"(%{{arg[0-9]+}}) <{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
func.func @fft(%arg0: tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>> {
  %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
  return %0 : tensor<2x5xcomplex<f32>>
}

func.func @run() {
  %x = stablehlo.constant dense<[(1.0, 0.0), (0.0, 0.0), (-1.0, 0.0), (0.0, 0.0)]> : tensor<4xcomplex<f32>>
  %0 = stablehlo.fft %x, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  check.expect_almost_eq_const %0, dense<[(0.0, 0.0), (2.0, 0.0), (0.0, 0.0), (2.0, 0.0)]> : tensor<4xcomplex<f32>>
  %1 = stablehlo.fft %0, type = IFFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  check.expect_almost_eq_const %1, dense<[(1.0, 0.0), (0.0, 0.0), (-1.0, 0.0), (0.0, 0.0)]> : tensor<4xcomplex<f32>>
  %r = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %2 = stablehlo.fft %r, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  check.expect_almost_eq_const %2, dense<[(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0)]> : tensor<3xcomplex<f32>>
  %3 = stablehlo.fft %2, type = IRFFT, length = [4] : (tensor<3xcomplex<f32>>) -> tensor<4xf32>
  check.expect_almost_eq_const %3, dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return
}

// -----

func.func @fft_c1(%arg0: tensor<2x8xf32>) {
  // expected-error @below {{stablehlo.fft: fft_length has 3 entries for rank 2 [fft_c1]}}
  %0 = stablehlo.fft %arg0, type = RFFT, length = [2, 8, 8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
  return
}

// -----

func.func @fft_c2(%arg0: tensor<2x8xcomplex<f32>>) {
  // expected-error @below {{stablehlo.fft: RFFT takes f32 or f64 elements, not tensor<2x8xcomplex<f32>> [fft_c2]}}
  %0 = stablehlo.fft %arg0, type = RFFT, length = [8] : (tensor<2x8xcomplex<f32>>) -> tensor<2x5xcomplex<f32>>
  return
}

// -----

func.func @fft_c3(%arg0: tensor<2x8xf32>) {
  // expected-error @below {{stablehlo.fft: fft_length has 0 entries [fft_c3]}}
  %0 = stablehlo.fft %arg0, type = RFFT, length = [] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
  return
}

// -----

func.func @fft_c4(%arg0: tensor<2x8xf32>) {
  // expected-error @below {{stablehlo.fft: fft_length (7,) is not at the end of tensor<2x8xf32> [fft_c4]}}
  %0 = stablehlo.fft %arg0, type = RFFT, length = [7] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
  return
}
