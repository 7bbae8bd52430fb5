// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// The results of a region; without types where there are none.
// CHECK-LABEL: func.func @return(
// CHECK: "stablehlo.if"(%arg0) ({
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }) : (tensor<i1>) -> ()
// CHECK-NEXT: %0 = "stablehlo.if"(%arg0) ({
// CHECK-NEXT: stablehlo.return %arg1 : tensor<4xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: stablehlo.return %arg1 : tensor<4xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<4xf32>
// GENERIC-LABEL: sym_name = "return"
// GENERIC: "stablehlo.if"(%{{arg[0-9]+}}) ({
// GENERIC-NEXT: "stablehlo.return"() : () -> ()
// GENERIC-NEXT: }, {
// GENERIC-NEXT: "stablehlo.return"() : () -> ()
// GENERIC-NEXT: }) : (tensor<i1>) -> ()
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.if"(%{{arg[0-9]+}}) ({
// GENERIC-NEXT: "stablehlo.return"(%{{arg[0-9]+}}) : (tensor<4xf32>) -> ()
// GENERIC-NEXT: }, {
// GENERIC-NEXT: "stablehlo.return"(%{{arg[0-9]+}}) : (tensor<4xf32>) -> ()
// GENERIC-NEXT: }) : (tensor<i1>) -> tensor<4xf32>
func.func @return(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  "stablehlo.if"(%arg0) ({
    stablehlo.return 
  }, {
    stablehlo.return 
  }) : (tensor<i1>) -> ()
  %0 = "stablehlo.if"(%arg0) ({
    stablehlo.return %arg1 : tensor<4xf32>
  }, {
    stablehlo.return %arg1 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @run() {
  %p = stablehlo.constant dense<true> : tensor<i1>
  %x = stablehlo.constant dense<3> : tensor<i32>
  %y = stablehlo.constant dense<4> : tensor<i32>
  %0:2 = "stablehlo.if"(%p) ({
    stablehlo.return %x, %y : tensor<i32>, tensor<i32>
  }, {
    stablehlo.return %y, %x : tensor<i32>, tensor<i32>
  }) : (tensor<i1>) -> (tensor<i32>, tensor<i32>)
  check.expect_eq_const %0#0, dense<3> : tensor<i32>
  check.expect_eq_const %0#1, dense<4> : tensor<i32>
  return
}

// -----

func.func @not_last(%p: tensor<i1>, %a: tensor<4xf32>) {
  %0 = "stablehlo.if"(%p) ({
    // expected-error @below {{stablehlo.return: must be the last op of its block [return_form]}}
    stablehlo.return %a : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return
}
