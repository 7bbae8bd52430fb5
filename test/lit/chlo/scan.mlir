// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A computation that goes along a dimension and carries values.
// CHECK-LABEL: func.func @scan(
// CHECK: %0:2 = chlo.scan(%arg0) inits (%arg1) dimension=0  {
// CHECK-NEXT: ^bb0(%input: tensor<f32>, %carry: tensor<f32>):
// CHECK-NEXT: stablehlo.return %input, %carry : tensor<f32>, tensor<f32>
// CHECK-NEXT: } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
// GENERIC-LABEL: sym_name = "scan"
// GENERIC: %{{[0-9]+}}:2 = "chlo.scan"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: "stablehlo.return"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<f32>) -> ()
// GENERIC-NEXT: }) : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
func.func @scan(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {
  %0:2 = chlo.scan(%arg0) inits (%arg1) dimension=0  {
  ^bb0(%input: tensor<f32>, %carry: tensor<f32>):
    stablehlo.return %input, %carry : tensor<f32>, tensor<f32>
  } : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = chlo.scan(%x) inits(%zero) dimension=0 {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1, %1 : tensor<f32>, tensor<f32>
  } : (tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<f32>)
  check.expect_eq_const %0#0, dense<[1.0, 3.0, 6.0]> : tensor<3xf32>
  check.expect_eq_const %0#1, dense<6.0> : tensor<f32>
  return
}

// -----

func.func @no_dimension(%a: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @below {{chlo.scan needs 'dimension'}}
  %0:2 = "chlo.scan"(%a, %s) <{operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %x, %y : tensor<f32>, tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
  return
}
