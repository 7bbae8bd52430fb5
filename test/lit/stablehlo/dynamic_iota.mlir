// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// An iota whose shape is computed; here it is known.
// CHECK-LABEL: func.func @dynamic_iota(
// CHECK: %0 = stablehlo.dynamic_iota %arg0, dim = 1 : (tensor<2xi64>) -> tensor<?x?xf32>
// GENERIC-LABEL: sym_name = "dynamic_iota"
// GENERIC: %{{[0-9]+}} = "stablehlo.dynamic_iota"(%{{arg[0-9]+}}) <{iota_dimension = 1 : i64}> : (tensor<2xi64>) -> tensor<?x?xf32>
func.func @dynamic_iota(%arg0: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_iota %arg0, dim = 1 : (tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

func.func @run() {
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %0 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<2xi64>) -> tensor<2x3xi32>
  check.expect_eq_const %0, dense<[[0, 1, 2], [0, 1, 2]]> : tensor<2x3xi32>
  return
}

// -----

func.func @dynamic_iota_c1(%arg0: tensor<2xi64>) {
  // expected-error @below {{stablehlo.dynamic_iota: iota_dimension has 2, which is none of the 2 dimensions [dynamic_iota_c1]}}
  %0 = stablehlo.dynamic_iota %arg0, dim = 2 : (tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @dynamic_iota_c2(%arg0: tensor<3xi64>) {
  // expected-error @below {{stablehlo.dynamic_iota: result #0 is tensor<?x?xf32>, but tensor<?x?x?xf32> follows from the operands [dynamic_iota_c2]}}
  %0 = stablehlo.dynamic_iota %arg0, dim = 1 : (tensor<3xi64>) -> tensor<?x?xf32>
  return
}
