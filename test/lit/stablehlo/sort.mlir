// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// Along one dimension, by a comparison of pairs of elements of all operands; stable where asked for.
// CHECK-LABEL: func.func @sort(
// CHECK: %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({
// CHECK-NEXT: ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT: %1 = stablehlo.compare GT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %1 : tensor<i1>
// CHECK-NEXT: }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// GENERIC-LABEL: sym_name = "sort"
// GENERIC: %{{[0-9]+}} = "stablehlo.sort"(%{{arg[0-9]+}}) <{dimension = 1 : i64}> ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<f32>, %{{arg[0-9]+}}: tensor<f32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.compare"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<i1>) -> ()
// GENERIC-NEXT: }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @sort(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.compare GT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[3.0, 0x7FC00000, -1.0, 3.0, 0xFF800000]> : tensor<5xf32>
  %i = stablehlo.constant dense<[0, 1, 2, 3, 4]> : tensor<5xi32>
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<5xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xi32>)
  check.expect_eq_const %0#0, dense<[0xFF800000, -1.0, 3.0, 3.0, 0x7FC00000]> : tensor<5xf32>
  check.expect_eq_const %0#1, dense<[4, 2, 0, 3, 1]> : tensor<5xi32>
  %m = stablehlo.constant dense<[[2, 1], [1, 3]]> : tensor<2x2xi32>
  %2 = "stablehlo.sort"(%m) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %3 = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<2x2xi32>) -> tensor<2x2xi32>
  check.expect_eq_const %2, dense<[[2, 3], [1, 1]]> : tensor<2x2xi32>
  return
}

// -----

func.func @sort_c1() {
  // expected-error @below {{stablehlo.sort: there is no input [sort_c1]}}
  "stablehlo.sort"() <{dimension = 1 : i64}> ({
  ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
    %0 = stablehlo.compare GT, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : () -> ()
  return
}

// -----

func.func @sort_c2(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.sort: result #0 is tensor<3x2xf32>, but tensor<2x3xf32> follows from the operands [sort_c2]}}
  %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.compare GT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @sort_c3(%arg0: tensor<2x3xf32>, %arg1: tensor<2x4xi1>) {
  // expected-error @below {{stablehlo.sort: shapes differ: tensor<2x3xf32> and tensor<2x4xi1> [sort_c3]}}
  %0:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<i1>, %arg5: tensor<i1>):
    stablehlo.return %arg4 : tensor<i1>
  }) : (tensor<2x3xf32>, tensor<2x4xi1>) -> (tensor<2x3xf32>, tensor<2x3xi1>)
  return
}

// -----

func.func @sort_c4(%arg0: tensor<2x3xf32>) {
  // expected-error @below {{stablehlo.sort: dimension 2 is none of the 2 dimensions [sort_c4]}}
  %0 = "stablehlo.sort"(%arg0) <{dimension = 2 : i64}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.compare GT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
