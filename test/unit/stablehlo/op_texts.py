"""One line of generic MLIR for each op of the stablehlo and chlo dialects, and some more.

`PROGRAMS` are functions that real MLIR accepts; tests compare what it prints with what we print.
"""

# ruff: noqa: ISC004 - lines of text, each in pieces

from __future__ import annotations

ARGUMENTS = ", ".join(
    f"%{name}: {type_}"
    for name, type_ in {
        "a": "tensor<4xf32>",
        "b": "tensor<4xf32>",
        "i": "tensor<4xi32>",
        "p": "tensor<4xi1>",
        "s": "tensor<f32>",
        "si": "tensor<i32>",
        "sp": "tensor<i1>",
        "t": "!stablehlo.token",
        "m": "tensor<3x3xf32>",
        "n": "tensor<3x5xf32>",
        "q": "tensor<4xcomplex<f32>>",
        "qf": "tensor<4xcomplex<f32>>",
        "d": "tensor<?xf32>",
        "i1": "tensor<1xi32>",
        "i2": "tensor<2xi32>",
        "i41": "tensor<4x1xi32>",
        "sh": "tensor<1xi64>",
        "u": "tensor<2xui64>",
        "tt": "tuple<tensor<f32>, tensor<i32>>",
        "c": "tensor<1x8x8x2xf32>",
        "k": "tensor<3x3x2x4xf32>",
        "pd": "tensor<2x2xi32>",
        "v": "tensor<2xf32>",
        "bd": "tensor<?x?xf32, #stablehlo.bounds<4, ?>>",
    }.items()
)

_F = "tensor<4xf32>"
_S = "tensor<f32>"
_CMP = (
    '{^bb0(%x:tensor<f32>,%y:tensor<f32>): %1="stablehlo.compare"(%x,%y)'
    " {comparison_direction=#stablehlo<comparison_direction LT>}:(tensor<f32>,tensor<f32>)"
    '->tensor<i1> "stablehlo.return"(%1):(tensor<i1>)->()}'
)
_FIRST = '{^bb0(%x:tensor<f32>,%y:tensor<f32>): "stablehlo.return"(%x):(tensor<f32>)->()}'
_ADD = (
    '{^bb0(%x:tensor<f32>,%y:tensor<f32>): %1="stablehlo.add"(%x,%y):(tensor<f32>,tensor<f32>)'
    '->tensor<f32> "stablehlo.return"(%1):(tensor<f32>)->()}'
)
_GROUPS = "replica_groups=dense<[[0,1]]>:tensor<1x2xi64>"
_CONV = (
    "dimension_numbers=#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,"
    " feature_group_count=1:i64,batch_group_count=1:i64"
)
_CONV_TYPES = "(tensor<1x8x8x2xf32>,tensor<3x3x2x4xf32>)"

_UNARY = "abs ceil cbrt cosine exponential exponential_minus_one floor log log_plus_one logistic"
_UNARY += " negate round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh"
_BINARY = "add atan2 divide maximum minimum multiply power remainder subtract"
_BITS = "and or xor shift_left shift_right_arithmetic shift_right_logical"
_CHLO_UNARY = "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc"
_CHLO_UNARY += " lgamma sinh square tan"
_BROADCAST = "add atan2 divide maximum minimum multiply next_after polygamma power remainder"
_BROADCAST += " subtract zeta"

