"""StableHLO programs of one op: sound ones, and what breaks each numbered constraint.

A program is written as the op in generic form without its operands, which follow from its type:
`slice <{strides = …}> : (tensor<8xf32>) -> tensor<3xf32>`. ` where 1 = dense<2>` at its end makes
operand 1 a constant. A broken program is a sound one with pieces of its text exchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_F = "tensor<f32>"
_ADD = (
    "({^bb0(%x: tensor<f32>, %y: tensor<f32>):"
    ' %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>'
    ' "stablehlo.return"(%z) : (tensor<f32>) -> ()})'
)
_GREATER = (
    "({^bb0(%x: tensor<f32>, %y: tensor<f32>):"
    ' %z = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GT>}>'
    " : (tensor<f32>, tensor<f32>) -> tensor<i1>"
    ' "stablehlo.return"(%z) : (tensor<i1>) -> ()})'
)
_CONSTANT = '"stablehlo.constant"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>'
_BRANCH = f'{{%z = {_CONSTANT} "stablehlo.return"(%z) : (tensor<2xf32>) -> ()}}'
_COND = (
    '{^bb0(%x: tensor<i32>): %z = "stablehlo.compare"(%x, %x)'
    " <{comparison_direction = #stablehlo<comparison_direction LT>}>"
    ' : (tensor<i32>, tensor<i32>) -> tensor<i1> "stablehlo.return"(%z) : (tensor<i1>) -> ()}'
)
_BODY = '{^bb0(%x: tensor<i32>): "stablehlo.return"(%x) : (tensor<i32>) -> ()}'
_GATHER = (
    "dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1],"
    " operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2, 1],"
    " index_vector_dim = 2>"
)
_SCATTER = (
    "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2],"
    " inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],"
    " scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 2>"
)
_WINDOW = "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>"
_CONV = (
    "<{window_strides = array<i64: 1, 1>, padding = dense<0> : tensor<2x2xi64>,"
    " lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>,"
    " window_reversal = array<i1: false, false>,"
    " dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,"
    " feature_group_count = 1 : i64, batch_group_count = 1 : i64,"
    " precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}>"
)
_DYNAMIC_CONV = _CONV.replace(" padding = dense<0> : tensor<2x2xi64>,", "")
_RAW_CONV = (
    "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3,"
    " input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2,"
    " kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1],"
    " output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>"
)
_CONV_LETTERS = "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
_GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_Q = "!quant.uniform<i8:f32, 2.0>"
_Q16 = "!quant.uniform<i16:f32, 2.0>"
_QF16 = "!quant.uniform<i8:f16, 2.0>"
_QA = "!quant.uniform<i8:f32:0, {2.0, 3.0}>"
_QB = "!quant.uniform<i8:f32:1, {2.0, 3.0}>"
_ALGORITHM = (
    "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32,"
    " accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1,"
    " num_primitive_operations = 1, allow_imprecise_accumulation = false>"
)
_DOT = (
    "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0],"
    " rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],"
    " rhs_contracting_dimensions = [1]>"
)

UNARY_FLOAT = (
    "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log",
    "log_plus_one", "logistic", "negate", "round_nearest_afz", "round_nearest_even", "rsqrt",
    "sign", "sine", "sqrt", "tan", "tanh",
)  # fmt: skip
UNARY_INT = ("count_leading_zeros", "not", "popcnt")
BINARY_FLOAT = (
    "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract",
)  # fmt: skip
BINARY_INT = ("and", "or", "shift_left", "shift_right_arithmetic", "shift_right_logical", "xor")
CHLO_FLOAT = (
    "_asin_acos_kernel", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj",
    "cosh", "digamma", "erf", "erf_inv", "erfc", "lgamma", "sinh", "square", "tan",
)  # fmt: skip
CHLO_BINARY = ("next_after", "polygamma", "zeta", "mulhi")
CHLO_BROADCAST = (
    "add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply",
    "next_after", "or", "polygamma", "power", "remainder", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "subtract", "xor", "zeta",
)  # fmt: skip


def _chlo_element(name: str) -> str:
    if name in ("mulhi", "and", "or", "xor"):
        return "i32"
    return "complex<f32>" if name == "_asin_acos_kernel" else "f32"


def _chlo_broadcast(name: str) -> str:
    element = _chlo_element(name)
    result = {"compare": "i1", "complex": "complex<f32>"}.get(name, element)
    direction = "comparison_direction = #stablehlo<comparison_direction LT>, "
    properties = (direction if name == "compare" else "") + "broadcast_dimensions = array<i64: 1>"
    if name == "compare":
        properties = properties.replace("stablehlo", "chlo")
    return (
        f"chlo.broadcast_{name} <{{{properties}}}>"
        f" : (tensor<2x3x{element}>, tensor<3x{element}>) -> tensor<2x3x{result}>"
    )


VALID: dict[str, str] = {
    **{n: f"{n} : (tensor<2x3xf32>) -> tensor<2x3xf32>" for n in UNARY_FLOAT},
    **{n: f"{n} : (tensor<2x3xi32>) -> tensor<2x3xi32>" for n in UNARY_INT},
    **{n: f"{n} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>" for n in BINARY_FLOAT},
    **{n: f"{n} : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>" for n in BINARY_INT},
    "abs": "abs : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>",
    "add": "add : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
    "add quantized": f"add : (tensor<2x2x{_Q}>, tensor<2x2x{_Q}>) -> tensor<2x2x{_Q}>",
    "add per axis": f"add : (tensor<2x2x{_QA}>, tensor<2x2x{_QA}>) -> tensor<2x2x{_QA}>",
    "after_all": "after_all : (!stablehlo.token) -> !stablehlo.token",
    "all_gather": (
        f"all_gather <{{all_gather_dim = 1 : i64, {_CHANNEL}, {_GROUPS}, use_global_device_ids}}>"
        " : (tensor<2x3xf32>) -> tensor<2x6xf32>"
    ),
    "all_reduce": (
        f"all_reduce <{{{_CHANNEL}, {_GROUPS}, use_global_device_ids}}> {_ADD}"
        " : (tensor<2x3xf32>) -> tensor<2x3xf32>"
    ),
    "all_to_all": (
        "all_to_all <{split_dimension = 1 : i64, concat_dimension = 0 : i64,"
        f" split_count = 2 : i64, {_GROUPS}}}> : (tensor<2x4xf32>) -> tensor<4x2xf32>"
    ),
    "batch_norm_grad": (
        "batch_norm_grad <{epsilon = 0.0 : f32, feature_index = 1 : i64}>"
        " : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>)"
        " -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)"
    ),
    "batch_norm_inference": (
        "batch_norm_inference <{epsilon = 0.0 : f32, feature_index = 1 : i64}>"
        " : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)"
        " -> tensor<2x3xf32>"
    ),
    "batch_norm_training": (
        "batch_norm_training <{epsilon = 0.0 : f32, feature_index = 1 : i64}>"
        " : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)"
        " -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)"
    ),
    "bitcast_convert": "bitcast_convert : (tensor<2xf64>) -> tensor<2x2xf32>",
    "broadcast": "broadcast <{broadcast_sizes = array<i64: 4>}> : (tensor<2xf32>) -> tensor<4x2xf32>",
    "broadcast_in_dim": (
        "broadcast_in_dim <{broadcast_dimensions = array<i64: 2, 0>}>"
        " : (tensor<1x3xf32>) -> tensor<3x4x5xf32>"
    ),
    "broadcast_in_dim per axis": (
        "broadcast_in_dim <{broadcast_dimensions = array<i64: 0>}>"
        f" : (tensor<2x{_QA}>) -> tensor<2x2x{_QA}>"
    ),
    "case": f"case ({_BRANCH}, {_BRANCH}) : (tensor<i32>) -> tensor<2xf32>",
    "cholesky": "cholesky <{lower = true}> : (tensor<3x4x4xf32>) -> tensor<3x4x4xf32>",
    "clamp": "clamp : (tensor<f32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
    "collective_broadcast": (
        f"collective_broadcast <{{{_GROUPS}}}> : (tensor<4xf32>) -> tensor<4xf32>"
    ),
    "collective_permute": (
        "collective_permute <{source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}>"
        " : (tensor<4xf32>) -> tensor<4xf32>"
    ),
    "compare": (
        "compare <{comparison_direction = #stablehlo<comparison_direction LT>,"
        " compare_type = #stablehlo<comparison_type FLOAT>}>"
        " : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"
    ),
    "complex": "complex : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>",
    "composite": (
        'composite <{name = "my.op", decomposition = @callee}> : (tensor<4xf32>) -> tensor<4xf32>'
    ),
    "concatenate": (
        "concatenate <{dimension = 1 : i64}> : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>"
    ),
    "constant": "constant <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>",
    "convert": "convert : (tensor<4xf32>) -> tensor<4xi8>",
    "convolution": (
        f"convolution {_CONV} : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x6x6x6xf32>"
    ),
    "convolution grouped": (
        "convolution "
        + _CONV.replace("feature_group_count = 1", "feature_group_count = 2")
        + " : (tensor<2x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<2x6x6x6xf32>"
    ),
    "convolution batched": (
        "convolution "
        + _CONV.replace("batch_group_count = 1", "batch_group_count = 2")
        + " : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<1x6x6x6xf32>"
    ),
    "convolution raw": (
        "convolution "
        + _CONV.replace(_CONV_LETTERS, _RAW_CONV)
        + " : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x6x6x6xf32>"
    ),
    "convolution quantized": (
        f"convolution {_CONV} : (tensor<2x8x8x4x{_Q}>, tensor<3x3x4x2x{_Q}>)"
        f" -> tensor<2x6x6x2x{_Q}>"
    ),
    "convolution per axis": (
        f"convolution {_CONV} : (tensor<2x8x8x4x{_Q}>, tensor<3x3x4x2x{_QA.replace(':0', ':3')}>)"
        f" -> tensor<2x6x6x2x{_QA.replace(':0', ':3')}>"
    ),
    "convolution hybrid": (
        f"convolution {_CONV} : (tensor<2x8x8x4xf32>, tensor<3x3x4x2x{_Q}>) -> tensor<2x6x6x2xf32>"
    ),
    "create_token": "create_token : () -> !stablehlo.token",
    "cross-replica-sum": f"cross-replica-sum <{{{_GROUPS}}}> : (tensor<4xf32>) -> tensor<4xf32>",
    "custom_call": 'custom_call <{call_target_name = "f"}> : (tensor<4xf32>) -> tensor<2xi32>',
    "dot": "dot : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
    "dot_general": (
        f"dot_general <{{{_DOT}, precision_config = [#stablehlo<precision DEFAULT>,"
        " #stablehlo<precision DEFAULT>]}>"
        " : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>"
    ),
    "dot_general algorithm": (
        f"dot_general <{{{_DOT}, {_ALGORITHM}}}>"
        " : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>"
    ),
    "dot_general quantized": (
        f"dot_general <{{{_DOT}}}> : (tensor<2x3x2x{_Q}>, tensor<2x2x2x{_Q}>) -> tensor<2x3x2x{_Q}>"
    ),
    "dot_general hybrid": (
        f"dot_general <{{{_DOT}}}> : (tensor<2x3x2xf32>, tensor<2x2x2x{_Q}>) -> tensor<2x3x2xf32>"
    ),
    "dot_general per axis": (
        f"dot_general <{{{_DOT}}}> : (tensor<2x3x2x{_Q}>, tensor<2x2x2x{_QA.replace(':0', ':2')}>)"
        f" -> tensor<2x3x2x{_QA.replace(':0', ':2')}>"
    ),
    "dynamic_broadcast_in_dim": (
        "dynamic_broadcast_in_dim <{broadcast_dimensions = array<i64: 0, 1>,"
        " known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 1>}>"
        " : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>"
    ),
    "dynamic_broadcast_in_dim per axis": (
        "dynamic_broadcast_in_dim <{broadcast_dimensions = array<i64: 0>}>"
        f" : (tensor<2x{_QA}>, tensor<2xi64>) -> tensor<2x2x{_QA}>"
    ),
    "dynamic_conv": (
        f"dynamic_conv {_DYNAMIC_CONV} : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>, tensor<2x2xi64>)"
        " -> tensor<2x?x?x6xf32> where 2 = dense<0>"
    ),
    "dynamic_gather": (
        f"dynamic_gather <{{{_GATHER}}}>"
        " : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<3xi64>) -> tensor<5x2x3xf32>"
        " where 2 = dense<[1, 1, 3]>"
    ),
    "dynamic_iota": "dynamic_iota <{iota_dimension = 1 : i64}> : (tensor<2xi64>) -> tensor<?x?xf32>",
    "dynamic_pad": (
        "dynamic_pad : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>)"
        " -> tensor<8xf32> where 2 = dense<1> where 3 = dense<0> where 4 = dense<1>"
    ),
    "dynamic_reshape": (
        "dynamic_reshape : (tensor<6xf32>, tensor<2xi64>) -> tensor<2x3xf32> where 1 = dense<[2, 3]>"
    ),
    "dynamic_reshape per axis": (
        f"dynamic_reshape : (tensor<2x4x{_QA}>, tensor<3xi64>) -> tensor<2x2x2x{_QA}>"
    ),
    "dynamic_slice": (
        "dynamic_slice <{slice_sizes = array<i64: 2, 1>}>"
        " : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1xf32>"
    ),
    "dynamic_update_slice": (
        "dynamic_update_slice"
        " : (tensor<4x3xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>"
    ),
    "fft": (
        "fft <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}>"
        " : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>"
    ),
    "fft inverse": (
        "fft <{fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 8>}>"
        " : (tensor<2x5xcomplex<f32>>) -> tensor<2x8xf32>"
    ),
    "gather": (
        f"gather <{{{_GATHER}, slice_sizes = array<i64: 1, 1, 3>, indices_are_sorted = false}}>"
        " : (tensor<5x4x3xf32>, tensor<5x2x2xi32>) -> tensor<5x2x3xf32>"
    ),
    "get_dimension_size": (
        "get_dimension_size <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>"
    ),
    "get_tuple_element": (
        "get_tuple_element <{index = 1 : i32}> : (tuple<tensor<2xf32>, tensor<3xi32>>)"
        " -> tensor<3xi32>"
    ),
    "if": f"if ({_BRANCH}, {_BRANCH}) : (tensor<i1>) -> tensor<2xf32>",
    "imag": "imag : (tensor<4xcomplex<f32>>) -> tensor<4xf32>",
    "infeed": "infeed : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)",
    "iota": "iota <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>",
    "is_finite": "is_finite : (tensor<4xf32>) -> tensor<4xi1>",
    "map": (
        f"map <{{dimensions = array<i64: 0, 1>}}> {_ADD} : (tensor<2x3xf32>, tensor<2x3xf32>)"
        " -> tensor<2x3xf32>"
    ),
    "optimization_barrier": "optimization_barrier : (tensor<2xf32>) -> tensor<2xf32>",
    "outfeed": "outfeed : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token",
    "pad": (
        "pad <{edge_padding_low = array<i64: 1, -1>, edge_padding_high = array<i64: 0, 0>,"
        " interior_padding = array<i64: 1, 0>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x2xf32>"
    ),
    "partition_id": "partition_id : () -> tensor<ui32>",
    "real": "real : (tensor<4xcomplex<f32>>) -> tensor<4xf32>",
    "real_dynamic_slice": (
        "real_dynamic_slice : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>)"
        " -> tensor<?xf32>"
    ),
    "recv": (
        "recv <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>,"
        " is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)"
    ),
    "reduce": (
        f"reduce <{{dimensions = array<i64: 1>}}> {_ADD} : (tensor<2x3xf32>, tensor<f32>)"
        " -> tensor<2xf32>"
    ),
    "reduce two": (
        "reduce <{dimensions = array<i64: 1>}>"
        " ({^bb0(%x: tensor<f32>, %y: tensor<i32>, %z: tensor<f32>, %w: tensor<i32>):"
        ' "stablehlo.return"(%x, %w) : (tensor<f32>, tensor<i32>) -> ()})'
        " : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>)"
        " -> (tensor<2xf32>, tensor<2xi32>)"
    ),
    "reduce_precision": (
        "reduce_precision <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>"
        " : (tensor<4xf32>) -> tensor<4xf32>"
    ),
    "reduce_scatter": (
        f"reduce_scatter <{{scatter_dimension = 1 : i64, {_CHANNEL}, {_GROUPS},"
        f" use_global_device_ids}}> {_ADD} : (tensor<2x4xf32>) -> tensor<2x2xf32>"
    ),
    "reduce_window": (
        f"reduce_window <{{{_WINDOW}, base_dilations = array<i64: 1, 1>,"
        " window_dilations = array<i64: 1, 2>,"
        " padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}>"
        f" {_ADD} : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x2xf32>"
    ),
    "reduce_window two": (
        f"reduce_window <{{{_WINDOW}}}>"
        " ({^bb0(%x: tensor<f32>, %y: tensor<i32>, %z: tensor<f32>, %w: tensor<i32>):"
        ' "stablehlo.return"(%x, %w) : (tensor<f32>, tensor<i32>) -> ()})'
        " : (tensor<4x4xf32>, tensor<4x4xi32>, tensor<f32>, tensor<i32>)"
        " -> (tensor<2x3xf32>, tensor<2x3xi32>)"
    ),
    "replica_id": "replica_id : () -> tensor<ui32>",
    "reshape": "reshape : (tensor<2x3xf32>) -> tensor<3x2xf32>",
    "reshape per axis": f"reshape : (tensor<2x4x{_QA}>) -> tensor<2x2x2x{_QA}>",
    "reverse": "reverse <{dimensions = array<i64: 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    "rng": (
        "rng <{rng_distribution = #stablehlo<rng_distribution NORMAL>}>"
        " : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32> where 2 = dense<[2, 3]>"
    ),
    "rng_bit_generator": (
        "rng_bit_generator <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}>"
        " : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)"
    ),
    "scatter": (
        f"scatter <{{{_SCATTER}}}> {_ADD}"
        " : (tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>) -> tensor<5x4x3xf32>"
    ),
    "scatter two": (
        f"scatter <{{{_SCATTER}}}>"
        " ({^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>):"
        ' "stablehlo.return"(%x, %w) : (tensor<f32>, tensor<f32>) -> ()})'
        " : (tensor<5x4x3xf32>, tensor<5x4x3xf32>, tensor<5x2x2xi32>, tensor<5x2x3xf32>,"
        " tensor<5x2x3xf32>) -> (tensor<5x4x3xf32>, tensor<5x4x3xf32>)"
    ),
    "select": "select : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
    "select_and_scatter": (
        f"select_and_scatter <{{{_WINDOW}, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}}>"
        f" ({_GREATER[1:-1]}, {_ADD[1:-1]})"
        " : (tensor<4x4xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<4x4xf32>"
    ),
    "send": (
        "send <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,"
        " is_host_transfer = true}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token"
    ),
    "set_dimension_size": (
        "set_dimension_size <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>)"
        " -> tensor<?xf32, #stablehlo.bounds<4>>"
    ),
    "slice": (
        "slice <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 8, 4>,"
        " strides = array<i64: 3, 2>}> : (tensor<8x4xf32>) -> tensor<3x2xf32>"
    ),
    "sort": f"sort <{{dimension = 1 : i64}}> {_GREATER} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    "sort two": (
        "sort <{dimension = 1 : i64}>"
        " ({^bb0(%x: tensor<f32>, %y: tensor<f32>, %v: tensor<i1>, %w: tensor<i1>):"
        ' "stablehlo.return"(%v) : (tensor<i1>) -> ()})'
        " : (tensor<2x3xf32>, tensor<2x3xi1>) -> (tensor<2x3xf32>, tensor<2x3xi1>)"
    ),
    "torch_index_select": (
        "torch_index_select <{dim = 0 : i64, batch_dims = 0 : i64}>"
        " : (tensor<5x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>"
    ),
    "transpose": (
        "transpose <{permutation = array<i64: 2, 0, 1>}> : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>"
    ),
    "transpose per axis": (
        f"transpose <{{permutation = array<i64: 1, 0>}}> : (tensor<2x3x{_QA}>) -> tensor<3x2x{_QB}>"
    ),
    "triangular_solve": (
        "triangular_solve <{left_side = true, lower = true, unit_diagonal = false,"
        " transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>"
        " : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>"
    ),
    "tuple": "tuple : (tensor<2xf32>, tensor<3xi32>) -> tuple<tensor<2xf32>, tensor<3xi32>>",
    "uniform_dequantize": f"uniform_dequantize : (tensor<4x{_Q}>) -> tensor<4xf32>",
    "uniform_quantize": f"uniform_quantize : (tensor<4xf32>) -> tensor<4x{_Q}>",
    "while": f"while ({_COND}, {_BODY}) : (tensor<i32>) -> tensor<i32>",
    **{
        f"chlo.{n}": f"chlo.{n} : (tensor<2x{_chlo_element(n)}>) -> tensor<2x{_chlo_element(n)}>"
        for n in CHLO_FLOAT
    },
    **{
        f"chlo.{n}": (
            f"chlo.{n} : (tensor<2x{_chlo_element(n)}>, tensor<2x{_chlo_element(n)}>)"
            f" -> tensor<2x{_chlo_element(n)}>"
        )
        for n in CHLO_BINARY
    },
    **{f"chlo.broadcast_{n}": _chlo_broadcast(n) for n in CHLO_BROADCAST},
    **{
        f"chlo.{n}": f"chlo.{n} : (tensor<2xf32>) -> tensor<2xi1>"
        for n in ("is_inf", "is_neg_inf", "is_pos_inf")
    },
    "chlo.broadcast_select": (
        "chlo.broadcast_select : (tensor<i1>, tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>"
    ),
    "chlo.constant": "chlo.constant <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>",
    "chlo.constant_like": (
        "chlo.constant_like <{value = 1.0 : f32}> : (tensor<2xf32>) -> tensor<2xf32>"
    ),
    "chlo.ragged_dot": (
        "chlo.ragged_dot <{ragged_dot_dimension_numbers = #chlo.ragged_dot<"
        "lhs_batching_dimensions = [], rhs_batching_dimensions = [],"
        " lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],"
        " lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>"
        " : (tensor<6x4xf32>, tensor<3x4x5xf32>, tensor<3xi64>) -> tensor<6x5xf32>"
    ),
    "chlo.top_k": (
        "chlo.top_k <{k = 2 : i64}> : (tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>)"
    ),
}
"""Sound programs by the op, or what they are about."""

VALID.update(
    {
        "sharded": (
            'negate {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"z":(1)4, ?}p1],'
            ' replicated={"y"}>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>'
        ),
        "sharded onto one": (
            "negate {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}"
            " : (tensor<8x8xf32>) -> tensor<8x8xf32>"
        ),
        "sdy.manual_computation": (
            "sdy.manual_computation <{in_shardings = #sdy.sharding_per_value<[<@mesh,"
            ' [{"x", "y"}, {}]>]>, manual_axes = #sdy<manual_axes{"x"}>,'
            ' out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}>'
            ' ({^bb0(%x: tensor<4x8xf32>): "sdy.return"(%x) : (tensor<4x8xf32>) -> ()})'
            " : (tensor<8x8xf32>) -> tensor<8x8xf32>"
        ),
        "sdy.named_computation": (
            'sdy.named_computation <{name = "f"}>'
            ' ({^bb0(%x: tensor<8xf32>): "sdy.return"(%x) : (tensor<8xf32>) -> ()})'
            " : (tensor<8xf32>) -> tensor<8xf32>"
        ),
        "sdy.data_flow_edge": (
            "sdy.data_flow_edge : (tensor<8xf32>) -> tensor<8xf32> where 0 = dense<1.0>"
        ),
        "sdy.propagation_barrier": (
            "sdy.propagation_barrier <{allowed_direction = 1 : i32}>"
            " : (tensor<8x8xf32>) -> tensor<8x8xf32>"
        ),
    }
)

VALID.update(
    {
        f"dynamic_conv {name.partition(' ')[2]}": (
            "dynamic_"
            + text.replace("convolution", "conv", 1)
            .replace(" padding = dense<0> : tensor<2x2xi64>,", "")
            .replace(") ->", ", tensor<2x2xi64>) ->")
            + " where 2 = dense<0>"
        )
        for name, text in VALID.items()
        if name.startswith("convolution ")
    }
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A sound program with exchanged pieces."""

    constraint: str
    base: str
    edits: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The broken program."""
        text = VALID[self.base]
        for old, new in self.edits:
            if old not in text:
                raise ValueError(f"{self.constraint}: '{old}' is not in {text}")
            text = text.replace(old, new, 1)
        return text


_TYPE = re.compile(r"[<(\[{]|[>)\]}]|->|,")


def _split(types: str) -> list[str]:
    """Types of a list at its commas."""
    parts: list[str] = []
    depth, begin = 0, 0
    for match in _TYPE.finditer(types):
        piece = match.group()
        if piece in "<([{":
            depth += 1
        elif piece in ">)]}":
            depth -= 1
        elif piece == "," and depth == 0:
            parts.append(types[begin : match.start()].strip())
            begin = match.end()
    last = types[begin:].strip()
    return [*parts, last] if last else parts


def _unwrapped(text: str) -> str:
    return text[1:-1] if text.startswith("(") else text


def program(text: str) -> str:
    """The module of an op's text."""
    text, *constants = text.split(" where ")
    name, _, rest = text.partition(" ")
    head, _, signature = f" {rest}".rpartition(" : (")
    inputs, _, outputs = signature.partition(") -> ")
    operands, results = _split(inputs), _split(_unwrapped(outputs))
    known = {int(index): value for index, _, value in (c.partition(" = ") for c in constants)}
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(operands) if i not in known)
    lines = [
        f'    %a{index} = "stablehlo.constant"() <{{value = {value} : {operands[index]}}}>'
        f" : () -> {operands[index]}"
        for index, value in known.items()
    ]
    full = name if "." in name else f"stablehlo.{name}"
    names = f"%r:{len(results)} = " if results else ""
    values = ", ".join(f"%a{index}" for index in range(len(operands)))
    lines.append(f'    {names}"{full}"({values}){head} : ({inputs}) -> ({", ".join(results)})')
    body = "\n".join(lines)
    callee = (
        '  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "callee"}> ({\n'
        '  ^bb0(%x: tensor<4xf32>):\n    "func.return"(%x) : (tensor<4xf32>) -> ()\n  }) : () -> ()\n'
        if name == "composite"
        else ""
    )
    kinds = ", ".join(kind for i, kind in enumerate(operands) if i not in known)
    block = f"  ^bb0({arguments}):\n" if arguments else ""
    mesh = (
        '  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4, "z"=8]>, sym_name = "mesh"}> : () -> ()\n'
        '  "sdy.mesh"() <{mesh = #sdy.mesh<[], device_ids=[1]>, sym_name = "one"}> : () -> ()\n'
    )
    callee += mesh if "#sdy" in text else ""
    return (
        f'"builtin.module"() ({{\n{callee}'
        f'  "func.func"() <{{function_type = ({kinds}) -> (), sym_name = "main"}}> ({{\n'
        f'{block}{body}\n    "func.return"() : () -> ()\n  }}) : () -> ()\n}}) : () -> ()\n'
    )
