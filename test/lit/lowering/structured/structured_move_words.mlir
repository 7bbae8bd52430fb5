// RUN: hlo-opt --passes=structured-move-words %s | filecheck %s

// What is moved, and what stands around it.
// CHECK-LABEL: structured.kernel @pad(%x: tensor<4x8xui16>) -> tensor<9x4xui16>
// CHECK-NEXT: hlo.constant {{.*}}16256
// CHECK: structured.map ins(%x : tensor<4x8xui16>)
// CHECK: ^bb0(%{{.*}}: tensor<ui16>):
structured.kernel @pad(%x: tensor<4x8xbf16>) -> tensor<9x4xbf16> {
  %z = hlo.constant "1" : tensor<bf16>
  %t = structured.map ins(%x : tensor<4x8xbf16>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<8x4xbf16> {
  ^bb0(%a: tensor<bf16>):
    structured.yield %a : tensor<bf16>
  }
  %r = structured.assemble pieces(%t : tensor<8x4xbf16>) fill(%z : tensor<bf16>) offsets [array<i64: 1, 0>] strides [array<i64: 1, 1>] -> tensor<9x4xbf16>
  structured.return %r : tensor<9x4xbf16>
}

// Numbers that are computed with stay numbers.
// CHECK-LABEL: structured.kernel @sum(%x: tensor<4xbf16>) -> tensor<4xbf16>
structured.kernel @sum(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %r = structured.map ins(%x : tensor<4xbf16>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xbf16> {
  ^bb0(%a: tensor<bf16>):
    %s = hlo.add %a, %a : tensor<bf16>
    structured.yield %s : tensor<bf16>
  }
  structured.return %r : tensor<4xbf16>
}
