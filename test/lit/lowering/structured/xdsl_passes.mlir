// RUN: hlo-opt --platform=cpu --stage=structured --passes=cse,dce %s -o %t
// RUN: filecheck %s --input-file %t
// RUN: hlo-opt --platform=cpu --stage=structured --passes=dce %t | diff - %t
// RUN: hlo-opt --platform=gpu --stage=structured --passes=cse,dce %s | diff - %t
// RUN: hlo-opt --platform=gpu --stage=scheduled --passes=dce %t | filecheck %s --check-prefix=SCHEDULED
// RUN: hlo-opt --platform=cpu --stage=loops %t | filecheck %s --check-prefix=LOOPS

// xDSL's passes run on kernels: what is computed twice in a body is computed once, what nothing reads goes.

// CHECK-LABEL: structured.kernel @twice
// CHECK-NEXT: structured.map
// CHECK-NEXT: ^bb0([[A:%.*]]: tensor<f32>):
// CHECK-NEXT: [[S:%.*]] = hlo.exponential [[A]]
// CHECK-NEXT: [[U:%.*]] = hlo.add [[S]], [[S]]
// CHECK-NEXT: structured.yield [[U]]
// CHECK-NEXT: }
// CHECK-NEXT: structured.return
// SCHEDULED: structured.schedule = {launch = 0 : i64, kind = "elements"
// LOOPS: func.func @twice(%0: memref<32xf32>
structured.kernel @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = structured.map ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    %s = hlo.exponential %a : tensor<f32>
    %t = hlo.exponential %a : tensor<f32>
    %z = hlo.tanh %a : tensor<f32>
    %u = hlo.add %s, %t : tensor<f32>
    structured.yield %u : tensor<f32>
  }
  %dead = structured.map ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %e : tensor<4x8xf32>
}
