// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// As long as its condition holds, perhaps not once; values from outside may be used inside.
// CHECK-LABEL: func.func @while(
// CHECK: %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
// CHECK-NEXT: cond {
// CHECK-NEXT: %1 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %1 : tensor<i1>
// CHECK-NEXT: } do {
// CHECK-NEXT: stablehlo.return %iterArg : tensor<i32>
// CHECK-NEXT: }
// GENERIC-LABEL: sym_name = "while"
// GENERIC: %{{[0-9]+}} = "stablehlo.while"(%{{arg[0-9]+}}) ({
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<i32>):
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.compare"(%{{arg[0-9]+}}, %{{arg[0-9]+}}) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
// GENERIC-NEXT: "stablehlo.return"(%{{[0-9]+}}) : (tensor<i1>) -> ()
// GENERIC-NEXT: }, {
// GENERIC-NEXT: ^bb0(%{{arg[0-9]+}}: tensor<i32>):
// GENERIC-NEXT: "stablehlo.return"(%{{arg[0-9]+}}) : (tensor<i32>) -> ()
// GENERIC-NEXT: }) : (tensor<i32>) -> tensor<i32>
func.func @while(%arg0: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    stablehlo.return %iterArg : tensor<i32>
  }
  return %0 : tensor<i32>
}

func.func @run() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.add %sum, %i : tensor<i32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<i32>
  }
  check.expect_eq_const %0#0, dense<10> : tensor<i32>
  check.expect_eq_const %0#1, dense<45> : tensor<i32>
  %3 = stablehlo.while(%i = %ten) : tensor<i32>
  cond {
    %4 = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %4 = stablehlo.negate %i : tensor<i32>
    stablehlo.return %4 : tensor<i32>
  }
  check.expect_eq_const %3, dense<10> : tensor<i32>
  return
}

// -----

func.func @while_c1(%arg0: tensor<i32>) {
  // expected-error @below {{stablehlo.while: cond returns (tensor<i32>), not tensor<i1> [while_c1]}}
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %iterArg : tensor<i32>
  } do {
    stablehlo.return %iterArg : tensor<i32>
  }
  return
}

// -----

func.func @while_c2(%arg0: tensor<i32>) {
  // expected-error @below {{stablehlo.while: body returns (tensor<i32>, tensor<i32>), not (tensor<i32>) [while_c2]}}
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    stablehlo.return %iterArg, %iterArg : tensor<i32>, tensor<i32>
  }
  return
}

// -----

func.func @while_c3(%a0: tensor<i32>) {
  // expected-error @below {{stablehlo.while: result #0 is tensor<i64>, but tensor<i32> follows from the operands [while_c3]}}
  %r:1 = "stablehlo.while"(%a0) ({^bb0(%x: tensor<i32>): %z = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1> "stablehlo.return"(%z) : (tensor<i1>) -> ()}, {^bb0(%x: tensor<i32>): "stablehlo.return"(%x) : (tensor<i32>) -> ()}) : (tensor<i32>) -> (tensor<i64>)
  return
}
