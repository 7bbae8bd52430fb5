// RUN: %python -c "import sys; from mlirhlo.formats.stablehlo import parse_module, print_module; print(print_module(parse_module(open(sys.argv[1]).read())))" %s | filecheck %s
// RUN: %python -c "import sys; from mlirhlo.formats.stablehlo import parse_module, print_module; print(print_module(parse_module(open(sys.argv[1]).read()), generic=True))" %s | filecheck %s --check-prefix=GENERIC

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4, "d"=2, "e"=2, "f"=2]>

// CHECK-LABEL: func.func @collectives
func.func @collectives(%arg0: tensor<8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}, {?}]>}) -> tensor<8x8x8xf32> {
  // CHECK: sdy.all_gather [{"b"}, {}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}, {}]> : tensor<8x8x8xf32>
  // GENERIC: "sdy.all_gather"{{.*}} <{gathering_axes = #sdy<list_of_axis_ref_lists[{"b"}, {}, {}]>, out_sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>}>
  %0 = sdy.all_gather [{"b"}, {}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}, {}]> : tensor<8x8x8xf32>
  // CHECK: sdy.all_slice [{"b"}, {}, {}] %0 out_sharding=<@mesh, [{"a", "b"}, {}, {}]> : tensor<8x8x8xf32>
  %1 = sdy.all_slice [{"b"}, {}, {}] %0 out_sharding=<@mesh, [{"a", "b"}, {}, {}]> : tensor<8x8x8xf32>
  // CHECK: sdy.all_to_all [{"b"}: 0->1] %1 out_sharding=<@mesh, [{"a"}, {"b"}, {}]> : tensor<8x8x8xf32>
  // GENERIC: params = #sdy<all_to_all_param_list[{"b"}: 0->1]>
  %2 = sdy.all_to_all [{"b"}: 0->1] %1 out_sharding=<@mesh, [{"a"}, {"b"}, {}]> : tensor<8x8x8xf32>
  // CHECK: sdy.collective_permute %1 out_sharding=<@mesh, [{"c"}, {}, {}]> {q} : tensor<8x8x8xf32>
  %3 = sdy.collective_permute %1 out_sharding=<@mesh, [{"c"}, {}, {}]> {q} : tensor<8x8x8xf32>
  // CHECK: sdy.all_reduce {"e", "f"} %1 out_sharding=<@mesh, [{"a", "b"}, {}, {}]> : tensor<8x8x8xf32>
  // GENERIC: reduction_axes = #sdy<axis_ref_list{"e", "f"}>
  %4 = sdy.all_reduce {"e", "f"} %1 out_sharding=<@mesh, [{"a", "b"}, {}, {}]> : tensor<8x8x8xf32>
  // CHECK: sdy.reduce_scatter [{"c":(1)2}, {}, {}] %1 out_sharding=<@mesh, [{"a", "b", "c":(1)2}, {}, {}]> : tensor<8x8x8xf32>
  %5 = sdy.reduce_scatter [{"c":(1)2}, {}, {}] %1 out_sharding=<@mesh, [{"a", "b", "c":(1)2}, {}, {}]> : tensor<8x8x8xf32>
  // CHECK: sdy.replicated_to_unreduced {"f"} %1 out_sharding=<@mesh, [{"a", "b"}, {}, {}], unreduced={"f"}> : tensor<8x8x8xf32>
  %6 = sdy.replicated_to_unreduced {"f"} %1 out_sharding=<@mesh, [{"a", "b"}, {}, {}], unreduced={"f"}> : tensor<8x8x8xf32>
  // CHECK: sdy.sharded_to_unreduced [{"b"}, {}, {}] %1 out_sharding=<@mesh, [{"a"}, {}, {}], unreduced={"b"}> : tensor<8x8x8xf32>
  %7 = sdy.sharded_to_unreduced [{"b"}, {}, {}] %1 out_sharding=<@mesh, [{"a"}, {}, {}], unreduced={"b"}> : tensor<8x8x8xf32>
  return %7 : tensor<8x8x8xf32>
}
