// A function for each StableHLO operation, one at a time. `tools/bytecode_fixtures.py` makes artifacts of them.

func.func @after_all(%a: !stablehlo.token) -> !stablehlo.token {
  %0 = "stablehlo.create_token"() : () -> !stablehlo.token
  %1 = "stablehlo.after_all"(%0, %a) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
  func.return %1 : !stablehlo.token
}

func.func @async(%a: tensor<4xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    %2 = "stablehlo.slice"(%x) {start_indices = array<i64: 0>, limit_indices = array<i64: 4>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %2 : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}

func.func @broadcast(%a: tensor<3xi32>) -> tensor<1x2x3xi32> {
  %0 = "stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 1, 2>} : (tensor<3xi32>) -> tensor<1x2x3xi32>
  func.return %0 : tensor<1x2x3xi32>
}

func.func @collectives(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "stablehlo.all_reduce"(%0) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %3 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) {replica_groups = dense<[[0, 2], [1, -1]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, use_global_device_ids} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.all_reduce"(%1) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %3 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) {replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>, <name = "y", size = 4>], device_ids=dense<[1, 0, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>>, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %2 : tensor<4x2xf32>
}

func.func @composite(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.composite"(%a) {name = "a.b", decomposition = @callee, composite_attributes = {n = 1 : i64, s = "x", f = 2.5 : f32, l = [true, 3 : i8], t = tensor<2xf32>, d = dense<[1.0, 2.0]> : tensor<2xf64>}, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @callee(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

func.func private @callee(%a: tensor<4xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}) -> (tensor<4xf32> {jax.result_info = "r"}) {
  func.return %a : tensor<4xf32>
}

func.func @constants() -> tensor<2xi4> {
  %0 = stablehlo.constant dense<[1, -8]> : tensor<2xi4>
  %1 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  %2 = stablehlo.constant dense<false> : tensor<9x9xi1>
  %3 = stablehlo.constant dense<[[1.5, 0x7FC00001], [-0.0, 0xFF800000]]> : tensor<2x2xf32>
  %4 = stablehlo.constant dense<[(1.0, -2.0), (0.0, 3.0)]> : tensor<2xcomplex<f64>>
  %5 = stablehlo.constant dense<[1.0, 2.5]> : tensor<2xbf16>
  %6 = stablehlo.constant dense<[1.0, -0.5]> : tensor<2xf8E4M3FN>
  %7 = stablehlo.constant dense<> : tensor<0x3xf32>
  %8 = stablehlo.constant dense<> : tensor<0xi1>
  %9 = stablehlo.constant dense<255> : tensor<ui8>
  %10 = stablehlo.constant dense<[18446744073709551615, 1]> : tensor<2xui64>
  %11 = stablehlo.constant dense<[1, -2]> : tensor<2xi2>
  %12 = stablehlo.constant dense<[1.0, 6.0]> : tensor<2xf4E2M1FN>
  func.return %0 : tensor<2xi4>
}

func.func @custom_call(%a: tensor<2x3xf32>, %b: tensor<3xi32>) -> tuple<tensor<2x3xf32>, tensor<3xi32>> {
  %0 = "stablehlo.custom_call"(%a, %b) {call_target_name = "t", has_side_effect = true, backend_config = "cfg", api_version = 2 : i32, called_computations = [@callee], operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], mhlo.frontend_attributes = {k = "v"}} : (tensor<2x3xf32>, tensor<3xi32>) -> tuple<tensor<2x3xf32>, tensor<3xi32>>
  func.return %0 : tuple<tensor<2x3xf32>, tensor<3xi32>>
}

func.func @custom_call_typed(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "ffi", backend_config = {eps = 1.0e-5 : f32, n = 2 : i32}, api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}

