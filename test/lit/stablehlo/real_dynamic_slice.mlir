// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A slice whose bounds are computed; here they are known.
// CHECK-LABEL: func.func @real_dynamic_slice(
// CHECK: %0 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
// GENERIC-LABEL: sym_name = "real_dynamic_slice"
// GENERIC: %{{[0-9]+}} = "stablehlo.real_dynamic_slice"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{arg[0-9]+}}) : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
func.func @real_dynamic_slice(%arg0: tensor<4xf32>, %arg1: tensor<1xi64>, %arg2: tensor<1xi64>, %arg3: tensor<1xi64>) -> tensor<?xf32> {
  %0 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi32>
  %from = stablehlo.constant dense<1> : tensor<1xi64>
  %to = stablehlo.constant dense<6> : tensor<1xi64>
  %by = stablehlo.constant dense<2> : tensor<1xi64>
  %0 = stablehlo.real_dynamic_slice %x, %from, %to, %by : (tensor<6xi32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi32>
  check.expect_eq_const %0, dense<[1, 3, 5]> : tensor<3xi32>
  return
}

// -----

func.func @real_dynamic_slice_c1(%arg0: tensor<4xf32>, %arg1: tensor<2xi64>, %arg2: tensor<1xi64>, %arg3: tensor<1xi64>) {
  // expected-error @below {{stablehlo.real_dynamic_slice: tensor<2xi64> has not 1 entries of i64 [real_dynamic_slice_c1]}}
  %0 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4xf32>, tensor<2xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return
}

// -----

func.func @real_dynamic_slice_c2(%arg0: tensor<4xf32>, %arg1: tensor<1xi64>, %arg2: tensor<1xi64>, %arg3: tensor<1xi64>) {
  // expected-error @below {{stablehlo.real_dynamic_slice: result #0 is tensor<?x?xf32>, but tensor<?xf32> follows from the operands [real_dynamic_slice_c2]}}
  %0 = stablehlo.real_dynamic_slice %arg0, %arg1, %arg2, %arg3 : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32>
  return
}
