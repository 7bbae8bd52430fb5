// RUN: %python -c "import sys; from mlirhlo.formats.stablehlo import parse_module, print_module; print(print_module(parse_module(open(sys.argv[1]).read())))" %s | filecheck %s
// RUN: %python -c "import sys; from mlirhlo.formats.stablehlo import parse_module, print_module; print(print_module(parse_module(open(sys.argv[1]).read()), generic=True))" %s | filecheck %s --check-prefix=GENERIC

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @named
func.func @named(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xi32>) {
  // CHECK: %0:2 = sdy.named_computation<"foo">(%arg0) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{?}]>, <@mesh, [{}]>] (%arg1: tensor<8xf32>) {
  // GENERIC: "sdy.named_computation"{{.*}} <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{?}]>]>, name = "foo", out_shardings = #sdy.sharding_per_value<[<@mesh, [{?}]>, <@mesh, [{}]>]>}>
  %0:2 = sdy.named_computation<"foo">(%arg0) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{?}]>, <@mesh, [{}]>] (%arg1: tensor<8xf32>) {
    %1 = sdy.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    // CHECK: sdy.return %arg1, %{{.*}} : tensor<8xf32>, tensor<4xi32>
    sdy.return %arg1, %1 : tensor<8xf32>, tensor<4xi32>
  } : (tensor<8xf32>) -> (tensor<8xf32>, tensor<4xi32>)
  // CHECK: sdy.named_computation<"bar \22quoted\22">() () {
  // CHECK-NEXT: sdy.return{{$}}
  // CHECK-NEXT: } {a = 1 : i32} : () -> ()
  sdy.named_computation<"bar \22quoted\22">() () {
    sdy.return
  } {a = 1 : i32} : () -> ()
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @manual
func.func @manual(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
  // GENERIC: "sdy.manual_computation"{{.*}} <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>, manual_axes = #sdy<manual_axes{"a"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>}>
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    // CHECK: stablehlo.add %arg1, %arg1 : tensor<4x8xf32>
    %1 = stablehlo.add %arg1, %arg1 : tensor<4x8xf32>
    // CHECK: sdy.manual_computation(%{{.*}}) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%arg2: tensor<4x4xf32>) {
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%arg2: tensor<4x4xf32>) {
      sdy.return %arg2 : tensor<4x4xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  return %0 : tensor<8x8xf32>
}
