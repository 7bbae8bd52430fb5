// RUN: hlo-opt --verify-diagnostics --split-input-file %s
// Constraints that HLO text cannot break: its reader stops there.

// expected-error @unknown {{add: expects 2 operands, but has 1 operands [instruction_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.add %p0 : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{iota: attribute iota_dimension is expected but not seen [instruction_c2]}}
builtin.module @m {
  hlo.computation entry @e {
    %r = hlo.iota : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{dynamic-slice: Expected array argument for dynamic slice, but got token[]. [dynamic-slice_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : !hlo.token
    %r = hlo.dynamic_slice %p0 {dynamic_slice_sizes = array<i64: 2>} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{dynamic-update-slice: 0 start indices are given for the 1 dimensions of f32[2] [dynamic-update-slice_c2]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %p1 = hlo.parameter 1 : tensor<2xf32>
    %r = hlo.dynamic_update_slice %p0, %p1 : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{map: Map expects at least one argument. [map_c2]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %r = hlo.map {dimensions = array<i64>, to_apply = @add} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{reduce: Reduce must have at least 2 arguments, has 0 [reduce_c2]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %r = hlo.reduce {dimensions = array<i64: 0>, to_apply = @add} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{reduce-window: Reduce-window must have at least 2 arguments, has 0 [reduce-window_c2]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %r = hlo.reduce_window {to_apply = @add} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{dot: expects 2 operands, but has 3 operands [dot_c5]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %p1 = hlo.parameter 1 : tensor<2xf32>
    %p2 = hlo.parameter 2 : tensor<2xf32>
    %r = hlo.dot %p0, %p1, %p2 {lhs_contracting_dims = array<i64: 0>, rhs_contracting_dims = array<i64: 0>} : tensor<f32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{convolution: expects 2 operands, but has 3 operands [convolution_c13]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<1x1xf32>
    %p1 = hlo.parameter 1 : tensor<1x1xf32>
    %p2 = hlo.parameter 2 : tensor<2xf32>
    %r = hlo.convolution %p0, %p1, %p2 {dim_labels = #hlo.dim_labels<"bf_io->bf">} : tensor<1x1xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{conditional: 1 branches need as many arguments; got 2 [conditional_c2]}}
builtin.module @m {
  hlo.computation @f {
    %a = hlo.parameter 0 : tensor<2xf32>
    %b = hlo.copy %a : tensor<2xf32>
    hlo.return %b
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<i32>
    %p1 = hlo.parameter 1 : tensor<2xf32>
    %p2 = hlo.parameter 2 : tensor<2xf32>
    %r = hlo.conditional %p0, %p1, %p2 {branch_computations = [@f]} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{parameter: parameter has 1 leaf buffers, but parameter_replication has 2 elements [parameter_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %r = hlo.parameter 0 {parameter_replication = #hlo.booleans<"{true,false}">} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{custom-call: expects 1 shapes in operand_layout_constraints, one an operand; got 2 [custom-call_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.custom_call %p0 {custom_call_target = "f", operand_layout_constraints = [tensor<2xf32>, tensor<2xf32>]} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{custom-call: operand 0 is f32[2], but operand_layout_constraints says f32[] [custom-call_c2]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.custom_call %p0 {custom_call_target = "f", operand_layout_constraints = [tensor<f32>]} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{async-start: AsyncStart expects the op shape to be in the form of ((async-operands), async-outputs, state). Got (f32[2], f32[2]). [async-start_c1]}}
builtin.module @m {
  hlo.computation @f {
    %a = hlo.parameter 0 : tensor<2xf32>
    %b = hlo.copy %a : tensor<2xf32>
    hlo.return %b
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.async_start %p0 {calls = @f} : tuple<tensor<2xf32>, tensor<2xf32>>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{async-update: AsyncUpdate and AsyncDone expect a single async op as their operand. Got f32[2]. [async-update_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.async_update %p0 : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{async-done: AsyncUpdate and AsyncDone expect a single async op as their operand. Got f32[2]. [async-done_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.async_done %p0 : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{send-done: channel_id 2 differs from the 1 of its start [pair_c3]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %p1 = hlo.parameter 1 : !hlo.token
    %s = hlo.send %p0, %p1 {channel_id = 1 : i64} : tuple<tensor<2xf32>, tensor<ui32>, !hlo.token>
    %r = hlo.send_done %s {channel_id = 2 : i64} : !hlo.token
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{all-gather: use_global_device_ids=true needs a channel_id [all-gather_c4]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.all_gather %p0 {use_global_device_ids = true, replica_groups = #hlo.replica_groups<"{{0,1}}">, dimensions = array<i64: 0>} : tensor<4xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{all-gather-start: use_global_device_ids=true needs a channel_id [all-gather-start_c4]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.all_gather_start %p0 {use_global_device_ids = true, replica_groups = #hlo.replica_groups<"{{0,1}}">, dimensions = array<i64: 0>} : tuple<tensor<2xf32>, tensor<4xf32>>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{reduce-scatter: use_global_device_ids=true needs a channel_id [reduce-scatter_c5]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.reduce_scatter %p0 {use_global_device_ids = true, replica_groups = #hlo.replica_groups<"{{0,1}}">, dimensions = array<i64: 0>, to_apply = @add} : tensor<1xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{all-reduce: use_global_device_ids=true needs a channel_id [all-reduce_c3]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.all_reduce %p0 {use_global_device_ids = true, replica_groups = #hlo.replica_groups<"{{0,1}}">, to_apply = @add} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{all-reduce-start: use_global_device_ids=true needs a channel_id [all-reduce-start_c3]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.all_reduce_start %p0 {use_global_device_ids = true, replica_groups = #hlo.replica_groups<"{{0,1}}">, to_apply = @add} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{collective-reduce: use_global_device_ids=true needs a channel_id [collective-reduce_c3]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.collective_reduce %p0 {use_global_device_ids = true, replica_groups = #hlo.replica_groups<"{{0,1}}">, to_apply = @add} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{collective-permute: with slice_sizes the operands are input, output and their start indices; got 1 [collective-permute_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.collective_permute %p0 {source_target_pairs = #hlo.integer_lists<"{{0,1}}">, slice_sizes = #hlo.integer_lists<"{{1}}">} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{collective-permute-start: with slice_sizes the operands are input, output and their start indices; got 1 [collective-permute-start_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.collective_permute_start %p0 {source_target_pairs = #hlo.integer_lists<"{{0,1}}">, slice_sizes = #hlo.integer_lists<"{{1}}">} : tuple<tensor<2xf32>, tensor<2xf32>>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{constant: a constant needs a literal [constant_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %r = "hlo.constant"() : () -> tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{constant: there are no constants of token[] [constant_c2]}}
builtin.module @m {
  hlo.computation entry @e {
    %r = "hlo.constant"() <{literal = #hlo.literal<"f32[] 1">}> : () -> !hlo.token
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{constant: the literal is f32[], the constant is declared f32[2] [constant_c3]}}
builtin.module @m {
  hlo.computation entry @e {
    %r = "hlo.constant"() <{literal = #hlo.literal<"f32[] 1">}> : () -> tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{triangular-solve: Invalid transpose option value for triangular solve: 'TRANSPOSE_INVALID'. [triangular-solve_c8]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2x2xf32>
    %p1 = hlo.parameter 1 : tensor<2x2xf32>
    %r = hlo.triangular_solve %p0, %p1 {transpose_a = "TRANSPOSE_INVALID"} : tensor<2x2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{computation e has no parameter(0), but has parameter(1) [computation_c2]}}
builtin.module @m {
  hlo.computation entry @e {
    %r = hlo.parameter 1 : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{call: computation does not exist: missing [call_graph_c1]}}
builtin.module @m {
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.call %p0 {to_apply = @missing} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{computations call each other in a cycle: f -> f [call_graph_c2]}}
builtin.module @m {
  hlo.computation @f {
    %a = hlo.parameter 0 : tensor<2xf32>
    %b = hlo.call %a {to_apply = @f} : tensor<2xf32>
    hlo.return %b
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.call %p0 {to_apply = @f} : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{the entry computation e is called [call_graph_c3]}}
builtin.module @m {
  hlo.computation @f {
    %a = hlo.parameter 0 : tensor<2xf32>
    %b = hlo.call %a {to_apply = @e} : tensor<2xf32>
    hlo.return %b
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %r = hlo.copy %p0 : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{computation f of a async-start is called twice [call_graph_c5]}}
builtin.module @m {
  hlo.computation @f {
    %a = hlo.parameter 0 : tensor<2xf32>
    %b = hlo.copy %a : tensor<2xf32>
    hlo.return %b
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %s = hlo.async_start %p0 {calls = @f} : tuple<tuple<tensor<2xf32>>, tensor<2xf32>, tensor<i32>>
    %t = hlo.async_done %s : tensor<2xf32>
    %u = hlo.async_start %t {calls = @f} : tuple<tuple<tensor<2xf32>>, tensor<2xf32>, tensor<i32>>
    %r = hlo.async_done %u : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{async-start in thread 'side' calls f, which runs in thread 'main' [call_graph_c6]}}
builtin.module @m {
  hlo.computation @f {
    %a = hlo.parameter 0 : tensor<2xf32>
    %b = hlo.copy %a : tensor<2xf32>
    hlo.return %b
  }
  hlo.computation entry @e {
    %p0 = hlo.parameter 0 : tensor<2xf32>
    %s = hlo.async_start %p0 {async_execution_thread = "side", calls = @f} : tuple<tuple<tensor<2xf32>>, tensor<2xf32>, tensor<i32>>
    %r = hlo.async_done %s : tensor<2xf32>
    hlo.return %r
  }
}

// -----

// expected-error @unknown {{module m has no entry computation [module_c1]}}
builtin.module @m {
  hlo.computation @add {
    %x = hlo.parameter 0 : tensor<f32>
    %y = hlo.parameter 1 : tensor<f32>
    %s = hlo.add %x, %y : tensor<f32>
    hlo.return %s
  }
}