func.func @dot(%a: tensor<4x2xf32>, %b: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %0 = "stablehlo.dot"(%a, %b) {precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %0 : tensor<4x3xf32>
}

func.func @dynamic(%a: tensor<?x?xf32>, %s: tensor<2xi64>, %t: tensor<3xi64>, %f: tensor<f32>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.dynamic_broadcast_in_dim"(%a, %t) {broadcast_dimensions = array<i64: 1, 2>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>} : (tensor<?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  %1 = "stablehlo.dynamic_iota"(%s) {iota_dimension = 1 : i64} : (tensor<2xi64>) -> tensor<?x?xi32>
  %2 = "stablehlo.dynamic_pad"(%a, %f, %s, %s, %s) : (tensor<?x?xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  %3 = "stablehlo.dynamic_reshape"(%a, %s) : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %4 = "stablehlo.real_dynamic_slice"(%a, %s, %s, %s) : (tensor<?x?xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  func.return %0 : tensor<?x?x?xf32>
}

func.func @dynamic_conv(%a: tensor<1x8x8x4xf32>, %b: tensor<3x3x4x2xf32>, %p: tensor<2x2xi64>) -> tensor<1x?x?x2xf32> {
  %0 = "stablehlo.dynamic_conv"(%a, %b, %p) {window_strides = array<i64: 2, 1>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: false, true>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>, tensor<2x2xi64>) -> tensor<1x?x?x2xf32>
  %1 = "stablehlo.convolution"(%a, %b) {window_strides = array<i64: 2, 1>, padding = dense<[[1, 0], [0, 2]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: true, true>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[f, 1, b, 0]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<2x6x1x4xf32>
  func.return %0 : tensor<1x?x?x2xf32>
}

func.func @dynamic_gather(%a: tensor<2x4x9xi32>, %i: tensor<1x5x2xi32>, %s: tensor<3xi32>) -> tensor<1x5x8xi32> {
  %0 = "stablehlo.dynamic_gather"(%a, %i, %s) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, indices_are_sorted = true} : (tensor<2x4x9xi32>, tensor<1x5x2xi32>, tensor<3xi32>) -> tensor<1x5x8xi32>
  func.return %0 : tensor<1x5x8xi32>
}

func.func @einsum(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.einsum"(%a, %b) {einsum_config = "ab,bc->ac"} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %1 = "stablehlo.unary_einsum"(%a) {einsum_config = "ab->a"} : (tensor<4x8xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4x2xf32>
}

func.func @feeds(%t: !stablehlo.token, %a: tensor<3xf32>) -> !stablehlo.token {
  %0:2 = "stablehlo.infeed"(%t) {infeed_config = "c", layout = [[0]]} : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  %1 = "stablehlo.outfeed"(%a, %0#1) {outfeed_config = "o"} : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  %2 = "stablehlo.send"(%a, %1) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true} : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  %3:2 = "stablehlo.recv"(%2) {channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  func.return %3#1 : !stablehlo.token
}

func.func @map(%a: tensor<4x5xi32>) -> tensor<4x5xi32> {
  %0 = "stablehlo.map"(%a, %a) ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %1 = stablehlo.multiply %x, %y : tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<4x5xi32>, tensor<4x5xi32>) -> tensor<4x5xi32>
  func.return %0 : tensor<4x5xi32>
}

func.func @control(%p: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    %2 = stablehlo.negate %a : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %1 = "stablehlo.exponential"(%0) {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.5, ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<4xf32>) -> tensor<4xf32>
  %r = "stablehlo.replica_id"() : () -> tensor<ui32>
  func.return %1 : tensor<4xf32>
}

func.func @rng(%a: tensor<f32>, %b: tensor<f32>, %s: tensor<2xi64>, %i: tensor<2xi32>, %o: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution NORMAL>} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>
  %1 = "stablehlo.tan"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = "stablehlo.torch_index_select"(%o, %i) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  func.return %1 : tensor<3x4xf32>
}

func.func @tuples(%a: tensor<4xf32>, %b: tensor<?x4xf32, #stablehlo.bounds<3, ?>>, %c: tensor<*xf32>, %d: index) -> tensor<4xf32> {
  %0 = "stablehlo.tuple"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
  %1 = "stablehlo.get_tuple_element"(%0) {index = 1 : i32} : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

func.func @abs_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.abs"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @add_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @all_gather_0(%a0: tensor<1x3xf32>) -> (tensor<8x3xf32>) {
  %r = "stablehlo.all_gather"(%a0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> : (tensor<1x3xf32>) -> tensor<8x3xf32>
  "func.return"(%r) : (tensor<8x3xf32>) -> ()
}

func.func @all_reduce_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.all_reduce"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
  %29 = "stablehlo.add"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "stablehlo.return"(%29) : (tensor<f32>) -> ()
}) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @all_to_all_0(%a0: tensor<8x2xi32>) -> (tensor<1x16xi32>) {
  %r = "stablehlo.all_to_all"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 0 : i64}> : (tensor<8x2xi32>) -> tensor<1x16xi32>
  "func.return"(%r) : (tensor<1x16xi32>) -> ()
}

func.func @and_0(%a0: tensor<i1>, %a1: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.and"(%a0, %a1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @atan2_0(%a0: tensor<4x5xf32>, %a1: tensor<4x5xf32>) -> (tensor<4x5xf32>) {
  %r = "stablehlo.atan2"(%a0, %a1) : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  "func.return"(%r) : (tensor<4x5xf32>) -> ()
}

func.func @batch_norm_grad_0(%a0: tensor<4x3x3x5xf32>, %a1: tensor<5xf32>, %a2: tensor<5xf32>, %a3: tensor<5xf32>, %a4: tensor<4x3x3x5xf32>) -> (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x3x3x5xf32>) -> (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>)
  "func.return"(%r#0, %r#1, %r#2) : (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> ()
}

func.func @batch_norm_inference_0(%a0: tensor<4x3x3x5xf32>, %a1: tensor<5xf32>, %a2: tensor<5xf32>, %a3: tensor<5xf32>, %a4: tensor<5xf32>) -> (tensor<4x3x3x5xf32>) {
  %r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<4x3x3x5xf32>
  "func.return"(%r) : (tensor<4x3x3x5xf32>) -> ()
}

func.func @batch_norm_training_0(%a0: tensor<4x3x3x5xf32>, %a1: tensor<5xf32>, %a2: tensor<5xf32>) -> (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>)
  "func.return"(%r#0, %r#1, %r#2) : (tensor<4x3x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> ()
}

func.func @bitcast_convert_0(%a0: tensor<5xui32>) -> (tensor<5xf32>) {
  %r = "stablehlo.bitcast_convert"(%a0) : (tensor<5xui32>) -> tensor<5xf32>
  "func.return"(%r) : (tensor<5xf32>) -> ()
}

func.func @broadcast_in_dim_0(%a0: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.broadcast_in_dim"(%a0) <{broadcast_dimensions = array<i64>}> : (tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @case_0(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.case"(%a0) ({
  %64 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  "stablehlo.return"(%64) : (tensor<i32>) -> ()
}, {
  %63 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  "stablehlo.return"(%63) : (tensor<i32>) -> ()
}) : (tensor<i32>) -> tensor<i32>
  "func.return"(%r) : (tensor<i32>) -> ()
}

func.func @cbrt_0(%a0: tensor<4x8xf16>) -> (tensor<4x8xf16>) {
  %r = "stablehlo.cbrt"(%a0) : (tensor<4x8xf16>) -> tensor<4x8xf16>
  "func.return"(%r) : (tensor<4x8xf16>) -> ()
}

func.func @ceil_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.ceil"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @cholesky_0(%a0: tensor<8x8xf32>) -> (tensor<8x8xf32>) {
  %r = "stablehlo.cholesky"(%a0) <{lower = true}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  "func.return"(%r) : (tensor<8x8xf32>) -> ()
}

