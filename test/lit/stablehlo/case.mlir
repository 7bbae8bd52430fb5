// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// One of several branches by an index; one that is out of range takes the last.
// CHECK-LABEL: func.func @case(
// CHECK: %0 = "stablehlo.case"(%arg0) ({
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: stablehlo.return %cst : tensor<2xf32>
// CHECK-NEXT: }, {
// CHECK-NEXT: %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT: stablehlo.return %cst : tensor<2xf32>
// CHECK-NEXT: }) : (tensor<i32>) -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "case"
// GENERIC: %{{[0-9]+}} = "stablehlo.case"(%{{arg[0-9]+}}) ({
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<2xf32>) -> ()
// GENERIC-NEXT: }, {
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<2xf32>) -> ()
// GENERIC-NEXT: }) : (tensor<i32>) -> tensor<2xf32>
func.func @case(%arg0: tensor<i32>) -> tensor<2xf32> {
  %0 = "stablehlo.case"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<5> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.case"(%zero) ({
    %1 = stablehlo.negate %x : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }, {
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  check.expect_eq_const %0, dense<-5> : tensor<i32>
  %before = stablehlo.constant dense<-1> : tensor<i32>
  %2 = "stablehlo.case"(%before) ({
    %3 = stablehlo.negate %x : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }, {
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  check.expect_eq_const %2, dense<5> : tensor<i32>
  %far = stablehlo.constant dense<7> : tensor<i32>
  %4:2 = "stablehlo.case"(%far) ({
    stablehlo.return %x, %x : tensor<i32>, tensor<i32>
  }, {
    stablehlo.return %zero, %x : tensor<i32>, tensor<i32>
  }) : (tensor<i32>) -> (tensor<i32>, tensor<i32>)
  check.expect_eq_const %4#0, dense<0> : tensor<i32>
  return
}

// -----

func.func @case_c1(%arg0: tensor<i32>) {
  // expected-error @below {{stablehlo.case: there is no branch [case_c1]}}
  %0 = "stablehlo.case"(%arg0) : (tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @case_c2(%arg0: tensor<i32>) {
  // expected-error @below {{stablehlo.case: branch 0 takes (tensor<f32>) [case_c2]}}
  %0 = "stablehlo.case"(%arg0) ({
  ^bb0(%arg1: tensor<f32>):
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @case_c3(%arg0: tensor<i32>) {
  // expected-error @below {{stablehlo.case: branch 0 returns (tensor<2xf32>, tensor<2xf32>), branch 1 (tensor<2xf32>) [case_c3]}}
  %0 = "stablehlo.case"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst, %cst : tensor<2xf32>, tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return
}

// -----

func.func @case_c4(%arg0: tensor<i32>) {
  // expected-error @below {{stablehlo.case: result #0 is tensor<3xf32>, but tensor<2xf32> follows from the operands [case_c4]}}
  %0 = "stablehlo.case"(%arg0) ({
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }, {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    stablehlo.return %cst : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  return
}
