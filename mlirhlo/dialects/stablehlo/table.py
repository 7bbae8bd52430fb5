"""The ops of the stablehlo dialect, one row each: operands, properties, results, regions, syntax.

Operands are in order; property names are those of the dialect. Reader, printer and the op classes
are made from these rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.stablehlo.rows import OpRow, row

SAME = " {operands}{dict} : {same}"
"""One type for all where all are equal."""
FUNCTIONAL = " {operands}{dict} : {functional}"

_ACCURACY = (
    "result_accuracy:ResultAccuracyAttr="
    "#stablehlo.result_accuracy<mode=#stablehlo.result_accuracy_mode<DEFAULT>>"
)
_CONVOLUTION = (
    "window_strides:i64s? {}lhs_dilation:i64s? rhs_dilation:i64s? window_reversal:bools?"
    " dimension_numbers:ConvDimensionNumbersAttr feature_group_count:i64 batch_group_count:i64"
    " precision_config:precisions?"
)
_GROUPS = "replica_groups:any channel_handle:ChannelHandleAttr?"
_TRANSFER = (
    "channel_handle:ChannelHandleAttr is_host_transfer:bool=false source_target_pairs:elements64?"
)


def _unary(name: str, *, accuracy: bool = False) -> OpRow:
    attributes = _ACCURACY if accuracy else ""
    return row(f"stablehlo.{name}", "operand", attributes, SAME, traits="elementwise")


def _binary(name: str, *, commutative: bool = False) -> OpRow:
    traits = "elementwise commutative" if commutative else "elementwise"
    return row(f"stablehlo.{name}", "lhs rhs", "", SAME, traits=traits)


_ELEMENTWISE = (
    *map(_unary, ("abs", "ceil", "count_leading_zeros", "floor", "imag", "negate", "not")),
    *map(_unary, ("popcnt", "real", "round_nearest_afz", "round_nearest_even", "sign")),
    *(
        _unary(name, accuracy=True)
        for name in (
            *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one"),
            *("logistic", "rsqrt", "sine", "sqrt", "tan", "tanh"),
        )
    ),
    *(
        _binary(name, commutative=True)
        for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
    ),
    *map(_binary, ("atan2", "divide", "power", "remainder", "shift_left")),
    *map(_binary, ("shift_right_arithmetic", "shift_right_logical", "subtract")),
    row("stablehlo.clamp", "min operand max", "", SAME, traits="elementwise"),
    row(
        "stablehlo.compare",
        "lhs rhs",
        "comparison_direction:ComparisonDirectionAttr compare_type:ComparisonTypeAttr?",
        " {comparison_direction:word}, {operands}(?, {compare_type:word}){dict} : {functional}",
        traits="elementwise",
    ),
    row("stablehlo.complex", "lhs rhs", "", " {operands}{dict} : {complex}", traits="elementwise"),
    row("stablehlo.convert", "operand", "", SAME, traits="elementwise"),
    row("stablehlo.is_finite", "x", "", FUNCTIONAL, results="y", traits="elementwise"),
    row(
        "stablehlo.map",
        "inputs*",
        "dimensions:i64s",
        regions=1,
    ),
    row(
        "stablehlo.reduce_precision",
        "operand",
        "exponent_bits:i32 mantissa_bits:i32",
        " {operands}, format = {exponent_bits+mantissa_bits:bits}{dict} : {same}",
        results="output",
        traits="elementwise",
    ),
    row(
        "stablehlo.select",
        "pred on_true on_false",
        "",
        " {operands}{dict} : {select}",
        traits="elementwise",
    ),
    row("stablehlo.uniform_dequantize", "operand", "", SAME, traits="elementwise"),
    row("stablehlo.uniform_quantize", "operand", "", SAME, traits="elementwise"),
)

_CREATION = (
    row(
        "stablehlo.constant",
        "",
        "value:elements",
        "{constant}",
        results="output",
        traits="moves constant",
    ),
    row(
        "stablehlo.dynamic_iota",
        "output_shape",
        "iota_dimension:i64",
        " {operands}, dim = {iota_dimension:i64}{dict} : {functional}",
        traits="dynamic",
    ),
    row(
        "stablehlo.iota",
        "",
        "iota_dimension:i64",
        " dim = {iota_dimension:i64}{dict} : {results}",
        results="output",
    ),
    row("stablehlo.partition_id", "", "", "{dict} : {results}"),
    row("stablehlo.replica_id", "", "", "{dict} : {results}"),
    row(
        "stablehlo.rng",
        "a b shape",
        "rng_distribution:RngDistributionAttr",
        " {operands}, distribution = {rng_distribution:word}{dict} : {functional}",
        traits="side_effect",
    ),
    row(
        "stablehlo.rng_bit_generator",
        "initial_state",
        "rng_algorithm:RngAlgorithmAttr",
        " {operands}, algorithm = {rng_algorithm:word}{dict} : {functional}",
        results="output_state output",
    ),
)

_MOVEMENT = (
    row("stablehlo.bitcast_convert", "operand", "", FUNCTIONAL, traits="moves"),
    row(
        "stablehlo.broadcast",
        "operand",
        "broadcast_sizes:i64s",
        " {operands}, sizes = {broadcast_sizes:ints}{dict} : {functional}",
        traits="moves deprecated",
    ),
    row(
        "stablehlo.broadcast_in_dim",
        "operand",
        "broadcast_dimensions:i64s",
        " {operands}, dims = {broadcast_dimensions:ints}{dict} : {functional}",
        traits="moves",
    ),
    row(
        "stablehlo.concatenate",
        "inputs*",
        "dimension:i64",
        " {operands}, dim = {dimension:i64}{dict} : {functional}",
        traits="moves",
    ),
    row(
        "stablehlo.dynamic_broadcast_in_dim",
        "operand output_dimensions",
        "broadcast_dimensions:i64s known_expanding_dimensions:i64s?"
        " known_nonexpanding_dimensions:i64s?",
        " {operands}, dims = {broadcast_dimensions:ints}{dict} : {functional}",
        traits="moves dynamic",
    ),
    row(
        "stablehlo.dynamic_gather",
        "operand start_indices slice_sizes",
        "dimension_numbers:GatherDimensionNumbersAttr indices_are_sorted:bool=false",
        traits="moves dynamic",
    ),
    row(
        "stablehlo.dynamic_pad",
        "operand padding_value edge_padding_low edge_padding_high interior_padding",
        "",
        FUNCTIONAL,
        traits="moves dynamic",
    ),
    row(
        "stablehlo.dynamic_reshape", "operand output_shape", "", FUNCTIONAL, traits="moves dynamic"
    ),
    row(
        "stablehlo.dynamic_slice",
        "operand start_indices*",
        "slice_sizes:i64s",
        " {$operand}, {$start_indices}, sizes = {slice_sizes:ints}{dict} : {functional}",
        traits="moves",
    ),
    row(
        "stablehlo.dynamic_update_slice",
        "operand update start_indices*",
        "",
        FUNCTIONAL,
        traits="moves",
    ),
    row(
        "stablehlo.gather",
        "operand start_indices",
        "dimension_numbers:GatherDimensionNumbersAttr slice_sizes:i64s"
        " indices_are_sorted:bool=false",
        traits="moves",
    ),
    row(
        "stablehlo.get_dimension_size",
        "operand",
        "dimension:i64",
        " {operands}, dim = {dimension:i64}{dict} : {functional}",
        traits="moves dynamic",
    ),
    row(
        "stablehlo.pad",
        "operand padding_value",
        "edge_padding_low:i64s edge_padding_high:i64s interior_padding:i64s",
        " {operands}, low = {edge_padding_low:ints}, high = {edge_padding_high:ints}"
        ", interior = {interior_padding:ints}{dict} : {functional}",
        traits="moves",
    ),
    row(
        "stablehlo.real_dynamic_slice",
        "operand start_indices limit_indices strides",
        "",
        FUNCTIONAL,
        traits="moves dynamic",
    ),
    row("stablehlo.reshape", "operand", "", FUNCTIONAL, traits="moves"),
    row(
        "stablehlo.reverse",
        "operand",
        "dimensions:i64s",
        " {operands}, dims = {dimensions:ints}{dict} : {same}",
        traits="moves",
    ),
    row(
        "stablehlo.scatter",
        "inputs* scatter_indices updates*",
        "scatter_dimension_numbers:ScatterDimensionNumbersAttr indices_are_sorted:bool=false"
        " unique_indices:bool=false",
        results="results*",
        regions=1,
    ),
    row(
        "stablehlo.set_dimension_size",
        "operand size",
        "dimension:i64",
        " {operands}, dim = {dimension:i64}{dict} : {functional}",
        traits="moves dynamic",
    ),
    row(
        "stablehlo.slice",
        "operand",
        "start_indices:i64s limit_indices:i64s strides:i64s",
        " {operands} {start_indices+limit_indices+strides:ranges}{dict} : {functional}",
        traits="moves",
    ),
    row(
        "stablehlo.sort",
        "inputs*",
        "dimension:i64=-1 is_stable:bool=false",
        results="results*",
        regions=1,
    ),
    row(
        "stablehlo.torch_index_select",
        "operand index",
        "dim:i64 batch_dims:i64",
        traits="moves deprecated",
    ),
    row(
        "stablehlo.transpose",
        "operand",
        "permutation:i64s",
        " {operands}, dims = {permutation:ints}{dict} : {functional}",
        traits="moves",
    ),
)

_REDUCTION = (
    row(
        "stablehlo.reduce",
        "inputs* init_values*",
        "dimensions:i64s",
        "{reduce}",
        results="results*",
        regions=1,
    ),
    row(
        "stablehlo.reduce_window",
        "inputs* init_values*",
        "window_dimensions:i64s window_strides:i64s? base_dilations:i64s? window_dilations:i64s?"
        " padding:elements64?",
        results="results*",
        regions=1,
    ),
    row(
        "stablehlo.select_and_scatter",
        "operand source init_value",
        "window_dimensions:i64s? window_strides:i64s? padding:elements64?",
        regions=2,
    ),
    row(
        "stablehlo.batch_norm_grad",
        "operand scale mean variance grad_output",
        "epsilon:f32 feature_index:i64",
        results="grad_operand grad_scale grad_offset",
    ),
    row(
        "stablehlo.batch_norm_inference",
        "operand scale offset mean variance",
        "epsilon:f32 feature_index:i64",
    ),
    row(
        "stablehlo.batch_norm_training",
        "operand scale offset",
        "epsilon:f32 feature_index:i64",
        results="output batch_mean batch_var",
    ),
)

_LINEAR_ALGEBRA = (
    row(
        "stablehlo.cholesky",
        "a",
        "lower:bool=false",
        " {operands}(?, lower = {lower:bool}){dict} : {same}",
    ),
    row(
        "stablehlo.convolution",
        "lhs rhs",
        _CONVOLUTION.format("padding:elements64? "),
        "({operands}) dim_numbers = {dimension_numbers:conv}, window = {window:window}{dict}"
        " : {functional}",
    ),
    row(
        "stablehlo.dot",
        "lhs rhs",
        "precision_config:precisions?",
        " {operands}(?, precision = {precision_config:words}){dict} : {functional}",
        traits="deprecated",
    ),
    row(
        "stablehlo.dot_general",
        "lhs rhs",
        "dot_dimension_numbers:DotDimensionNumbersAttr precision_config:precisions?"
        " algorithm:DotAlgorithmAttr?",
        " {operands}, {dot_dimension_numbers:dot}(?, precision = {precision_config:words})"
        "(?, algorithm = {algorithm:short}){dict} : {functional}",
    ),
    row(
        "stablehlo.dynamic_conv",
        "lhs rhs padding",
        _CONVOLUTION.format(""),
        traits="dynamic",
    ),
    row(
        "stablehlo.einsum",
        "lhs rhs",
        "einsum_config:str",
        " {operands}, config = {einsum_config:str}{dict} : {functional}",
        traits="deprecated",
    ),
    row(
        "stablehlo.fft",
        "operand",
        "fft_type:FftTypeAttr fft_length:i64s",
        " {operands}, type = {fft_type:word}, length = {fft_length:ints}{dict} : {functional}",
    ),
    row(
        "stablehlo.triangular_solve",
        "a b",
        "left_side:bool lower:bool unit_diagonal:bool transpose_a:TransposeAttr",
    ),
    row(
        "stablehlo.unary_einsum",
        "operand",
        "einsum_config:str",
        " {operands}, config = {einsum_config:str}{dict} : {functional}",
        traits="deprecated",
    ),
)

_COLLECTIVES = (
    row(
        "stablehlo.all_gather",
        "operands*",
        f"all_gather_dim:i64 {_GROUPS} use_global_device_ids:unit?",
        results="results*",
        traits="moves collective",
    ),
    row(
        "stablehlo.all_reduce",
        "operands*",
        f"{_GROUPS} use_global_device_ids:unit?",
        results="results*",
        regions=1,
        traits="collective",
    ),
    row(
        "stablehlo.all_to_all",
        "operands*",
        f"split_dimension:i64 concat_dimension:i64 split_count:i64 {_GROUPS}",
        results="results*",
        traits="moves collective",
    ),
    row("stablehlo.async_done", "operand", "", results="results*", traits="moves side_effect"),
    row("stablehlo.async_start", "operands*", "", regions=1, traits="moves side_effect"),
    row("stablehlo.collective_broadcast", "operand", _GROUPS, traits="moves collective"),
    row(
        "stablehlo.collective_permute",
        "operand",
        "source_target_pairs:elements64 channel_handle:ChannelHandleAttr?",
        traits="moves collective",
    ),
    row(
        "stablehlo.cross-replica-sum",
        "operand",
        "replica_groups:elements64",
        traits="collective deprecated",
    ),
    row(
        "stablehlo.reduce_scatter",
        "operand",
        f"scatter_dimension:i64 {_GROUPS} use_global_device_ids:unit?",
        regions=1,
        traits="collective",
    ),
)

_CONTROL = (
    row("stablehlo.after_all", "inputs*", "", SAME),
    row("stablehlo.case", "index", "", results="results*", regions=-1),
    row(
        "stablehlo.composite",
        "inputs*",
        "name:str composite_attributes:dict={} decomposition:symbol version:i32=0",
        " {name:str} {operands}{dict} : {functional}",
        results="results*",
        regions=-1,
        traits="moves side_effect",
    ),
    row("stablehlo.create_token", "", "", "{dict} : {results}", results="output"),
    row(
        "stablehlo.custom_call",
        "inputs*",
        "call_target_name:str has_side_effect:bool=false backend_config:any? api_version:i32=1"
        " called_computations:symbols=[] operand_layouts:layouts? result_layouts:layouts?"
        " output_operand_aliases:list=[]",
        " {call_target_name:symbol}({operands}){dict} : {functional}",
        results="results*",
        traits="moves side_effect",
    ),
    row(
        "stablehlo.get_tuple_element",
        "operand",
        "index:i32",
        " {operands}[{index:i32}]{dict} : {functional}",
        traits="moves",
    ),
    row("stablehlo.if", "pred", "", results="results*", regions=2),
    row(
        "stablehlo.infeed",
        "token",
        "infeed_config:str!= layout:list?",
        results="results*",
        traits="moves side_effect",
    ),
    row(
        "stablehlo.optimization_barrier",
        "operand*",
        "",
        "{barrier}",
        results="result*",
        traits="moves",
    ),
    row("stablehlo.outfeed", "inputs* token", "outfeed_config:str!=", traits="moves side_effect"),
    row("stablehlo.recv", "token", _TRANSFER, results="results*", traits="moves side_effect"),
    row(
        "stablehlo.return",
        "results*",
        "",
        " {operands}{dict}{types?}",
        results="",
        traits="moves terminator",
    ),
    row("stablehlo.send", "inputs* token", _TRANSFER, traits="moves side_effect"),
    row("stablehlo.tuple", "val*", "", " {operands}{dict} : {tuple}", traits="moves"),
    row("stablehlo.while", "operand*", "", "{while}", results="results*", regions=2),
)

ROWS: Mapping[str, OpRow] = {
    r.name: r
    for r in sorted(
        (
            *_ELEMENTWISE,
            *_CREATION,
            *_MOVEMENT,
            *_REDUCTION,
            *_LINEAR_ALGEBRA,
            *_COLLECTIVES,
            *_CONTROL,
        ),
        key=lambda r: r.name,
    )
}
"""Every op of the stablehlo dialect by its name."""
