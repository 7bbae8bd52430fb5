// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// What the arc sine and cosine of a complex number have in common; not meant for programs. Here it
// tells the arc sine: the real part from its real part, the imaginary part is its own.
// CHECK-LABEL: func.func @_asin_acos_kernel(
// CHECK: %0 = chlo._asin_acos_kernel %arg0 : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
// GENERIC-LABEL: sym_name = "_asin_acos_kernel"
// GENERIC: %{{[0-9]+}} = "chlo._asin_acos_kernel"(%{{arg[0-9]+}}) : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
func.func @_asin_acos_kernel(%arg0: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = chlo._asin_acos_kernel %arg0 : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}

func.func @run() {
  %x = stablehlo.constant dense<[(0.0, 2.0)]> : tensor<1xcomplex<f32>>
  %0 = chlo._asin_acos_kernel %x : tensor<1xcomplex<f32>> -> tensor<1xcomplex<f32>>
  %1 = stablehlo.imag %0 : (tensor<1xcomplex<f32>>) -> tensor<1xf32>
  check.expect_almost_eq_const %1, dense<[1.44363548]> : tensor<1xf32>
  return
}

// -----

func.func @_asin_acos_kernel_c1(%arg0: tensor<2xcomplex<f32>>) {
  // expected-error @below {{chlo._asin_acos_kernel: result #0 is tensor<3xcomplex<f32>>, but tensor<2xcomplex<f32>> follows from the operands [chlo._asin_acos_kernel_c1]}}
  %0 = chlo._asin_acos_kernel %arg0 : tensor<2xcomplex<f32>> -> tensor<3xcomplex<f32>>
  return
}
