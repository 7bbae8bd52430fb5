// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One of two branches.
// CHECK-LABEL: func.func @if(
// CHECK: %0 = "stablehlo.if"(%arg0) ({
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: stablehlo.return %cst : tensor<2xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: stablehlo.return %cst : tensor<2xf32>
// CHECK-NEXT: }) : (tensor<i1>) -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "if"
// GENERIC: %{{[0-9]+}} = "stablehlo.if"(%{{arg[0-9]+}}) ({
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<2xf32>) -> ()
// GENERIC-NEXT: }, {
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<2xf32>) -> ()
// GENERIC-NEXT: }) : (tensor<i1>) -> tensor<2xf32>
func.func @if(%arg0: tensor<i1>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<5> : tensor<i32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0 = "stablehlo.if"(%true) ({
    stablehlo.return %x : tensor<i32>
  }, {
    %1 = stablehlo.negate %x : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  check.expect_eq_const %0, dense<5> : tensor<i32>
  %2 = "stablehlo.if"(%false) ({
    stablehlo.return %x : tensor<i32>
  }, {
    %3 = stablehlo.negate %x : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }) : (tensor<i1>) -> tensor<i32>
  check.expect_eq_const %2, dense<-5> : tensor<i32>
  return
}

// -----

func.func @if_c1(%arg0: tensor<i1>) {
  // expected-error @below {{stablehlo.if: branch 0 takes (tensor<f32>) [if_c1]}}
  %0 = "stablehlo.if"(%arg0) ({
  ^bb0(%arg1: tensor<f32>):
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_c2(%arg0: tensor<i1>) {
  // expected-error @below {{stablehlo.if: branch 0 returns (tensor<2xf32>, tensor<2xf32>), branch 1 (tensor<2xf32>) [if_c2]}}
  %0 = "stablehlo.if"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst, %cst : tensor<2xf32>, tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_c3(%arg0: tensor<i1>) {
  // expected-error @below {{stablehlo.if: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [if_c3]}}
  %0 = "stablehlo.if"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  return
}
