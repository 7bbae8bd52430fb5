// RUN: hlo-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | filecheck %s --check-prefix=GENERIC
// RUN: hlo-opt %s --split-input-file --verify-diagnostics --emit=mlir-generic | run_hlo_module --platform=Interpreter --reference_platform= -

// A pad whose amounts are computed; here they are known.
// CHECK-LABEL: func.func @dynamic_pad(
// CHECK: %c = stablehlo.constant dense<1> : tensor<1xi64>
// CHECK-NEXT: %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
// CHECK-NEXT: %c_1 = stablehlo.constant dense<1> : tensor<1xi64>
// CHECK-NEXT: %0 = stablehlo.dynamic_pad %arg0, %arg1, %c, %c_0, %c_1 : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
// GENERIC-LABEL: sym_name = "dynamic_pad"
// GENERIC: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1> : tensor<1xi64>}> : () -> tensor<1xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<0> : tensor<1xi64>}> : () -> tensor<1xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.constant"() <{value = dense<1> : tensor<1xi64>}> : () -> tensor<1xi64>
// GENERIC-NEXT: %{{[0-9]+}} = "stablehlo.dynamic_pad"(%{{arg[0-9]+}}, %{{arg[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}) : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
func.func @dynamic_pad(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1> : tensor<1xi64>
  %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
  %c_1 = stablehlo.constant dense<1> : tensor<1xi64>
  %0 = stablehlo.dynamic_pad %arg0, %arg1, %c, %c_0, %c_1 : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @run() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %p = stablehlo.constant dense<0> : tensor<i32>
  %low = stablehlo.constant dense<1> : tensor<1xi64>
  %high = stablehlo.constant dense<-1> : tensor<1xi64>
  %between = stablehlo.constant dense<1> : tensor<1xi64>
  %0 = stablehlo.dynamic_pad %x, %p, %low, %high, %between : (tensor<3xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xi32>
  check.expect_eq_const %0, dense<[0, 1, 0, 2, 0]> : tensor<5xi32>
  return
}

// -----

func.func @dynamic_pad_c1(%arg0: tensor<4xf32>, %arg1: tensor<f64>) {
  %c = stablehlo.constant dense<1> : tensor<1xi64>
  %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
  %c_1 = stablehlo.constant dense<1> : tensor<1xi64>
  // expected-error @below {{stablehlo.dynamic_pad: element types differ: f32 and f64 [dynamic_pad_c1]}}
  %0 = stablehlo.dynamic_pad %arg0, %arg1, %c, %c_0, %c_1 : (tensor<4xf32>, tensor<f64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  return
}

// -----

func.func @dynamic_pad_c2(%arg0: tensor<4xf32>, %arg1: tensor<f32>) {
  %c = stablehlo.constant dense<1> : tensor<2xi64>
  %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
  %c_1 = stablehlo.constant dense<1> : tensor<1xi64>
  // expected-error @below {{stablehlo.dynamic_pad: tensor<2xi64> has not 1 entries of i64 [dynamic_pad_c2]}}
  %0 = stablehlo.dynamic_pad %arg0, %arg1, %c, %c_0, %c_1 : (tensor<4xf32>, tensor<f32>, tensor<2xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  return
}

// -----

func.func @dynamic_pad_c3(%arg0: tensor<4xf32>, %arg1: tensor<f32>) {
  %c = stablehlo.constant dense<1> : tensor<1xi64>
  %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
  %c_1 = stablehlo.constant dense<-1> : tensor<1xi64>
  // expected-error @below {{stablehlo.dynamic_pad: interior padding is negative: -1 [dynamic_pad_c3]}}
  %0 = stablehlo.dynamic_pad %arg0, %arg1, %c, %c_0, %c_1 : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  return
}

// -----

func.func @dynamic_pad_c4(%arg0: tensor<4xf32>, %arg1: tensor<f32>) {
  %c = stablehlo.constant dense<1> : tensor<1xi64>
  %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
  %c_1 = stablehlo.constant dense<1> : tensor<1xi64>
  // expected-error @below {{stablehlo.dynamic_pad: result #0 is tensor<7xf32>, but tensor<8xf32> follows from the operands [dynamic_pad_c4]}}
  %0 = stablehlo.dynamic_pad %arg0, %arg1, %c, %c_0, %c_1 : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<7xf32>
  return
}