LINES = (
    *(f'%0 = "stablehlo.{n}"(%a) : ({_F})->{_F}' for n in _UNARY.split()),
    *(f'%0 = "stablehlo.{n}"(%a,%b) : ({_F},{_F})->{_F}' for n in _BINARY.split()),
    *(
        f'%0 = "stablehlo.{n}"(%i,%i) : (tensor<4xi32>,tensor<4xi32>)->tensor<4xi32>'
        for n in _BITS.split()
    ),
    *(
        f'%0 = "stablehlo.{n}"(%i) : (tensor<4xi32>)->tensor<4xi32>'
        for n in ("count_leading_zeros", "not", "popcnt")
    ),
    f'%0 = "stablehlo.add"(%a,%b) {{x=1:i32}} : ({_F},{_F})->tensor<?xf32>',
    f'%0 = "stablehlo.abs"(%q) : (tensor<4xcomplex<f32>>)->{_F}',
    f'%0 = "stablehlo.real"(%q) : (tensor<4xcomplex<f32>>)->{_F}',
    f'%0 = "stablehlo.imag"(%q) {{a="x"}} : (tensor<4xcomplex<f32>>)->{_F}',
    '%0 = "stablehlo.exponential"(%a) {result_accuracy=#stablehlo.result_accuracy<mode='
    f"#stablehlo.result_accuracy_mode<HIGHEST>>, y}} : ({_F})->{_F}",
    '%0 = "stablehlo.exponential"(%a) {result_accuracy=#stablehlo.result_accuracy<atol = 1.0e-5,'
    " rtol = 0.25, ulps = 1, mode=#stablehlo.result_accuracy_mode<TOLERANCE>>}"
    f" : ({_F})->{_F}",
    f'%0 = "stablehlo.complex"(%a,%b) : ({_F},{_F})->tensor<4xcomplex<f32>>',
    f'%0 = "stablehlo.is_finite"(%a) : ({_F})->tensor<4xi1>',
    '%0 = "stablehlo.compare"(%a,%b) {comparison_direction=#stablehlo<comparison_direction LT>,'
    f" z=2:i32}} : ({_F},{_F})->tensor<4xi1>",
    '%0 = "stablehlo.compare"(%a,%b) {comparison_direction=#stablehlo<comparison_direction NE>,'
    f" compare_type=#stablehlo<comparison_type TOTALORDER>}} : ({_F},{_F})->tensor<4xi1>",
    '%0 = "stablehlo.after_all"(%t,%t) : (!stablehlo.token,!stablehlo.token)->!stablehlo.token',
    '%0 = "stablehlo.after_all"() : ()->!stablehlo.token',
    '%0 = "stablehlo.create_token"() {x} : ()->!stablehlo.token',
    f'%0 = "stablehlo.if"(%sp) ({{ "stablehlo.return"(%a):({_F})->()}},'
    f'{{ "stablehlo.return"(%b) {{k=1:i32}}:({_F})->()}}) {{kk=1:i32}}: (tensor<i1>)->{_F}',
    f'%0:2 = "stablehlo.case"(%si) ({{ "stablehlo.return"(%a,%a):({_F},{_F})->()}})'
    f" : (tensor<i32>)->({_F},{_F})",
    '"stablehlo.if"(%sp) ({ "stablehlo.return"():()->()},{ "stablehlo.return"() {k=1:i32}'
    ":()->()}) {kk=1:i32}: (tensor<i1>)->()",
    '%0 = "stablehlo.iota"() {iota_dimension=0:i64, x} : ()->tensor<4xi32>',
    '%0 = "stablehlo.dynamic_iota"(%i1) {iota_dimension=0:i64, x} : (tensor<1xi32>)->tensor<?xi32>',
    f'%0 = "stablehlo.constant"() {{value=dense<1.0>:{_F}, x}} : ()->{_F}',
    '%0 = "stablehlo.constant"() {value=dense<[1,2]>:tensor<2xi32>} : ()->tensor<2xi32>',
    '%0 = "stablehlo.constant"() {value=dense<[true,false]>:tensor<2xi1>} : ()->tensor<2xi1>',
    '%0 = "stablehlo.constant"() {value=dense<(1.0,2.5)>:tensor<complex<f32>>}'
    " : ()->tensor<complex<f32>>",
    '%0 = "stablehlo.constant"() {value=dense<[7]>:tensor<1xui4>} : ()->tensor<1xui4>',
    f'%0 = "stablehlo.bitcast_convert"(%a) : ({_F})->tensor<4xi32>',
    f'%0 = "stablehlo.convert"(%a) : ({_F})->tensor<4xi32>',
    f'%0 = "stablehlo.convert"(%a) {{x}} : ({_F})->{_F}',
    '%0 = "stablehlo.broadcast"(%a) {broadcast_sizes=array<i64:2,3>}'
    f" : ({_F})->tensor<2x3x4xf32>",
    '%0 = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions=array<i64:1>}'
    f" : ({_F})->tensor<2x4xf32>",
    '%0 = "stablehlo.dynamic_broadcast_in_dim"(%a,%i2) {broadcast_dimensions=array<i64:1>,'
    f"known_expanding_dimensions=array<i64:0>}} : ({_F},tensor<2xi32>)->tensor<?x?xf32>",
    '%0 = "stablehlo.cholesky"(%m) : (tensor<3x3xf32>)->tensor<3x3xf32>',
    '%0 = "stablehlo.cholesky"(%m) {lower=true, x} : (tensor<3x3xf32>)->tensor<3x3xf32>',
    f'%0 = "stablehlo.clamp"(%s,%a,%s) : ({_S},{_F},{_S})->{_F}',
    f'%0 = "stablehlo.clamp"(%a,%a,%a) : ({_F},{_F},{_F})->{_F}',
    f'%0 = "stablehlo.concatenate"(%a,%b) {{dimension=0:i64,x}} : ({_F},{_F})->tensor<8xf32>',
    f'%0 = "stablehlo.convolution"(%c,%k) {{{_CONV}, window_strides=array<i64:1,1>,'
    "padding=dense<[[1,1],[1,0]]>:tensor<2x2xi64>,lhs_dilation=array<i64:1,1>,"
    " rhs_dilation=array<i64:1,1>, window_reversal=array<i1:false,true>,"
    " precision_config=[#stablehlo<precision DEFAULT>,#stablehlo<precision HIGH>]}"
    f" : {_CONV_TYPES}->tensor<1x8x7x4xf32>",
    f'%0 = "stablehlo.convolution"(%c,%k) {{{_CONV}}} : {_CONV_TYPES}->tensor<1x6x6x4xf32>',
    f'%0 = "stablehlo.dynamic_conv"(%c,%k,%pd) {{{_CONV}, window_strides=array<i64:1,1>}}'
    " : (tensor<1x8x8x2xf32>,tensor<3x3x2x4xf32>,tensor<2x2xi32>)->tensor<1x?x?x4xf32>",
    '%0 = "stablehlo.custom_call"(%a) {call_target_name="foo b", backend_config="x",'
    f" api_version=1:i32, has_side_effect=true}} : ({_F})->{_F}",
    '"stablehlo.custom_call"() {call_target_name="foo"} : ()->()',
    '%0:2 = "stablehlo.custom_call"(%a) {call_target_name="foo", called_computations=[@g],'
    " api_version=4:i32, backend_config={a=1:i32}, operand_layouts=[dense<0>:tensor<1xindex>],"
    "result_layouts=[dense<0>:tensor<1xindex>,dense<0>:tensor<1xindex>], output_operand_aliases="
    "[#stablehlo.output_operand_alias<output_tuple_indices=[0],operand_index=0,"
    f"operand_tuple_indices=[]>]}} : ({_F})->({_F},{_F})",
    '%0 = "stablehlo.composite"(%a) {name="a.b", decomposition=@g, version=1:i32,'
    f" composite_attributes={{x=1:i32}}}} : ({_F})->{_F}",
    f'%0 = "stablehlo.composite"(%a) {{name="a.b", decomposition=@g}} : ({_F})->{_F}',
    '%0 = "stablehlo.dot"(%m,%n) : (tensor<3x3xf32>,tensor<3x5xf32>)->tensor<3x5xf32>',
    '%0 = "stablehlo.dot"(%m,%n) {precision_config=[#stablehlo<precision DEFAULT>,'
    "#stablehlo<precision HIGH>]}: (tensor<3x3xf32>,tensor<3x5xf32>)->tensor<3x5xf32>",
    '%0 = "stablehlo.dot_general"(%m,%n) {x,dot_dimension_numbers=#stablehlo.dot<'
    "lhs_contracting_dimensions=[1],rhs_contracting_dimensions=[0]>, precision_config="
    "[#stablehlo<precision DEFAULT>,#stablehlo<precision DEFAULT>], algorithm="
    "#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32,"
    " accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1,"
    " num_primitive_operations = 1, allow_imprecise_accumulation = false>}"
    ": (tensor<3x3xf32>,tensor<3x5xf32>)->tensor<3x5xf32>",
    '%0 = "stablehlo.dot_general"(%m,%n) {dot_dimension_numbers=#stablehlo.dot<>,'
    "precision_config=[]}: (tensor<3x3xf32>,tensor<3x5xf32>)->tensor<3x3x3x5xf32>",
    '%0 = "stablehlo.dot_general"(%m,%m) {dot_dimension_numbers=#stablehlo.dot<'
    "lhs_batching_dimensions=[0],rhs_batching_dimensions=[0],lhs_contracting_dimensions=[1],"
    "rhs_contracting_dimensions=[1]>}: (tensor<3x3xf32>,tensor<3x3xf32>)->tensor<3xf32>",
    '%0 = "stablehlo.einsum"(%m,%n) {einsum_config="ab,bc->ac"}'
    ": (tensor<3x3xf32>,tensor<3x5xf32>)->tensor<3x5xf32>",
    '%0 = "stablehlo.unary_einsum"(%m) {einsum_config="ab->a"}: (tensor<3x3xf32>)->tensor<3xf32>',
    '%0 = "stablehlo.fft"(%q) {fft_type=#stablehlo<fft_type FFT>,fft_length=array<i64:4>}'
    ": (tensor<4xcomplex<f32>>)->tensor<4xcomplex<f32>>",
    '%0 = "stablehlo.get_tuple_element"(%tt) {index=1:i32,x}'
    ": (tuple<tensor<f32>,tensor<i32>>)->tensor<i32>",
    f'%0 = "stablehlo.tuple"(%a,%t) {{x}}: ({_F},!stablehlo.token)->tuple<{_F},!stablehlo.token>',
    '%0 = "stablehlo.tuple"(): ()->tuple<>',
    '%0:2 = "stablehlo.infeed"(%t) {infeed_config="a", layout=[[0]]}'
    f": (!stablehlo.token)->({_F},!stablehlo.token)",
    f'%0:2="stablehlo.infeed"(%t) : (!stablehlo.token)->({_F},!stablehlo.token)',
    f'%0 = "stablehlo.outfeed"(%a,%t) : ({_F},!stablehlo.token)->!stablehlo.token',
    '%0 = "stablehlo.send"(%a,%t) {channel_handle=#stablehlo.channel_handle<handle=1,type=1>}'
    f": ({_F},!stablehlo.token)->!stablehlo.token",
    '%0:2 = "stablehlo.recv"(%t) {channel_handle=#stablehlo.channel_handle<handle=1,type=1>}'
    f": (!stablehlo.token)->({_F},!stablehlo.token)",
    f'%0:2 = "stablehlo.optimization_barrier"(%a,%p) : ({_F},tensor<4xi1>)->({_F},tensor<4xi1>)',
    '"stablehlo.optimization_barrier"() : ()->()',
    f'%0 = "stablehlo.optimization_barrier"(%a) {{x}}: ({_F})->{_F}',
    '%0 = "stablehlo.pad"(%a,%s) {edge_padding_low=array<i64:1>,edge_padding_high=array<i64:-1>,'
    f"interior_padding=array<i64:0>}}: ({_F},{_S})->{_F}",
    f'%0 = "stablehlo.reduce_precision"(%a) {{exponent_bits=5:i32,mantissa_bits=10:i32}}: ({_F})->{_F}',
    f'%0 = "stablehlo.reshape"(%a) : ({_F})->tensor<2x2xf32>',
    f'%0 = "stablehlo.reverse"(%a) {{dimensions=array<i64:0>}}: ({_F})->{_F}',
    f'%0 = "stablehlo.reverse"(%a) {{dimensions=array<i64:0>}}: ({_F})->tensor<?xf32>',
    '%0 = "stablehlo.rng"(%s,%s,%sh) {rng_distribution=#stablehlo<rng_distribution UNIFORM>}'
    f": ({_S},{_S},tensor<1xi64>)->{_F}",
    '%0:2 = "stablehlo.rng_bit_generator"(%u) {rng_algorithm=#stablehlo<rng_algorithm THREE_FRY>}'
    ": (tensor<2xui64>)->(tensor<2xui64>,tensor<4xui32>)",
    f'%0 = "stablehlo.select"(%p,%a,%b) : (tensor<4xi1>,{_F},{_F})->{_F}',
    f'%0 = "stablehlo.select"(%sp,%a,%b) {{x}}: (tensor<i1>,{_F},{_F})->tensor<?xf32>',
    '%0 = "stablehlo.slice"(%a) {start_indices=array<i64:0>,limit_indices=array<i64:4>,'
    f"strides=array<i64:2>}}: ({_F})->tensor<2xf32>",
    '%0 = "stablehlo.slice"(%m) {start_indices=array<i64:0,1>,limit_indices=array<i64:3,3>,'
    "strides=array<i64:1,1>}: (tensor<3x3xf32>)->tensor<3x2xf32>",
    '%0 = "stablehlo.slice"(%s) {start_indices=array<i64>,limit_indices=array<i64>,'
    f"strides=array<i64>}}: ({_S})->{_S}",
    f'%0 = "stablehlo.dynamic_slice"(%a,%si) {{slice_sizes=array<i64:2>}}: ({_F},tensor<i32>)'
    "->tensor<2xf32>",
    f'%0 = "stablehlo.dynamic_slice"(%s) {{slice_sizes=array<i64>}}: ({_S})->{_S}',
    f'%0 = "stablehlo.dynamic_update_slice"(%a,%b,%si) : ({_F},{_F},tensor<i32>)->{_F}',
    '%0 = "stablehlo.real_dynamic_slice"(%d,%i1,%i1,%i1)'
    " : (tensor<?xf32>,tensor<1xi32>,tensor<1xi32>,tensor<1xi32>)->tensor<?xf32>",
    '%0 = "stablehlo.dynamic_pad"(%a,%s,%i1,%i1,%i1)'
    f" : ({_F},{_S},tensor<1xi32>,tensor<1xi32>,tensor<1xi32>)->tensor<?xf32>",
    f'%0 = "stablehlo.dynamic_reshape"(%a,%i2) : ({_F},tensor<2xi32>)->tensor<?x?xf32>',
    '%0 = "stablehlo.dynamic_gather"(%a,%i41,%i1) {dimension_numbers=#stablehlo.gather<'
    "offset_dims=[1],index_vector_dim=1,start_index_map=[0]>}"
    f" : ({_F},tensor<4x1xi32>,tensor<1xi32>)->tensor<4x?xf32>",
    '%0="stablehlo.gather"(%a,%i41) {dimension_numbers=#stablehlo.gather<offset_dims=[1],'
    "index_vector_dim=1,start_index_map=[0]>,slice_sizes=array<i64:1>,indices_are_sorted=true}"
    f" : ({_F},tensor<4x1xi32>)->tensor<4x1xf32>",
    '%0 = "stablehlo.set_dimension_size"(%a,%si) {dimension=0:i64}'
    f": ({_F},tensor<i32>)->tensor<?xf32,#stablehlo.bounds<4>>",
    f'%0 = "stablehlo.get_dimension_size"(%a) {{dimension=0:i64}}: ({_F})->tensor<i32>',
    '%0 = "stablehlo.transpose"(%n) {permutation=array<i64:1,0>}'
    ": (tensor<3x5xf32>)->tensor<5x3xf32>",
    '%0 = "stablehlo.partition_id"() {x}: ()->tensor<ui32>',
    '%0 = "stablehlo.replica_id"() : ()->tensor<ui32>',
    '%0 = "stablehlo.torch_index_select"(%m,%i1) {dim=0:i64,batch_dims=0:i64}'
    ": (tensor<3x3xf32>,tensor<1xi32>)->tensor<1x3xf32>",
    '%0 = "stablehlo.triangular_solve"(%m,%m) {left_side=true,lower=true,unit_diagonal=false,'
    "transpose_a=#stablehlo<transpose NO_TRANSPOSE>}"
    ": (tensor<3x3xf32>,tensor<3x3xf32>)->tensor<3x3xf32>",
    f'%0 = "stablehlo.cross-replica-sum"(%a) {{{_GROUPS}}}: ({_F})->{_F}',
    '%0 = "stablehlo.collective_permute"(%a) {source_target_pairs=dense<[[0,1]]>'
    f":tensor<1x2xi64>}}: ({_F})->{_F}",
    f'%0 = "stablehlo.collective_broadcast"(%a) {{{_GROUPS}}}: ({_F})->{_F}',
    '%0 = "stablehlo.map"(%a) ({^bb0(%x:tensor<f32>): "stablehlo.return"(%x):(tensor<f32>)->()})'
    f" {{dimensions=array<i64:0>}}: ({_F})->{_F}",
    f'%0 = "stablehlo.reduce"(%a,%s) ({_ADD}) {{dimensions=array<i64:0>,x}}: ({_F},{_S})->{_S}',
    f'%0 = "stablehlo.reduce"(%a,%s) ({_FIRST}) {{dimensions=array<i64:0>}}: ({_F},{_S})->{_S}',
    '%0 = "stablehlo.reduce"(%a,%s) ({^bb0(%x:tensor<f32>,%y:tensor<f32>): %1="stablehlo.add"'
    '(%y,%x):(tensor<f32>,tensor<f32>)->tensor<f32> "stablehlo.return"(%1):(tensor<f32>)->()})'
    f" {{dimensions=array<i64:0>}}: ({_F},{_S})->{_S}",
    '%0 = "stablehlo.reduce"(%a,%s) ({^bb0(%x:tensor<f32>,%y:tensor<f32>): %1="stablehlo.add"'
    "(%x,%y) {k}:(tensor<f32>,tensor<f32>)->tensor<f32>"
    ' "stablehlo.return"(%1):(tensor<f32>)->()})'
    f" {{dimensions=array<i64:0>}}: ({_F},{_S})->{_S}",
    '%0 = "stablehlo.reduce"(%a,%s) ({^bb0(%x:tensor<f32>,%y:tensor<f32>):'
    ' %1="stablehlo.subtract"(%x,%y):(tensor<f32>,tensor<f32>)->tensor<f32>'
    ' "stablehlo.return"(%1):(tensor<f32>)->()})'
    f" {{dimensions=array<i64:0>}}: ({_F},{_S})->{_S}",
    '%0:2 = "stablehlo.reduce"(%a,%a,%s,%s) ({^bb0(%x:tensor<f32>,%y:tensor<f32>,'
    '%z:tensor<f32>,%w:tensor<f32>): %1="stablehlo.add"(%x,%y):(tensor<f32>,tensor<f32>)'
    '->tensor<f32> "stablehlo.return"(%1,%1):(tensor<f32>,tensor<f32>)->()})'
    f" {{dimensions=array<i64:0>,x}}: ({_F},{_F},{_S},{_S})->({_S},{_S})",
    f'%0="stablehlo.reduce_window"(%a,%s) ({_FIRST}) {{window_dimensions=array<i64:2>}}'
    f": ({_F},{_S})->tensor<3xf32>",
    '%0 = "stablehlo.while"(%si) ({^bb0(%x:tensor<i32>): %1="stablehlo.compare"(%x,%x)'
    "{comparison_direction=#stablehlo<comparison_direction LT>}:(tensor<i32>,tensor<i32>)"
    '->tensor<i1> "stablehlo.return"(%1):(tensor<i1>)->()},'
    '{^bb0(%x:tensor<i32>): "stablehlo.return"(%x):(tensor<i32>)->()}) {xx}'
    ": (tensor<i32>)->tensor<i32>",
    '"stablehlo.while"() ({%1=stablehlo.constant dense<true>:tensor<i1>'
    ' "stablehlo.return"(%1):(tensor<i1>)->()},{"stablehlo.return"():()->()}) : ()->()',
    f'%0 = "stablehlo.async_start"(%a) ({{^bb0(%x:{_F}): %1="stablehlo.all_gather"(%x)'
    f" {{all_gather_dim=0:i64,{_GROUPS}}} : ({_F})->tensor<8xf32>"
    ' "stablehlo.return"(%1):(tensor<8xf32>)->()})'
    f" : ({_F})->!stablehlo.future<tensor<8xf32>> "
    '%2="stablehlo.async_done"(%0): (!stablehlo.future<tensor<8xf32>>)->tensor<8xf32>',
    f'%0="stablehlo.all_gather"(%a) {{all_gather_dim=0:i64,{_GROUPS},use_global_device_ids,'
    f"channel_handle=#stablehlo.channel_handle<handle=1,type=1>}} : ({_F})->tensor<8xf32>",
    f'%0="stablehlo.all_reduce"(%a) ({_ADD}) {{{_GROUPS}}} : ({_F})->{_F}',
    f'%0="stablehlo.reduce_scatter"(%a) ({_ADD}) {{scatter_dimension=0:i64,{_GROUPS}}}'
    f" : ({_F})->tensor<2xf32>",
    '%0="stablehlo.all_to_all"(%a) {split_dimension=0:i64,concat_dimension=0:i64,'
    f"split_count=2:i64,{_GROUPS}}} : ({_F})->{_F}",
    f'%0="stablehlo.sort"(%a) ({_CMP}) {{is_stable=true,dimension=0:i64}} : ({_F})->{_F}',
    f'%0="stablehlo.sort"(%a) ({_CMP}) : ({_F})->{_F}',
    f'%0="stablehlo.scatter"(%a,%i41,%b) ({_FIRST}) {{scatter_dimension_numbers='
    "#stablehlo.scatter<inserted_window_dims=[0],scatter_dims_to_operand_dims=[0],"
    f"index_vector_dim=1>,unique_indices=true}}: ({_F},tensor<4x1xi32>,{_F})->{_F}",
    f'%0="stablehlo.select_and_scatter"(%a,%v,%s) ({_CMP},{_FIRST}) {{window_dimensions='
    f"array<i64:2>,window_strides=array<i64:2>}}: ({_F},tensor<2xf32>,{_S})->{_F}",
    '%0:3="stablehlo.batch_norm_training"(%c,%v,%v) {epsilon=1.0e-3:f32,feature_index=3:i64}'
    ": (tensor<1x8x8x2xf32>,tensor<2xf32>,tensor<2xf32>)"
    "->(tensor<1x8x8x2xf32>,tensor<2xf32>,tensor<2xf32>)",
    '%0:3="stablehlo.batch_norm_grad"(%c,%v,%v,%v,%c) {epsilon=1.0e-3:f32,feature_index=3:i64}'
    ": (tensor<1x8x8x2xf32>,tensor<2xf32>,tensor<2xf32>,tensor<2xf32>,tensor<1x8x8x2xf32>)"
    "->(tensor<1x8x8x2xf32>,tensor<2xf32>,tensor<2xf32>)",
    '%0="stablehlo.batch_norm_inference"(%c,%v,%v,%v,%v) {epsilon=1.0e-3:f32,feature_index=3:i64}'
    ": (tensor<1x8x8x2xf32>,tensor<2xf32>,tensor<2xf32>,tensor<2xf32>,tensor<2xf32>)"
    "->tensor<1x8x8x2xf32>",
    *(f'%0 = "chlo.{n}"(%a) : ({_F})->{_F}' for n in _CHLO_UNARY.split()),
    *(
        f'%0 = "chlo.{n}"(%a) : ({_F})->tensor<4xi1>'
        for n in ("is_inf", "is_neg_inf", "is_pos_inf")
    ),
    '%0 = "chlo._asin_acos_kernel"(%q) : (tensor<4xcomplex<f32>>)->tensor<4xcomplex<f32>>',
    *(f'%0 = "chlo.{n}"(%a,%b) : ({_F},{_F})->{_F}' for n in ("next_after", "polygamma", "zeta")),
    '%0 = "chlo.mulhi"(%i,%i) : (tensor<4xi32>,tensor<4xi32>)->tensor<4xi32>',
    *(
        f'%0 = "chlo.broadcast_{n}"(%a,%s) {{broadcast_dimensions=array<i64>}} : ({_F},{_S})->{_F}'
        for n in _BROADCAST.split()
    ),
    *(
        f'%0 = "chlo.broadcast_{n}"(%i,%si) : (tensor<4xi32>,tensor<i32>)->tensor<4xi32>'
        for n in _BITS.split()
    ),
    f'%0 = "chlo.broadcast_complex"(%a,%s) : ({_F},{_S})->tensor<4xcomplex<f32>>',
    '%0="chlo.broadcast_compare"(%a,%b) {comparison_direction=#chlo<comparison_direction LT>,'
    f"compare_type=#chlo<comparison_type FLOAT>}}: ({_F},{_F})->tensor<4xi1>",
    f'%0="chlo.broadcast_select"(%sp,%a,%b) : (tensor<i1>,{_F},{_F})->{_F}',
    f'%0="chlo.constant"() {{value=dense<1.0>:{_F}}} : ()->{_F}',
    f'%0="chlo.constant_like"(%a) {{value=1.0:f32}}: ({_F})->{_F}',
    f'%0:2="chlo.top_k"(%a) {{k=2:i64}}:({_F})->(tensor<2xf32>,tensor<2xi32>)',
    '%0="chlo.ragged_dot"(%m,%m,%sh) {ragged_dot_dimension_numbers=#chlo.ragged_dot<'
    "lhs_contracting_dimensions = [1],rhs_contracting_dimensions = [0],"
    "lhs_ragged_dimensions = [1]>,precision_config=[#chlo<precision DEFAULT>,"
    "#chlo<precision DEFAULT>]}: (tensor<3x3xf32>,tensor<3x3xf32>,tensor<1xi64>)"
    "->tensor<1x3x3xf32>",
    '%0:2="chlo.scan"(%a,%s) ({^bb0(%x:tensor<f32>,%y:tensor<f32>): "stablehlo.return"(%x,%y)'
    ":(tensor<f32>,tensor<f32>)->()}) {dimension=0:i64,operandSegmentSizes=array<i32:1,1>,"
    f"resultSegmentSizes=array<i32:1,1>}}: ({_F},{_S})->({_F},{_S})",
    '%0:2="chlo.scan"(%a,%s) ({^bb0(%x:tensor<f32>,%y:tensor<f32>): "stablehlo.return"(%x,%y)'
    ":(tensor<f32>,tensor<f32>)->()}) {dimension=0:i64,is_reverse=true,is_associative=false,k,"
    f"operandSegmentSizes=array<i32:1,1>,resultSegmentSizes=array<i32:1,1>}}: ({_F},{_S})->({_F},{_S})",
    f'%0 = "stablehlo.uniform_quantize"(%a) : ({_F})->tensor<4x!quant.uniform<i8:f32, 0.5:3>>',
    f'%0 = "stablehlo.uniform_dequantize"(%qq) : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>)->{_F}',
)
"""Ops in generic form. The last two have types of the quant dialect, which jaxlib lacks."""


def program(line: str) -> str:
    """The function in which a line stands."""
    quantized = ", %qq: tensor<4x!quant.uniform<i8:f32, 0.5:3>>" if "%qq" in line else ""
    return (
        f"func.func @f({ARGUMENTS}{quantized}) {{\n  {line}\n  return\n}}\n"
        "func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
    )


PROGRAMS = tuple(program(line) for line in LINES)
