// RUN: %python -c "import sys; from mlirhlo.formats.stablehlo import parse_module, print_module; print(print_module(parse_module(open(sys.argv[1]).read())))" %s | filecheck %s
// RUN: %python -c "import sys; from mlirhlo.formats.stablehlo import parse_module, print_module; print(print_module(parse_module(open(sys.argv[1]).read()), generic=True))" %s | filecheck %s --check-prefix=GENERIC

// CHECK: sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4, "d"=2, "e"=2, "f"=2]>
// GENERIC: "sdy.mesh"() <{mesh = #sdy.mesh<["a"=2, "b"=2, "c"=4, "d"=2, "e"=2, "f"=2]>, sym_name = "mesh"}> : () -> ()
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4, "d"=2, "e"=2, "f"=2]>
// CHECK: sdy.mesh @maximal = <[], device_ids=[3]> {foo = 1 : i32}
sdy.mesh @maximal = <[], device_ids=[3]> {foo = 1 : i32}
// CHECK: sdy.mesh @reversed = <["x"=2], device_ids=[1, 0]>
sdy.mesh @reversed = <["x"=2], device_ids=[1, 0]>
// The usual order is left out.
// CHECK: sdy.mesh @usual = <["x"=2]>
sdy.mesh @usual = <["x"=2], device_ids=[0, 1]>
// CHECK: sdy.mesh @"odd name" = <[]>
sdy.mesh @"odd name" = <[]>

// CHECK-LABEL: func.func @constraints
// CHECK-SAME: {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}, {?}]>}
func.func @constraints(%arg0: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}, {?}]>}) -> tensor<8x8x8xf32> {
  // CHECK: sdy.sharding_constraint %arg0 <@mesh, [{"c":(1)2, ?}p1, {?}, {?}], replicated={"e"}> : tensor<8x8x8xf32>
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"c":(1)2, ?}p1, {?}, {?}], replicated={"e"}> : tensor<8x8x8xf32>
  // CHECK: sdy.reshard %0 <@mesh, [{"a"}, {}, {}]> : tensor<8x8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"a"}, {}, {}]> : tensor<8x8x8xf32>
  // CHECK: sdy.reshard %1 <mesh<["x"=2]>, [{"x"}, {}, {}]> {note = "inlined"} : tensor<8x8x8xf32>
  %2 = sdy.reshard %1 <mesh<["x"=2]>, [{"x"}, {}, {}]> {note = "inlined"} : tensor<8x8x8xf32>
  // CHECK: sdy.sharding_group %2 group_id=21 : tensor<8x8x8xf32>
  // GENERIC: "sdy.sharding_group"{{.*}} <{group_id = 21 : i64}>
  sdy.sharding_group %2 group_id=21 : tensor<8x8x8xf32>
  // CHECK: sdy.propagation_barrier %2 allowed_direction=BACKWARD : tensor<8x8x8xf32>
  // GENERIC: "sdy.propagation_barrier"{{.*}} <{allowed_direction = 2 : i32}>
  %3 = sdy.propagation_barrier %2 allowed_direction=BACKWARD : tensor<8x8x8xf32>
  // CHECK: sdy.constant dense<1.000000e+00> : tensor<8xf32>
  %4 = sdy.constant dense<1.0> : tensor<8xf32>
  %5 = stablehlo.add %3, %3 : tensor<8x8x8xf32>
  // CHECK: sdy.data_flow_edge %5 sharding=<@mesh, [{?}, {?}, {?}]> : tensor<8x8x8xf32>
  %6 = sdy.data_flow_edge %5 sharding=<@mesh, [{?}, {?}, {?}]> : tensor<8x8x8xf32>
  %7 = stablehlo.add %3, %3 : tensor<8x8x8xf32>
  // CHECK: sdy.data_flow_edge %7 : tensor<8x8x8xf32>
  %8 = sdy.data_flow_edge %7 : tensor<8x8x8xf32>
  // CHECK: sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [i, j, k])->([i, j, k]) {i=8, j=8, k=8}>
  %9 = stablehlo.add %8, %8 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i,j,k], [i,j,k])->([i,j,k]) {i=8, j=8, k=8}>} : tensor<8x8x8xf32>
  return %9 : tensor<8x8x8xf32>
}

// CHECK-LABEL: func.func @edges
func.func @edges(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: sdy.func_data_flow_edge %arg0 : tensor<8xf32>
  %0 = sdy.func_data_flow_edge %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