func.func @clamp_0(%a0: tensor<i32>, %a1: tensor<i32>, %a2: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.clamp"(%a0, %a1, %a2) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
  "func.return"(%r) : (tensor<i32>) -> ()
}

func.func @collective_permute_0(%a0: tensor<1x3xf32>) -> (tensor<1x3xf32>) {
  %r = "stablehlo.collective_permute"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [2, 5]]> : tensor<2x2xi64>}> : (tensor<1x3xf32>) -> tensor<1x3xf32>
  "func.return"(%r) : (tensor<1x3xf32>) -> ()
}

func.func @compare_0(%a0: tensor<i1>, %a1: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.compare"(%a0, %a1) <{compare_type = #stablehlo<comparison_type UNSIGNED>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i1>, tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @compare_1(%a0: tensor<i32>, %a1: tensor<i32>) -> (tensor<i1>) {
  %r = "stablehlo.compare"(%a0, %a1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @complex_0(%a0: tensor<7xf64>, %a1: tensor<7xf64>) -> (tensor<7xcomplex<f64>>) {
  %r = "stablehlo.complex"(%a0, %a1) : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xcomplex<f64>>
  "func.return"(%r) : (tensor<7xcomplex<f64>>) -> ()
}

func.func @concatenate_0(%a0: tensor<1xi32>, %a1: tensor<2xi32>) -> (tensor<3xi32>) {
  %r = "stablehlo.concatenate"(%a0, %a1) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<2xi32>) -> tensor<3xi32>
  "func.return"(%r) : (tensor<3xi32>) -> ()
}

func.func @constant_0() -> (tensor<i8>) {
  %r = "stablehlo.constant"() <{value = dense<0> : tensor<i8>}> : () -> tensor<i8>
  "func.return"(%r) : (tensor<i8>) -> ()
}

func.func @convert_0(%a0: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.convert"(%a0) : (tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @convolution_0(%a0: tensor<2x15x3xf32>, %a1: tensor<3x3x4xf32>) -> (tensor<2x7x4xf32>) {
  %r = "stablehlo.convolution"(%a0, %a1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1>, padding = dense<0> : tensor<1x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1>, window_reversal = array<i1: false>, window_strides = array<i64: 2>}> : (tensor<2x15x3xf32>, tensor<3x3x4xf32>) -> tensor<2x7x4xf32>
  "func.return"(%r) : (tensor<2x7x4xf32>) -> ()
}

func.func @cosine_0(%a0: tensor<4x3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.cosine"(%a0) : (tensor<4x3xf32>) -> tensor<4x3xf32>
  "func.return"(%r) : (tensor<4x3xf32>) -> ()
}

func.func @count_leading_zeros_0(%a0: tensor<3x5xi8>) -> (tensor<3x5xi8>) {
  %r = "stablehlo.count_leading_zeros"(%a0) : (tensor<3x5xi8>) -> tensor<3x5xi8>
  "func.return"(%r) : (tensor<3x5xi8>) -> ()
}

func.func @custom_call_0(%a0: tensor<3x4x10xf32>, %a1: tensor<3x4x10xi32>, %a2: tensor<f32>, %a3: tensor<i32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>) {
  %r:2 = "stablehlo.custom_call"(%a0, %a1, %a2, %a3) <{backend_config = "", call_target_name = "ApproxTopK", called_computations = [@top_k_gt_f32_comparator]}> {mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 2 : i64, reduction_input_size_override = -1 : i64, top_k = 2 : i64}} : (tensor<3x4x10xf32>, tensor<3x4x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>)
  "func.return"(%r#0, %r#1) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> ()
}

func.func @custom_call_2(%a0: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>) {
  %r:2 = "stablehlo.custom_call"(%a0) <{backend_config = "", call_target_name = "Qr"}> : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>)
  "func.return"(%r#0, %r#1) : (tensor<6x4xf32>, tensor<4xf32>) -> ()
}

func.func @divide_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @dot_general_0(%a0: tensor<8xf32>, %a1: tensor<8xf32>) -> (tensor<f32>) {
  %r = "stablehlo.dot_general"(%a0, %a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @dynamic_slice_0(%a0: tensor<5xi32>, %a1: tensor<i32>) -> (tensor<1xi32>) {
  %r = "stablehlo.dynamic_slice"(%a0, %a1) <{slice_sizes = array<i64: 1>}> : (tensor<5xi32>, tensor<i32>) -> tensor<1xi32>
  "func.return"(%r) : (tensor<1xi32>) -> ()
}

func.func @dynamic_update_slice_0(%a0: tensor<4xf32>, %a1: tensor<1xf32>, %a2: tensor<i32>) -> (tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%a0, %a1, %a2) : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
  "func.return"(%r) : (tensor<4xf32>) -> ()
}

func.func @exponential_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.exponential"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @exponential_minus_one_0(%a0: tensor<4x5xf32>) -> (tensor<4x5xf32>) {
  %r = "stablehlo.exponential_minus_one"(%a0) : (tensor<4x5xf32>) -> tensor<4x5xf32>
  "func.return"(%r) : (tensor<4x5xf32>) -> ()
}

func.func @fft_0(%a0: tensor<4x7xcomplex<f32>>) -> (tensor<4x12xf32>) {
  %r = "stablehlo.fft"(%a0) <{fft_length = array<i64: 12>, fft_type = #stablehlo<fft_type IRFFT>}> : (tensor<4x7xcomplex<f32>>) -> tensor<4x12xf32>
  "func.return"(%r) : (tensor<4x12xf32>) -> ()
}

func.func @floor_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.floor"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @gather_0(%a0: tensor<40xf32>, %a1: tensor<6x1xi32>) -> (tensor<6xf32>) {
  %r = "stablehlo.gather"(%a0, %a1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<40xf32>, tensor<6x1xi32>) -> tensor<6xf32>
  "func.return"(%r) : (tensor<6xf32>) -> ()
}

func.func @get_dimension_size_0(%a0: tensor<?x3xf32, #stablehlo.bounds<8, ?>>) -> (tensor<i32>) {
  %r = "stablehlo.get_dimension_size"(%a0) <{dimension = 0 : i64}> : (tensor<?x3xf32, #stablehlo.bounds<8, ?>>) -> tensor<i32>
  "func.return"(%r) : (tensor<i32>) -> ()
}

func.func @imag_0(%a0: tensor<7xcomplex<f64>>) -> (tensor<7xf64>) {
  %r = "stablehlo.imag"(%a0) : (tensor<7xcomplex<f64>>) -> tensor<7xf64>
  "func.return"(%r) : (tensor<7xf64>) -> ()
}

func.func @iota_0() -> (tensor<7xi32>) {
  %r = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<7xi32>
  "func.return"(%r) : (tensor<7xi32>) -> ()
}

func.func @is_finite_0(%a0: tensor<3xf32>) -> (tensor<3xi1>) {
  %r = "stablehlo.is_finite"(%a0) : (tensor<3xf32>) -> tensor<3xi1>
  "func.return"(%r) : (tensor<3xi1>) -> ()
}

func.func @log_0(%a0: tensor<5xf32>) -> (tensor<5xf32>) {
  %r = "stablehlo.log"(%a0) : (tensor<5xf32>) -> tensor<5xf32>
  "func.return"(%r) : (tensor<5xf32>) -> ()
}

func.func @log_plus_one_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.log_plus_one"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @logistic_0(%a0: tensor<6x4xf32>) -> (tensor<6x4xf32>) {
  %r = "stablehlo.logistic"(%a0) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  "func.return"(%r) : (tensor<6x4xf32>) -> ()
}

func.func @maximum_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.maximum"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @minimum_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.minimum"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @multiply_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.multiply"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @negate_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.negate"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @not_0(%a0: tensor<39xi1>) -> (tensor<39xi1>) {
  %r = "stablehlo.not"(%a0) : (tensor<39xi1>) -> tensor<39xi1>
  "func.return"(%r) : (tensor<39xi1>) -> ()
}

func.func @optimization_barrier_0(%a0: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  %r = "stablehlo.optimization_barrier"(%a0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  "func.return"(%r) : (tensor<4x4xf32>) -> ()
}

func.func @or_0(%a0: tensor<i1>, %a1: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.or"(%a0, %a1) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @pad_0(%a0: tensor<1xf32>, %a1: tensor<f32>) -> (tensor<3xf32>) {
  %r = "stablehlo.pad"(%a0, %a1) <{edge_padding_high = array<i64: 0>, edge_padding_low = array<i64: 2>, interior_padding = array<i64: 0>}> : (tensor<1xf32>, tensor<f32>) -> tensor<3xf32>
  "func.return"(%r) : (tensor<3xf32>) -> ()
}

func.func @partition_id_0() -> (tensor<ui32>) {
  %r = "stablehlo.partition_id"() : () -> tensor<ui32>
  "func.return"(%r) : (tensor<ui32>) -> ()
}

func.func @popcnt_0(%a0: tensor<3x5xi8>) -> (tensor<3x5xi8>) {
  %r = "stablehlo.popcnt"(%a0) : (tensor<3x5xi8>) -> tensor<3x5xi8>
  "func.return"(%r) : (tensor<3x5xi8>) -> ()
}

func.func @power_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.power"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @real_0(%a0: tensor<7xcomplex<f64>>) -> (tensor<7xf64>) {
  %r = "stablehlo.real"(%a0) : (tensor<7xcomplex<f64>>) -> tensor<7xf64>
  "func.return"(%r) : (tensor<7xf64>) -> ()
}

func.func @reduce_0(%a0: tensor<5xi1>, %a1: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.reduce"(%a0, %a1) <{dimensions = array<i64: 0>}> ({
^bb0(%arg53: tensor<i1>, %arg54: tensor<i1>):
  %306 = "stablehlo.or"(%arg53, %arg54) : (tensor<i1>, tensor<i1>) -> tensor<i1>
  "stablehlo.return"(%306) : (tensor<i1>) -> ()
}) : (tensor<5xi1>, tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @reduce_precision_0(%a0: tensor<16xf32>) -> (tensor<16xf32>) {
  %r = "stablehlo.reduce_precision"(%a0) <{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}> : (tensor<16xf32>) -> tensor<16xf32>
  "func.return"(%r) : (tensor<16xf32>) -> ()
}

func.func @reduce_scatter_0(%a0: tensor<8x3xf32>) -> (tensor<1x3xf32>) {
  %r = "stablehlo.reduce_scatter"(%a0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
  %31 = "stablehlo.add"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "stablehlo.return"(%31) : (tensor<f32>) -> ()
}) : (tensor<8x3xf32>) -> tensor<1x3xf32>
  "func.return"(%r) : (tensor<1x3xf32>) -> ()
}

