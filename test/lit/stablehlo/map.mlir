// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A computation of scalars on every element.
// CHECK-LABEL: func.func @map(
// CHECK: %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
// CHECK-NEXT: ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT: %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT: stablehlo.return %1 : tensor<f32>
// CHECK-NEXT: }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "map"
// GENERIC: %{{[0-9]+}} = "stablehlo.map"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimensions = array<i64: 0, 1>}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<f32>) -> ()
// GENERIC-NEXT: }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @map(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %y = stablehlo.constant dense<[4.0, 5.0, -0.0]> : tensor<3xf32>
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %b : tensor<f32>
    %2 = stablehlo.negate %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq_const %0, dense<[-4.0, -10.0, 0.0]> : tensor<3xf32>
  return
}

// -----

func.func @map_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.map: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [map_c1]}}
  %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @map_c2() {
  // expected-error @below {{stablehlo.map: there is no input [map_c2]}}
  %0 = "stablehlo.map"() <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
    %1 = stablehlo.add %arg0, %arg1 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : () -> tensor<2x3xf32>
  return
}

// -----

func.func @map_c3(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.map: dimensions 1, 0 are not those of tensor<2x3xf32> [map_c3]}}
  %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 1, 0>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @map_c4(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.map: the computation takes 1 values, not 2 [map_c4]}}
  %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%arg2: tensor<f32>):
    %1 = stablehlo.add %arg2, %arg2 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
