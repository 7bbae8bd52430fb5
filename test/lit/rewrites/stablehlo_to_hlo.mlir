// RUN: hlo-opt --passes=stablehlo-to-hlo,cse --emit=hlo --split-input-file %s | filecheck %s
// RUN: hlo-opt --passes='stablehlo-to-hlo{return-tuple=true simplify=false}' --emit=hlo %s | filecheck --check-prefix=TUPLE %s

// What follows the conversion finds HLO.
// CHECK-LABEL: HloModule main
// CHECK: %[[NEGATE:negate.[0-9]+]] = f32[2]{0} negate(%Arg_0.1)
// CHECK-NOT: negate(
// CHECK: ROOT %multiply.1 = f32[2]{0} multiply(%[[NEGATE]], %[[NEGATE]])
// TUPLE: ROOT %tuple.1 = (f32[2]{0}) tuple(%multiply.1)
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
  %1 = stablehlo.negate %x : tensor<2xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