func.func @reduce_window_0(%a0: tensor<5xf32>, %a1: tensor<f32>) -> (tensor<5xf32>) {
  %r = "stablehlo.reduce_window"(%a0, %a1) <{base_dilations = array<i64: 1>, padding = dense<[[4, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 5>, window_strides = array<i64: 1>}> ({
^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
  %7 = "stablehlo.add"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "stablehlo.return"(%7) : (tensor<f32>) -> ()
}) : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  "func.return"(%r) : (tensor<5xf32>) -> ()
}

func.func @remainder_0(%a0: tensor<i32>, %a1: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.remainder"(%a0, %a1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  "func.return"(%r) : (tensor<i32>) -> ()
}

func.func @reshape_0(%a0: tensor<1xf32>) -> (tensor<f32>) {
  %r = "stablehlo.reshape"(%a0) : (tensor<1xf32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @reverse_0(%a0: tensor<6xf32>) -> (tensor<6xf32>) {
  %r = "stablehlo.reverse"(%a0) <{dimensions = array<i64: 0>}> : (tensor<6xf32>) -> tensor<6xf32>
  "func.return"(%r) : (tensor<6xf32>) -> ()
}

func.func @rng_bit_generator_0(%a0: tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui8>) {
  %r:2 = "stablehlo.rng_bit_generator"(%a0) <{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui8>)
  "func.return"(%r#0, %r#1) : (tensor<2xui64>, tensor<7xui8>) -> ()
}

func.func @round_nearest_afz_0(%a0: tensor<4x8xf16>) -> (tensor<4x8xf16>) {
  %r = "stablehlo.round_nearest_afz"(%a0) : (tensor<4x8xf16>) -> tensor<4x8xf16>
  "func.return"(%r) : (tensor<4x8xf16>) -> ()
}

func.func @round_nearest_even_0(%a0: tensor<40xf32>) -> (tensor<40xf32>) {
  %r = "stablehlo.round_nearest_even"(%a0) : (tensor<40xf32>) -> tensor<40xf32>
  "func.return"(%r) : (tensor<40xf32>) -> ()
}

func.func @rsqrt_0(%a0: tensor<4xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.rsqrt"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
  "func.return"(%r) : (tensor<4xf32>) -> ()
}

func.func @scatter_0(%a0: tensor<40xi1>, %a1: tensor<1xi32>, %a2: tensor<39xi1>) -> (tensor<40xi1>) {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
^bb0(%arg29: tensor<i1>, %arg30: tensor<i1>):
  "stablehlo.return"(%arg30) : (tensor<i1>) -> ()
}) : (tensor<40xi1>, tensor<1xi32>, tensor<39xi1>) -> tensor<40xi1>
  "func.return"(%r) : (tensor<40xi1>) -> ()
}

func.func @select_0(%a0: tensor<i1>, %a1: tensor<i1>, %a2: tensor<i1>) -> (tensor<i1>) {
  %r = "stablehlo.select"(%a0, %a1, %a2) : (tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>
  "func.return"(%r) : (tensor<i1>) -> ()
}

func.func @select_and_scatter_0(%a0: tensor<2x9x9x2xf32>, %a1: tensor<2x4x4x2xf32>, %a2: tensor<f32>) -> (tensor<2x9x9x2xf32>) {
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
  %9 = "stablehlo.compare"(%arg4, %arg5) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
  "stablehlo.return"(%9) : (tensor<i1>) -> ()
}, {
^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
  %8 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "stablehlo.return"(%8) : (tensor<f32>) -> ()
}) : (tensor<2x9x9x2xf32>, tensor<2x4x4x2xf32>, tensor<f32>) -> tensor<2x9x9x2xf32>
  "func.return"(%r) : (tensor<2x9x9x2xf32>) -> ()
}

func.func @set_dimension_size_0(%a0: tensor<8x3xf32>, %a1: tensor<i32>) -> (tensor<?x3xf32, #stablehlo.bounds<8, ?>>) {
  %r = "stablehlo.set_dimension_size"(%a0, %a1) <{dimension = 0 : i64}> : (tensor<8x3xf32>, tensor<i32>) -> tensor<?x3xf32, #stablehlo.bounds<8, ?>>
  "func.return"(%r) : (tensor<?x3xf32, #stablehlo.bounds<8, ?>>) -> ()
}

func.func @shift_left_0(%a0: tensor<8xui32>, %a1: tensor<8xui32>) -> (tensor<8xui32>) {
  %r = "stablehlo.shift_left"(%a0, %a1) : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xui32>
  "func.return"(%r) : (tensor<8xui32>) -> ()
}

func.func @shift_right_arithmetic_0(%a0: tensor<17xi64>, %a1: tensor<17xi64>) -> (tensor<17xi64>) {
  %r = "stablehlo.shift_right_arithmetic"(%a0, %a1) : (tensor<17xi64>, tensor<17xi64>) -> tensor<17xi64>
  "func.return"(%r) : (tensor<17xi64>) -> ()
}

func.func @shift_right_logical_0(%a0: tensor<ui32>, %a1: tensor<ui32>) -> (tensor<ui32>) {
  %r = "stablehlo.shift_right_logical"(%a0, %a1) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
  "func.return"(%r) : (tensor<ui32>) -> ()
}

func.func @sign_0(%a0: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.sign"(%a0) : (tensor<i32>) -> tensor<i32>
  "func.return"(%r) : (tensor<i32>) -> ()
}

func.func @sine_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.sine"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @slice_0(%a0: tensor<5xi32>) -> (tensor<3xi32>) {
  %r = "stablehlo.slice"(%a0) <{limit_indices = array<i64: 3>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<5xi32>) -> tensor<3xi32>
  "func.return"(%r) : (tensor<3xi32>) -> ()
}

func.func @sort_0(%a0: tensor<12xi32>, %a1: tensor<12xi32>) -> (tensor<12xi32>, tensor<12xi32>) {
  %r:2 = "stablehlo.sort"(%a0, %a1) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%arg22: tensor<i32>, %arg23: tensor<i32>, %arg24: tensor<i32>, %arg25: tensor<i32>):
  %86 = "stablehlo.compare"(%arg22, %arg23) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.return"(%86) : (tensor<i1>) -> ()
}) : (tensor<12xi32>, tensor<12xi32>) -> (tensor<12xi32>, tensor<12xi32>)
  "func.return"(%r#0, %r#1) : (tensor<12xi32>, tensor<12xi32>) -> ()
}

