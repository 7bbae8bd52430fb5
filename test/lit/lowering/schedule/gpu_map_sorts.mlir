// RUN: hlo-opt --passes=gpu-map-to-grid %s | filecheck %s

// Two digits and a count of them: fewer launches than merges of runs.
// CHECK-LABEL: @by_digits
// CHECK: structured.sort
// CHECK-SAME: kind = "radix_sort"}
structured.kernel @by_digits(%x: tensor<20000xi16>) -> tensor<20000xi16> {
  %r = structured.sort ins(%x : tensor<20000xi16>) dimension 0 -> tensor<20000xi16> {
  ^bb0(%a: tensor<i16>, %b: tensor<i16>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<20000xi16>
}

// Shorter lines, and what orders by no key, are merged.
// CHECK-LABEL: @short
// CHECK: kind = "sort"}
// CHECK-LABEL: @any
// CHECK: kind = "sort"}
structured.kernel @short(%x: tensor<16384xi16>) -> tensor<16384xi16> {
  %r = structured.sort ins(%x : tensor<16384xi16>) dimension 0 -> tensor<16384xi16> {
  ^bb0(%a: tensor<i16>, %b: tensor<i16>):
    %c = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<16384xi16>
}
structured.kernel @any(%x: tensor<20000xi16>) -> tensor<20000xi16> {
  %r = structured.sort ins(%x : tensor<20000xi16>) dimension 0 -> tensor<20000xi16> {
  ^bb0(%a: tensor<i16>, %b: tensor<i16>):
    %c = hlo.compare %a, %b {direction = "LE"} : tensor<i1>
    structured.yield %c : tensor<i1>
  }
  structured.return %r : tensor<20000xi16>
}
