// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// An op made of others, which are in a function: what does not know the op runs the function.
// CHECK-LABEL: func.func @composite(
// CHECK: %0 = stablehlo.composite "my.op" %arg0 {decomposition = @callee} : (tensor<4xf32>) -> tensor<4xf32>
// GENERIC-LABEL: sym_name = "composite"
// GENERIC: %{{[0-9]+}} = "stablehlo.composite"(%{{arg[0-9]+}}) <{decomposition = @callee, name = "my.op"}> : (tensor<4xf32>) -> tensor<4xf32>
func.func @composite(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.op" %arg0 {decomposition = @callee} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @callee(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}

func.func private @square(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %0 = stablehlo.composite "my.square" %x {composite_attributes = {rounds = 1 : i32}, decomposition = @square, version = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  check.expect_eq_const %0, dense<[1.0, 4.0]> : tensor<2xf32>
  return
}

// -----

func.func @callee(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
func.func @composite_c1(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.composite: 'op' has no namespace, as my_namespace.my_op has [composite_c1]}}
  %0 = stablehlo.composite "op" %arg0 {decomposition = @callee} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @callee(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
func.func @composite_c2(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.composite: there is no function @nothing [composite_c2]}}
  %0 = stablehlo.composite "my.op" %arg0 {decomposition = @nothing} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @callee(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
func.func @composite_c3(%arg0: tensor<5xf32>) {
  // expected-error @below {{stablehlo.composite: operands are (tensor<5xf32>), the decomposition takes (tensor<4xf32>) [composite_c3]}}
  %0 = stablehlo.composite "my.op" %arg0 {decomposition = @callee} : (tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @callee(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  return %arg0 : tensor<4xf32>
}
func.func @composite_c4(%arg0: tensor<4xf32>) {
  // expected-error @below {{stablehlo.composite: results are (tensor<5xf32>), the decomposition returns (tensor<4xf32>) [composite_c4]}}
  %0 = stablehlo.composite "my.op" %arg0 {decomposition = @callee} : (tensor<4xf32>) -> tensor<5xf32>
  return
}
