// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// All elements along some dimensions combined with a start value; several operands go together.
// CHECK-LABEL: func.func @reduce(
// CHECK: %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "reduce"
// GENERIC: %{{[0-9]+}} = "stablehlo.reduce"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimensions = array<i64: 1>}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.add"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<f32>) -> tensor<f32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<f32>) -> ()
// GENERIC-NEXT: }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
func.func @reduce(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @reduce_2(
// CHECK: %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
// CHECK-NEXT: reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>)  {
// CHECK-NEXT: stablehlo.return %arg4, %arg7 : tensor<f32>, tensor<i32>
// CHECK-NEXT: }
// GENERIC-LABEL: sym_name = "reduce_2"
// GENERIC: %{{[0-9]+}}:2 = "stablehlo.reduce"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) <{dimensions = array<i64: 1>}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<i32>, %{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<i32>):
// GENERIC-NEXT: "stablehlo.return"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<f32>, tensor<i32>) -> ()
// GENERIC-NEXT: }) : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
func.func @reduce_2(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>)  {
    stablehlo.return %arg4, %arg7 : tensor<f32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
}

func.func @run() {
  %x = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %0, dense<[6, 15]> : tensor<2xi32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %1, dense<6> : tensor<i32>
  %v = stablehlo.constant dense<[3.0, -1.0, 7.0]> : tensor<3xf32>
  %i = stablehlo.iota dim = 0 : tensor<3xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2:2 = stablehlo.reduce(%v init: %low), (%i init: %zero) across dimensions = [0] : (tensor<3xf32>, tensor<3xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>) {
    %3 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<f32>
    %5 = stablehlo.select %3, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %4, %5 : tensor<f32>, tensor<i32>
  }
  check.expect_eq_const %2#0, dense<7.0> : tensor<f32>
  check.expect_eq_const %2#1, dense<2> : tensor<i32>
  %empty = stablehlo.constant dense<> : tensor<0x2xi32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %6 = stablehlo.reduce(%empty init: %six) applies stablehlo.multiply across dimensions = [0] : (tensor<0x2xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %6, dense<6> : tensor<2xi32>
  return
}

// -----

func.func @reduce_c1(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) {
  // expected-error @below {{stablehlo.reduce: shapes differ: tensor<2x3xf32> and tensor<2x4xi32> [reduce_c1]}}
  %0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg3) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%arg4: tensor<f32>, %arg6: tensor<f32>) (%arg5: tensor<i32>, %arg7: tensor<i32>)  {
    stablehlo.return %arg4, %arg7 : tensor<f32>, tensor<i32>
  }
  return
}

// -----

func.func @reduce_c2(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>) {
  // expected-error @below {{stablehlo.reduce: element types differ: f32 and i32 [reduce_c2]}}
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_c3(%a0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.reduce: 1 operands are not inputs and as many initial values [reduce_c3]}}
  %r:1 = "stablehlo.reduce"(%a0) <{dimensions = array<i64: 1>}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<2x3xf32>) -> (tensor<2xf32>)
  return
}

// -----

func.func @reduce_c4(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) {
  // expected-error @below {{stablehlo.reduce: dimensions has 2, which is none of the 2 dimensions [reduce_c4]}}
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [2] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return
}
