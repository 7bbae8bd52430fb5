// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The operands unchanged; nothing is moved or folded across.
// CHECK-LABEL: func.func @optimization_barrier(
// CHECK: %0 = stablehlo.optimization_barrier %arg0 : tensor<2xf32>
// GENERIC-LABEL: sym_name = "optimization_barrier"
// GENERIC: %{{[0-9]+}} = "stablehlo.optimization_barrier"(%{{arg[0-9]+}}) : (tensor<2xf32>) -> tensor<2xf32>
func.func @optimization_barrier(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.optimization_barrier %arg0 : tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %y = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<2xi32>, tensor<f32>
  check.expect_eq_const %0#0, dense<[1, 2]> : tensor<2xi32>
  check.expect_eq_const %0#1, dense<0x7FC00000> : tensor<f32>
  return
}

// -----

func.func @optimization_barrier_c1(%a0: tensor<2xf32>) {
  // expected-error @below {{stablehlo.optimization_barrier: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [optimization_barrier_c1]}}
  %r:1 = "stablehlo.optimization_barrier"(%a0) : (tensor<2xf32>) -> (tensor<3xf32>)
  return
}