func.func @sqrt_0(%a0: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.sqrt"(%a0) : (tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @subtract_0(%a0: tensor<f32>, %a1: tensor<f32>) -> (tensor<f32>) {
  %r = "stablehlo.subtract"(%a0, %a1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  "func.return"(%r) : (tensor<f32>) -> ()
}

func.func @tanh_0(%a0: tensor<5x3xf32>) -> (tensor<5x3xf32>) {
  %r = "stablehlo.tanh"(%a0) : (tensor<5x3xf32>) -> tensor<5x3xf32>
  "func.return"(%r) : (tensor<5x3xf32>) -> ()
}

func.func @transpose_0(%a0: tensor<3x4xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.transpose"(%a0) <{permutation = array<i64: 1, 0>}> : (tensor<3x4xf32>) -> tensor<4x3xf32>
  "func.return"(%r) : (tensor<4x3xf32>) -> ()
}

func.func @triangular_solve_0(%a0: tensor<8x8xf32>, %a1: tensor<8x1xf32>) -> (tensor<8x1xf32>) {
  %r = "stablehlo.triangular_solve"(%a0, %a1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  "func.return"(%r) : (tensor<8x1xf32>) -> ()
}

func.func @while_0(%a0: tensor<4x4xf32>, %a1: tensor<i32>, %a2: tensor<i32>, %a3: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>, tensor<i32>, tensor<4x4xf32>) {
  %r:4 = "stablehlo.while"(%a0, %a1, %a2, %a3) ({
^bb0(%arg9: tensor<4x4xf32>, %arg10: tensor<i32>, %arg11: tensor<i32>, %arg12: tensor<4x4xf32>):
  %25 = "stablehlo.compare"(%arg10, %arg11) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.return"(%25) : (tensor<i1>) -> ()
}, {
^bb0(%arg5: tensor<4x4xf32>, %arg6: tensor<i32>, %arg7: tensor<i32>, %arg8: tensor<4x4xf32>):
  %21 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %22 = "stablehlo.add"(%arg6, %21) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %23 = "stablehlo.sine"(%arg8) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %24 = "stablehlo.add"(%23, %arg5) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  "stablehlo.return"(%arg5, %22, %arg7, %24) : (tensor<4x4xf32>, tensor<i32>, tensor<i32>, tensor<4x4xf32>) -> ()
}) : (tensor<4x4xf32>, tensor<i32>, tensor<i32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>, tensor<i32>, tensor<4x4xf32>)
  "func.return"(%r#0, %r#1, %r#2, %r#3) : (tensor<4x4xf32>, tensor<i32>, tensor<i32>, tensor<4x4xf32>) -> ()
}

func.func @xor_0(%a0: tensor<i32>, %a1: tensor<i32>) -> (tensor<i32>) {
  %r = "stablehlo.xor"(%a0, %a1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  "func.return"(%r) : (tensor<i32>) -> ()
}

func.func @variadic(%a: tensor<4xf32>, %b: tensor<4xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %0:2 = "stablehlo.all_gather"(%a, %b) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  func.return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>
}

func.func @promoting(%a: tensor<4xf32>, %b: tensor<f32>) -> tensor<f64> {
  %0 = "stablehlo.reduce"(%a, %b) ({
  ^bb0(%x: tensor<f64>, %y: tensor<f64>):
    %1 = stablehlo.add %x, %y : tensor<f64>
    stablehlo.return %1 : tensor<f64>
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f64>
  func.return %0 : tensor<f64>
}

func.func @send_pairs(%a: tensor<3xf32>, %t: !stablehlo.token) -> !stablehlo.token {
  %0 = "stablehlo.send"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
  func.return %0 : !stablehlo.token
}

func.func @buffer(%a: memref<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "b"} : (memref<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
