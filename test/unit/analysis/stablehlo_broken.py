"""One broken program for each numbered constraint of StableHLO and CHLO, and what MLIR lets pass."""

from __future__ import annotations

from unit.analysis.stablehlo_programs import (
    BINARY_FLOAT,
    BINARY_INT,
    CHLO_BINARY,
    CHLO_BROADCAST,
    CHLO_FLOAT,
    UNARY_FLOAT,
    UNARY_INT,
    Broken,
)

_Q = "!quant.uniform<i8:f32, 2.0>"


def _b(constraint: str, *edits: tuple[str, str], base: str | None = None) -> Broken:
    return Broken(constraint, base or constraint.rpartition("_")[0], edits)


def _result(*kinds: str) -> tuple[tuple[str, str], ...]:
    return ((f"-> {kinds[0]}", f"-> {kinds[1]}"),)


_UNARY = tuple(
    _b(f"{name}_c1", *_result(f"tensor<2x3x{element}>", f"tensor<3x2x{element}>"))
    for names, element in ((UNARY_FLOAT, "f32"), (UNARY_INT, "i32"))
    for name in names
)
_BINARY = tuple(
    _b(f"{name}_c1", (f"(tensor<2x3x{element}>, tensor<2x3", f"(tensor<2x3x{element}>, tensor<2x4"))
    for names, element in ((BINARY_FLOAT, "f32"), (BINARY_INT, "i32"))
    for name in names
)
_CHLO = (
    *(
        _b(f"chlo.{name}_c1", ("-> tensor<2x", "-> tensor<3x"))
        for name in (*CHLO_FLOAT, "is_inf", "is_neg_inf", "is_pos_inf")
    ),
    *(_b(f"chlo.{name}_c1", (", tensor<2x", ", tensor<3x")) for name in CHLO_BINARY),
    *(
        broken
        for name in CHLO_BROADCAST
        for broken in (
            _b(
                f"chlo.broadcast_{name}_c1",
                (", tensor<3xi32", ", tensor<3xui32")
                if name in ("and", "or", "xor")
                else (", tensor<3xf32", ", tensor<3xf64"),
            ),
            _b(f"chlo.broadcast_{name}_c2", ("array<i64: 1>", "array<i64: 2>")),
            _b(f"chlo.broadcast_{name}_c3", (", tensor<3x", ", tensor<2x")),
        )
    ),
    _b("chlo.broadcast_select_c1", ("tensor<3xf32>", "tensor<3xi32>")),
    _b("chlo.broadcast_select_c2", ("tensor<2x1xf32>", "tensor<2x2xf32>")),
    _b("chlo.constant_c1", *_result("tensor<2xf32>", "tensor<3xf32>")),
    _b("chlo.constant_like_c1", *_result("tensor<2xf32>", "tensor<3xf32>")),
    _b("chlo.top_k_c1", ("(tensor<3x8xf32>)", "(tensor<f32>)")),
    _b("chlo.top_k_c2", ("k = 2", "k = 9")),
    _b("chlo.top_k_c3", *_result("(tensor<3x2xf32>", "(tensor<3x3xf32>")),
    _b("chlo.ragged_dot_c1", ("tensor<3x4x5xf32>", "tensor<3x6x5xf32>")),
    _b("chlo.ragged_dot_c4", ("tensor<3xi64>", "tensor<2xi64>")),
    _b("chlo.ragged_dot_c2", ("lhs_ragged_dimensions = [0]", "lhs_ragged_dimensions = [0, 1]")),
    _b(
        "chlo.ragged_dot_c3",
        ("lhs_contracting_dimensions = [1]", "lhs_contracting_dimensions = [2]"),
    ),
)
_ELEMENTWISE = (
    _b("abs_c1", *_result("tensor<2x3xf32>", "tensor<3x2xf32>")),
    _b("abs_c2", *_result("tensor<2x3xf32>", "tensor<2x3xf64>")),
    _b("add_c1", ("(tensor<2x3xf32>, tensor<2x3", "(tensor<2x3xf32>, tensor<2x4")),
    _b("add_c2", (f", tensor<2x2x{_Q}>", ", tensor<2x2xf32>"), base="add quantized"),
    _b("add_c3", ("!quant.uniform<i8:f32", "!quant.uniform<i16:f32"), base="add quantized"),
    _b("add_c4", ("!quant.uniform<i8:f32", "!quant.uniform<i8:f16"), base="add quantized"),
    _b(
        "add_c5",
        ("-> tensor<2x2x!quant.uniform<i8:f32:0, {2.0, 3.0}>>", f"-> tensor<2x2x{_Q}>"),
        base="add per axis",
    ),
    _b(
        "add_c6",
        ("(tensor<2x2x!quant.uniform<i8:f32:0", "(tensor<2x2x!quant.uniform<i8:f32:1"),
        base="add per axis",
    ),
    _b(
        "add_c7",
        (", tensor<2x2x!quant.uniform<i8:f32:0", ", tensor<2x2x!quant.uniform<i8:f32:1"),
        base="add per axis",
    ),
    _b("clamp_c1", ("(tensor<f32>", "(tensor<3xf32>")),
    _b("clamp_c2", (", tensor<4xf32>) ->", ", tensor<3xf32>) ->")),
    _b("clamp_c3", ("(tensor<f32>", "(tensor<f64>")),
    _b("clamp_c4", *_result("tensor<4xf32>", "tensor<3xf32>")),
    _b("compare_c1", (", tensor<4xf32>)", ", tensor<4xf64>)")),
    _b("compare_c2", *_result("tensor<4xi1>", "tensor<3xi1>")),
    _b("compare_c3", ("comparison_type FLOAT", "comparison_type SIGNED")),
    _b("complex_c1", (", tensor<4xf32>)", ", tensor<4xf64>)")),
    _b("complex_c2", *_result("tensor<4xcomplex", "tensor<3xcomplex")),
    _b("complex_c3", ("complex<f32>>", "complex<f64>>")),
    _b("convert_c1", *_result("tensor<4xi8>", "tensor<3xi8>")),
    _b("imag_c1", *_result("tensor<4xf32>", "tensor<3xf32>")),
    _b("imag_c2", *_result("tensor<4xf32>", "tensor<4xf64>")),
    _b("is_finite_c1", *_result("tensor<4xi1>", "tensor<3xi1>")),
    _b("real_c1", *_result("tensor<4xf32>", "tensor<3xf32>")),
    _b("real_c2", *_result("tensor<4xf32>", "tensor<4xf64>")),
    _b("reduce_precision_c1", *_result("tensor<4xf32>", "tensor<3xf32>")),
    _b("reduce_precision_c2", ("exponent_bits = 5", "exponent_bits = 0")),
    _b("reduce_precision_c3", ("mantissa_bits = 10", "mantissa_bits = -1")),
    _b("select_c1", ("tensor<2xi1>", "tensor<3xi1>")),
    _b("select_c2", (", tensor<2xf32>)", ", tensor<2xi32>)")),
    _b("uniform_dequantize_c1", *_result("tensor<4xf32>", "tensor<3xf32>")),
    _b("uniform_dequantize_c2", *_result("tensor<4xf32>", "tensor<4xf64>")),
    _b("uniform_quantize_c1", *_result("tensor<4x", "tensor<3x")),
    _b("uniform_quantize_c2", ("(tensor<4xf32>)", "(tensor<4xf64>)")),
    _b(
        "quantized_element_type_c1",
        ("-> tensor<4x!quant.uniform<i8:f32", "-> tensor<4x!quant.uniform<i16:f8E5M2"),
        base="uniform_quantize",
    ),
    _b(
        "quantized_element_type_c4",
        ("uniform<i8:f32", "uniform<i8<5:5>:f32"),
        base="uniform_quantize",
    ),
    _b("quantized_element_type_c6", ("2.0", "-2.0"), base="uniform_quantize"),
    _b("quantized_element_type_c7", ("2.0", "1.0e999"), base="uniform_quantize"),
    _b("quantized_element_type_c8", ("2.0", "2.0:300"), base="uniform_quantize"),
    _b(
        "quantized_element_type_c12",
        ("tensor<2x2x!quant.uniform<i8:f32:0", "tensor<2x2x!quant.uniform<i8:f32:2"),
        base="add per axis",
    ),
    _b("quantized_element_type_c13", ("(tensor<2x2x", "(tensor<3x2x"), base="add per axis"),
)
_MOVEMENT = (
    _b("bitcast_convert_c1", *_result("tensor<2x2xf32>", "tensor<2x3xf32>")),
    _b("bitcast_convert_c2", *_result("tensor<2x2xf32>", "tensor<2xcomplex<f32>>")),
    _b("broadcast_c1", ("array<i64: 4>", "array<i64: 5>")),
    _b("broadcast_in_dim_c1", *_result("tensor<3x4x5xf32>", "tensor<3x4x5xf64>")),
    _b("broadcast_in_dim_c2", ("array<i64: 2, 0>", "array<i64: 2>")),
    _b("broadcast_in_dim_c3", ("array<i64: 2, 0>", "array<i64: 3, 0>")),
    _b("broadcast_in_dim_c4", ("array<i64: 2, 0>", "array<i64: 0, 0>")),
    _b("broadcast_in_dim_c5", ("(tensor<1x3", "(tensor<2x3")),
    _b(
        "broadcast_in_dim_c6",
        ("-> tensor<2x2x!quant.uniform<i8:f32:0", "-> tensor<2x2x!quant.uniform<i8:f32:1"),
        base="broadcast_in_dim per axis",
    ),
    _b("concatenate_c1", ("tensor<2x4xf32>", "tensor<2x4xf64>")),
    _b("concatenate_c2", ("tensor<2x4xf32>", "tensor<3x4xf32>")),
    _b("concatenate_c3", ("(tensor<2x3xf32>, tensor<2x4xf32>)", "()")),
    _b("concatenate_c4", ("dimension = 1", "dimension = 2")),
    _b("concatenate_c5", *_result("tensor<2x7xf32>", "tensor<2x7xf64>")),
    _b("concatenate_c6", *_result("tensor<2x7xf32>", "tensor<2x6xf32>")),
    _b("constant_c1", *_result("tensor<2xf32>", "tensor<3xf32>")),
    _b("get_dimension_size_c1", ("dimension = 0", "dimension = 2")),
    _b("iota_c1", ("iota_dimension = 1", "iota_dimension = 2")),
    _b("pad_c1", ("tensor<f32>)", "tensor<f64>)")),
    _b("pad_c2", ("low = array<i64: 1, -1>", "low = array<i64: 1>")),
    _b("pad_c3", ("interior_padding = array<i64: 1, 0>", "interior_padding = array<i64: -1, 0>")),
    _b("pad_c4", ("array<i64: 1, -1>", "array<i64: 1, -9>")),
    _b("reshape_c1", *_result("tensor<3x2xf32>", "tensor<3x2xf64>")),
    _b("reshape_c2", *_result("tensor<3x2xf32>", "tensor<3x3xf32>")),
    _b(
        "reshape_c3",
        ("-> tensor<2x2x2x!quant.uniform<i8:f32:0", "-> tensor<2x2x2x!quant.uniform<i8:f32:1"),
        base="reshape per axis",
    ),
    _b("reverse_c1", *_result("tensor<2x3xf32>", "tensor<3x2xf32>")),
    _b("reverse_c2", ("array<i64: 0>", "array<i64: 0, 0>")),
    _b("reverse_c3", ("array<i64: 0>", "array<i64: 2>")),
    _b("slice_c1", *_result("tensor<3x2xf32>", "tensor<3x2xf64>")),
    _b("slice_c2", ("start_indices = array<i64: 1, 0>", "start_indices = array<i64: 1>")),
    _b("slice_c3", ("array<i64: 8, 4>", "array<i64: 9, 4>")),
    _b("slice_c4", ("array<i64: 3, 2>", "array<i64: 0, 2>")),
    _b("slice_c5", *_result("tensor<3x2xf32>", "tensor<2x2xf32>")),
    _b("torch_index_select_c1", ("dim = 0 : i64, batch", "dim = 2 : i64, batch")),
    _b("transpose_c1", *_result("tensor<4x2x3xf32>", "tensor<4x2x3xf64>")),
    _b("transpose_c2", ("array<i64: 2, 0, 1>", "array<i64: 2, 0, 0>")),
    _b("transpose_c3", *_result("tensor<4x2x3xf32>", "tensor<2x4x3xf32>")),
    _b(
        "transpose_c4",
        ("f32:1,", "f32:0,"),
        ("tensor<3x2x", "tensor<?x2x"),
        base="transpose per axis",
    ),
)

_INDICES = "tensor<5x2x2xi32>"


def _numbers(op: str, **edits: tuple[str, str]) -> tuple[Broken, ...]:
    return tuple(_b(f"{op}_{number}", edit) for number, edit in edits.items())


def _gathers(op: str) -> tuple[Broken, ...]:
    return (
        *_numbers(
            op,
            c1=("offset_dims = [2]", "offset_dims = [2, 3]"),
            c2=("index_vector_dim = 2", "index_vector_dim = 4"),
            c3=("start_index_map = [2, 1]", "start_index_map = [2]"),
            c5=("offset_dims = [2]", "offset_dims = [3]"),
            c6=("collapsed_slice_dims = [1]", "collapsed_slice_dims = [0]"),
            c8=("collapsed_slice_dims = [1]", "collapsed_slice_dims = [3]"),
            c11=("operand_batching_dims = [0]", "operand_batching_dims = [3]"),
            c14=("start_indices_batching_dims = [0]", "start_indices_batching_dims = [3]"),
            c15=("start_indices_batching_dims = [0]", "start_indices_batching_dims = [2]"),
            c16=("start_indices_batching_dims = [0]", "start_indices_batching_dims = [0, 1]"),
            c17=(_INDICES, "tensor<6x2x2xi32>"),
            c18=("start_index_map = [2, 1]", "start_index_map = [0, 1]"),
            c19=("start_index_map = [2, 1]", "start_index_map = [3, 1]"),
            c22=("-> tensor<5x2x3xf32>", "-> tensor<5x2x4xf32>"),
            c23=("-> tensor<5x2x3xf32>", "-> tensor<5x2x3xf64>"),
        ),
        _b(
            f"{op}_c4",
            (
                "offset_dims = [2], collapsed_slice_dims = [1]",
                "offset_dims = [2, 1], collapsed_slice_dims = []",
            ),
        ),
        _b(
            f"{op}_c7",
            (
                "offset_dims = [2], collapsed_slice_dims = [1]",
                "offset_dims = [], collapsed_slice_dims = [2, 1]",
            ),
        ),
        _b(
            f"{op}_c10",
            (
                "collapsed_slice_dims = [1], operand_batching_dims = [0]",
                "collapsed_slice_dims = [], operand_batching_dims = [1, 0]",
            ),
        ),
        _b(
            f"{op}_c13",
            (
                (
                    "collapsed_slice_dims = [1], operand_batching_dims = [0],"
                    " start_indices_batching_dims = [0]"
                ),
                (
                    "collapsed_slice_dims = [], operand_batching_dims = [0, 1],"
                    " start_indices_batching_dims = [0, 0]"
                ),
            ),
        ),
    )


_INDEXING = (
    *_gathers("gather"),
    *_gathers("dynamic_gather"),
    _b("gather_c9", ("array<i64: 1, 1, 3>", "array<i64: 1, 2, 3>")),
    _b("gather_c12", ("array<i64: 1, 1, 3>", "array<i64: 2, 1, 3>")),
    _b("gather_c20", ("array<i64: 1, 1, 3>", "array<i64: 1, 1, 3, 1>")),
    _b("gather_c21", ("array<i64: 1, 1, 3>", "array<i64: 1, 1, 4>")),
    _b("dynamic_gather_c9", ("[1, 1, 3]", "[1, 2, 3]")),
    _b("dynamic_gather_c12", ("[1, 1, 3]", "[2, 1, 3]")),
    _b("dynamic_gather_c20", ("tensor<3xi64>", "tensor<4xi64>"), ("[1, 1, 3]", "[1, 1, 3, 1]")),
    _b("dynamic_gather_c21", ("[1, 1, 3]", "[1, 1, 4]")),
    _b("dynamic_slice_c1", *_result("tensor<2x1xf32>", "tensor<2x1xf64>")),
    _b("dynamic_slice_c2", ("array<i64: 2, 1>", "array<i64: 2>")),
    _b("dynamic_slice_c3", ("tensor<i32>)", "tensor<i64>)")),
    _b("dynamic_slice_c4", ("array<i64: 2, 1>", "array<i64: 5, 1>")),
    _b("dynamic_slice_c5", *_result("tensor<2x1xf32>", "tensor<2x2xf32>")),
    _b("dynamic_update_slice_c1", *_result("tensor<4x3xf32>", "tensor<3x4xf32>")),
    _b("dynamic_update_slice_c2", ("tensor<2x1xf32>", "tensor<2x1xf64>")),
    _b("dynamic_update_slice_c3", ("tensor<2x1xf32>", "tensor<2xf32>")),
    _b("dynamic_update_slice_c4", (", tensor<i32>)", ")")),
    _b("dynamic_update_slice_c5", ("tensor<i32>)", "tensor<i64>)")),
    _b("dynamic_update_slice_c6", ("tensor<2x1xf32>", "tensor<5x1xf32>")),
    _b("scatter_c1", (", tensor<5x4x3xf32>", ", tensor<5x4x4xf32>"), base="scatter two"),
    _b("scatter_c3", ("tensor<5x2x3xf32>) ->", "tensor<5x2x2xf32>) ->"), base="scatter two"),
    _b("scatter_c4", ("tensor<5x2x3xf32>", "tensor<5x2x4xf32>")),
    _b("scatter_c5", (", tensor<5x2x3xf32>)", ", tensor<5x2x3xf32>, tensor<5x2x3xf32>)")),
    _b("scatter_c6", ("tensor<5x2x3xf32>", "tensor<5x2x3xf64>")),
    *_numbers(
        "scatter",
        c2=("inserted_window_dims = [1]", "inserted_window_dims = []"),
        c8=("update_window_dims = [2]", "update_window_dims = [3]"),
        c9=("inserted_window_dims = [1]", "inserted_window_dims = [0]"),
        c11=("inserted_window_dims = [1]", "inserted_window_dims = [3]"),
        c13=("input_batching_dims = [0]", "input_batching_dims = [3]"),
        c15=("scatter_indices_batching_dims = [0]", "scatter_indices_batching_dims = [3]"),
        c16=("scatter_indices_batching_dims = [0]", "scatter_indices_batching_dims = [2]"),
        c17=("scatter_indices_batching_dims = [0]", "scatter_indices_batching_dims = [0, 1]"),
        c18=("(tensor<5x4x3xf32>", "(tensor<6x4x3xf32>"),
        c19=("scatter_dims_to_operand_dims = [2, 1]", "scatter_dims_to_operand_dims = [2]"),
        c20=("scatter_dims_to_operand_dims = [2, 1]", "scatter_dims_to_operand_dims = [0, 1]"),
        c21=("scatter_dims_to_operand_dims = [2, 1]", "scatter_dims_to_operand_dims = [3, 1]"),
        c22=("index_vector_dim = 2", "index_vector_dim = 4"),
        c24=("-> tensor<5x4x3xf32>", "-> tensor<5x4x4xf32>"),
        c25=("-> tensor<5x4x3xf32>", "-> tensor<5x4x3xf64>"),
    ),
    _b("scatter_c23", ("(%x: tensor<f32>, ", "("), ("(%x, %y)", "(%y, %y)")),
    _b(
        "scatter_c7",
        (
            "update_window_dims = [2], inserted_window_dims = [1]",
            "update_window_dims = [2, 1], inserted_window_dims = []",
        ),
        ("tensor<5x2x3xf32>", "tensor<5x2x3x1xf32>"),
    ),
    _b(
        "scatter_c10",
        (
            "update_window_dims = [2], inserted_window_dims = [1]",
            "update_window_dims = [], inserted_window_dims = [2, 1]",
        ),
        ("tensor<5x2x3xf32>", "tensor<5x2xf32>"),
    ),
    _b(
        "scatter_c12",
        (
            "inserted_window_dims = [1], input_batching_dims = [0]",
            "inserted_window_dims = [], input_batching_dims = [1, 0]",
        ),
    ),
    _b(
        "scatter_c14",
        (
            "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0]",
            (
                "inserted_window_dims = [], input_batching_dims = [0, 1],"
                " scatter_indices_batching_dims = [0, 0]"
            ),
        ),
    ),
)
_BODY_TYPE = ("(%x: tensor<f32>, ", "(")
_REDUCTION = (
    _b("map_c1", *_result("tensor<2x3xf32>", "tensor<3x2xf32>")),
    _b("map_c2", ("(tensor<2x3xf32>, tensor<2x3xf32>) ->", "() ->")),
    _b("map_c3", ("array<i64: 0, 1>", "array<i64: 1, 0>")),
    _b("map_c4", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
    _b("reduce_c1", (", tensor<2x3xi32>", ", tensor<2x4xi32>"), base="reduce two"),
    _b("reduce_c2", ("tensor<2x3xf32>, tensor<f32>)", "tensor<2x3xf32>, tensor<i32>)")),
    _b("reduce_c3", (", tensor<f32>) -> tensor<2xf32>", ") -> tensor<2xf32>")),
    _b("reduce_c4", ("array<i64: 1>", "array<i64: 2>")),
    _b("reduce_c5", ("array<i64: 1>", "array<i64: 1, 1>")),
    _b("reduce_c6", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
    _b("reduce_c7", *_result("tensor<2xf32>", "tensor<3xf32>")),
    _b("reduce_c8", *_result("tensor<2xf32>", "tensor<2xf64>")),
    _b("reduce_window_c1", (", tensor<f32>) -> tensor<3", ") -> tensor<3")),
    _b(
        "reduce_window_c2",
        (
            "(tensor<4x4xf32>, tensor<f32>)",
            "(tensor<4x4xf32>, tensor<4x5xf32>, tensor<f32>, tensor<f32>)",
        ),
        ("-> tensor<3x2xf32>", "-> (tensor<3x2xf32>, tensor<3x2xf32>)"),
    ),
    _b("reduce_window_c3", ("tensor<f32>) -> tensor<3", "tensor<i32>) -> tensor<3")),
    _b(
        "reduce_window_c4",
        ("window_dimensions = array<i64: 2, 2>", "window_dimensions = array<i64: 2>"),
    ),
    _b(
        "reduce_window_c5",
        ("window_dimensions = array<i64: 2, 2>", "window_dimensions = array<i64: 2, 0>"),
    ),
    _b("reduce_window_c6", ("window_strides = array<i64: 2, 1>", "window_strides = array<i64: 2>")),
    _b(
        "reduce_window_c7",
        ("window_strides = array<i64: 2, 1>", "window_strides = array<i64: 2, 0>"),
    ),
    _b("reduce_window_c8", ("base_dilations = array<i64: 1, 1>", "base_dilations = array<i64: 1>")),
    _b(
        "reduce_window_c9",
        ("base_dilations = array<i64: 1, 1>", "base_dilations = array<i64: 1, 0>"),
    ),
    _b(
        "reduce_window_c10",
        ("window_dilations = array<i64: 1, 2>", "window_dilations = array<i64: 1>"),
    ),
    _b(
        "reduce_window_c11",
        ("window_dilations = array<i64: 1, 2>", "window_dilations = array<i64: 1, 0>"),
    ),
    _b(
        "reduce_window_c12",
        ("dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>", "dense<[[1, 1]]> : tensor<1x2xi64>"),
    ),
    _b("reduce_window_c13", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
    _b(
        "reduce_window_c14",
        *_result("(tensor<2x3xf32>", "(tensor<3x3xf32>"),
        base="reduce_window two",
    ),
    _b("reduce_window_c15", *_result("tensor<3x2xf32>", "tensor<2x2xf32>")),
    _b("reduce_window_c16", *_result("tensor<3x2xf32>", "tensor<3x2xf64>")),
    _b("rng_c1", ("tensor<f32>, tensor<2xi64>", "tensor<f64>, tensor<2xi64>")),
    _b(
        "rng_c2",
        ("(tensor<f32>, tensor<f32>", "(tensor<i32>, tensor<i32>"),
        ("-> tensor<2x3xf32>", "-> tensor<2x3xi32>"),
    ),
    _b("rng_c3", *_result("tensor<2x3xf32>", "tensor<3x3xf32>")),
    _b("rng_bit_generator_c1", *_result("(tensor<2xui64>", "(tensor<3xui64>")),
    _b("select_and_scatter_c1", ("tensor<3x3xf32>", "tensor<3x3xi32>")),
    _b("select_and_scatter_c2", ("tensor<3x3xf32>", "tensor<3x4xf32>")),
    _b("select_and_scatter_c3", ("tensor<f32>) -> tensor<4", "tensor<i32>) -> tensor<4")),
    _b(
        "select_and_scatter_c4",
        ("window_dimensions = array<i64: 2, 2>", "window_dimensions = array<i64: 2>"),
    ),
    _b(
        "select_and_scatter_c5",
        ("window_dimensions = array<i64: 2, 2>", "window_dimensions = array<i64: 2, 0>"),
    ),
    _b(
        "select_and_scatter_c6",
        ("window_strides = array<i64: 2, 1>", "window_strides = array<i64: 2>"),
    ),
    _b(
        "select_and_scatter_c7",
        ("window_strides = array<i64: 2, 1>", "window_strides = array<i64: 2, 0>"),
    ),
    _b(
        "select_and_scatter_c8",
        ("dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>", "dense<[[1, 1]]> : tensor<1x2xi64>"),
    ),
    _b("select_and_scatter_c9", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
    _b(
        "select_and_scatter_c10",
        (
            "(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>",
            (
                '(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> %w = "stablehlo.convert"(%z)'
                " : (tensor<f32>) -> tensor<i32>"
            ),
        ),
        ("(%z) : (tensor<f32>) -> ()", "(%w) : (tensor<i32>) -> ()"),
    ),
    _b("select_and_scatter_c11", *_result("tensor<4x4xf32>", "tensor<4x5xf32>")),
    _b("select_and_scatter_c12", *_result("tensor<4x4xf32>", "tensor<4x4xf64>")),
    _b("sort_c1", ("(tensor<2x3xf32>) -> tensor<2x3xf32>", "() -> ()")),
    _b("sort_c2", *_result("tensor<2x3xf32>", "tensor<3x2xf32>")),
    _b("sort_c3", (", tensor<2x3xi1>) ->", ", tensor<2x4xi1>) ->"), base="sort two"),
    _b("sort_c4", ("dimension = 1", "dimension = 2")),
    _b("sort_c5", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
)
_FEATURES = "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>"
_NORM = tuple(
    broken
    for op in ("batch_norm_grad", "batch_norm_inference", "batch_norm_training")
    for broken in (
        _b(f"{op}_c1", ("feature_index = 1", "feature_index = 2")),
        _b(f"{op}_c2", ("(tensor<2x3xf32>, tensor<3xf32>", "(tensor<2x3xf32>, tensor<3xf64>")),
    )
)
_LINEAR = (
    *_NORM,
    _b("batch_norm_grad_c3", ("tensor<2x3xf32>) ->", "tensor<3x3xf32>) ->")),
    _b("batch_norm_grad_c4", (_FEATURES, "(tensor<2x3xf32>, tensor<3xf32>, tensor<4xf32>")),
    _b(
        "batch_norm_grad_c5",
        (
            "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>",
            "(tensor<2x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>",
        ),
    ),
    *(
        _b(
            f"batch_norm_inference_c{number}",
            (
                "tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>",
                ", ".join(f"tensor<{4 if number == at else 3}xf32>" for at in (3, 4, 5, 6)),
            ),
        )
        for number in (3, 4, 5, 6)
    ),
    _b("batch_norm_inference_c7", *_result("tensor<2x3xf32>", "tensor<3x3xf32>")),
    _b("batch_norm_training_c3", (_FEATURES, "(tensor<2x3xf32>, tensor<4xf32>, tensor<3xf32>")),
    _b("batch_norm_training_c4", (_FEATURES, "(tensor<2x3xf32>, tensor<3xf32>, tensor<4xf32>")),
    _b(
        "batch_norm_training_c5",
        *_result("(tensor<2x3xf32>, tensor<3xf32>", "(tensor<2x3xf32>, tensor<4xf32>"),
    ),
    _b(
        "batch_norm_training_c6",
        *_result(
            "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)",
            "(tensor<2x3xf32>, tensor<3xf32>, tensor<4xf32>)",
        ),
    ),
    _b("batch_norm_training_c7", *_result("(tensor<2x3xf32>", "(tensor<3x3xf32>")),
    _b("cholesky_c1", *_result("tensor<3x4x4xf32>", "tensor<4x4x4xf32>")),
    _b("cholesky_c2", ("(tensor<3x4x4xf32>)", "(tensor<4xf32>)")),
    _b("cholesky_c3", ("(tensor<3x4x4xf32>)", "(tensor<3x4x5xf32>)")),
    _b("dot_c1", ("(tensor<2x3xf32>", "(tensor<1x2x3xf32>")),
    _b("dot_c2", ("(tensor<2x3xf32>", "(tensor<2x4xf32>")),
    _b(
        "dot_c3",
        (
            "dot :",
            (
                "dot <{precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>,"
                " #stablehlo<precision HIGH>]}> :"
            ),
        ),
    ),
    _b("dot_c4", *_result("tensor<2x4xf32>", "tensor<4x2xf32>")),
    *_numbers(
        "dot_general",
        c1=("lhs_batching_dimensions = [0]", "lhs_batching_dimensions = [0, 1]"),
        c2=("lhs_contracting_dimensions = [2]", "lhs_contracting_dimensions = [2, 1]"),
        c3=("lhs_contracting_dimensions = [2]", "lhs_contracting_dimensions = [0]"),
        c4=("rhs_contracting_dimensions = [1]", "rhs_contracting_dimensions = [0]"),
        c5=("lhs_batching_dimensions = [0]", "lhs_batching_dimensions = [3]"),
        c6=("lhs_contracting_dimensions = [2]", "lhs_contracting_dimensions = [3]"),
        c7=("rhs_batching_dimensions = [0]", "rhs_batching_dimensions = [3]"),
        c8=("rhs_contracting_dimensions = [1]", "rhs_contracting_dimensions = [3]"),
        c9=("(tensor<2x3x4xf32>", "(tensor<3x3x4xf32>"),
        c10=("(tensor<2x3x4xf32>", "(tensor<2x3x5xf32>"),
        c11=(
            "[#stablehlo<precision DEFAULT>,",
            "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>,",
        ),
        c12=("-> tensor<2x3x5xf32>", "-> tensor<2x5x3xf32>"),
        c13=("tensor<2x4x5xf32>", "tensor<2x4x5xi32>"),
    ),
    _b(
        "dot_general_c14",
        ("-> tensor<2x3x2x!quant.uniform<i8:f32, 2.0>>", "-> tensor<2x3x2xf32>"),
        base="dot_general quantized",
    ),
    _b(
        "dot_general_c15",
        ("{2.0, 3.0}", "{2.0:1, 3.0}"),
        base="dot_general per axis",
    ),
    _b(
        "dot_general_c16",
        (", tensor<2x2x2x!quant.uniform<i8:f32:2", ", tensor<2x2x2x!quant.uniform<i8:f32:1"),
        base="dot_general per axis",
    ),
    _b(
        "dot_general_c17",
        ("(tensor<2x3x2x!quant.uniform<i8", "(tensor<2x3x2x!quant.uniform<i16"),
        base="dot_general quantized",
    ),
    _b(
        "dot_general_c18",
        ("(tensor<2x3x2x!quant.uniform<i8:f32", "(tensor<2x3x2x!quant.uniform<i8:f16"),
        base="dot_general quantized",
    ),
    _b(
        "dot_general_c19",
        (
            "tensor<2x2x2x!quant.uniform<i8:f32:2, {2.0, 3.0}>",
            "tensor<2x2x2x!quant.uniform<i8:f32, 2.0>",
        ),
        base="dot_general per axis",
    ),
    _b("dot_general_c20", ("(tensor<2x3x2xf32>", "(tensor<2x3x2xf16>"), base="dot_general hybrid"),
    _b(
        "dot_general_c21",
        (
            "algorithm =",
            (
                "precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>],"
                " algorithm ="
            ),
        ),
        base="dot_general algorithm",
    ),
    _b(
        "dot_general_c22",
        ("lhs_component_count = 1", "lhs_component_count = 0"),
        base="dot_general algorithm",
    ),
    _b(
        "dot_general_c23",
        ("rhs_component_count = 1", "rhs_component_count = 0"),
        base="dot_general algorithm",
    ),
    _b(
        "dot_general_c24",
        ("num_primitive_operations = 1", "num_primitive_operations = 0"),
        base="dot_general algorithm",
    ),
    _b("fft_c1", ("array<i64: 8>", "array<i64: 2, 8, 8>")),
    _b("fft_c2", ("(tensor<2x8xf32>)", "(tensor<2x8xcomplex<f32>>)")),
    _b("fft_c3", ("array<i64: 8>", "array<i64>")),
    _b("fft_c4", ("array<i64: 8>", "array<i64: 7>")),
    _b("fft_c5", *_result("tensor<2x5xcomplex", "tensor<2x8xcomplex")),
    _b("triangular_solve_c1", ("tensor<2x3x5xf32>)", "tensor<2x3x5xf64>)")),
    _b("triangular_solve_c2", ("tensor<2x3x5xf32>)", "tensor<3x5xf32>)")),
    _b("triangular_solve_c3", ("tensor<2x3x5xf32>)", "tensor<2x4x5xf32>)")),
    _b("triangular_solve_c4", *_result("tensor<2x3x5xf32>", "tensor<2x3x6xf32>")),
)


def _convolutions(op: str) -> tuple[Broken, ...]:
    found = [
        _b(f"{op}_c1", ("tensor<3x3x4x6xf32>", "tensor<3x4x6xf32>")),
        *_numbers(
            op,
            c2=("window_strides = array<i64: 1, 1>", "window_strides = array<i64: 1>"),
            c3=("window_strides = array<i64: 1, 1>", "window_strides = array<i64: 1, 0>"),
            c5=("lhs_dilation = array<i64: 1, 1>", "lhs_dilation = array<i64: 1>"),
            c6=("lhs_dilation = array<i64: 1, 1>", "lhs_dilation = array<i64: 1, 0>"),
            c7=("rhs_dilation = array<i64: 1, 1>", "rhs_dilation = array<i64: 1>"),
            c8=("rhs_dilation = array<i64: 1, 1>", "rhs_dilation = array<i64: 1, 0>"),
            c9=("array<i1: false, false>", "array<i1: false>"),
            c10=("batch_group_count = 1", "batch_group_count = 3"),
            c11=("feature_group_count = 1", "feature_group_count = 3"),
            c14=("tensor<3x3x4x6xf32>", "tensor<3x3x3x6xf32>"),
            c21=("feature_group_count = 1", "feature_group_count = 0"),
            c22=("batch_group_count = 1", "batch_group_count = 0"),
            c24=("[#stablehlo<precision DEFAULT>,", "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>,"),
            c25=("x6x6x6xf32>", "x6x5x6xf32>") if op == "convolution" else ("?x?x6xf32>", "?x?x5xf32>"),
            c27=("tensor<3x3x4x6xf32>", "tensor<3x3x4x6xi32>"),
        ),
        _b(f"{op}_c23", ("feature_group_count = 1", "feature_group_count = 2"),
           ("batch_group_count = 1", "batch_group_count = 2")),
        _b(f"{op}_c16", ("feature_group_count = 1", "feature_group_count = 2"),
           ("tensor<3x3x4x6xf32>", "tensor<3x3x2x5xf32>")),
        _b(f"{op}_c15", ("batch_group_count = 1", "batch_group_count = 2"),
           ("tensor<3x3x4x6xf32>", "tensor<3x3x4x5xf32>")),
    ]  # fmt: skip
    return tuple(found)


def _special_convolutions(op: str) -> tuple[Broken, ...]:
    return (
        _b(
            f"{op}_c12",
            (
                "(tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>",
                "(tensor<2x8x8x4x1xf32>, tensor<3x3x4x6x1xf32>",
            ),
        ),
        _b(
            f"{op}_c13",
            ("input_feature_dimension = 3", "input_feature_dimension = 4"),
            base=f"{op} raw",
        ),
        _b(
            f"{op}_c17",
            ("kernel_spatial_dimensions = [0, 1]", "kernel_spatial_dimensions = [0]"),
            base=f"{op} raw",
        ),
        _b(
            f"{op}_c18",
            ("kernel_output_feature_dimension = 3", "kernel_output_feature_dimension = 2"),
            base=f"{op} raw",
        ),
        _b(
            f"{op}_c19",
            ("output_spatial_dimensions = [1, 2]", "output_spatial_dimensions = [1]"),
            base=f"{op} raw",
        ),
        _b(
            f"{op}_c20",
            (
                "output_feature_dimension = 3, output_spatial",
                "output_feature_dimension = 4, output_spatial",
            ),
            base=f"{op} raw",
        ),
        _b(
            f"{op}_c28",
            ("-> tensor<2x6x6x2x!quant.uniform<i8:f32, 2.0>>", "-> tensor<2x6x6x2xf32>"),
            base=f"{op} quantized",
        ),
        _b(
            f"{op}_c29",
            (
                ", tensor<3x3x4x2x!quant.uniform<i8:f32:3, {2.0, 3.0}>",
                ", tensor<3x3x4x2x!quant.uniform<i8:f32:0, {2.0, 3.0, 4.0}>",
            ),
            base=f"{op} per axis",
        ),
        _b(
            f"{op}_c30",
            (
                "-> tensor<2x6x6x2x!quant.uniform<i8:f32:3",
                "-> tensor<2x6x6x2x!quant.uniform<i8:f32:0",
            ),
            base=f"{op} per axis",
        ),
        _b(
            f"{op}_c31",
            ("(tensor<2x8x8x4x!quant.uniform<i8", "(tensor<2x8x8x4x!quant.uniform<i16"),
            base=f"{op} quantized",
        ),
        _b(
            f"{op}_c32",
            ("(tensor<2x8x8x4x!quant.uniform<i8:f32", "(tensor<2x8x8x4x!quant.uniform<i8:f16"),
            base=f"{op} quantized",
        ),
        _b(
            f"{op}_c33",
            (
                ", tensor<3x3x4x2x!quant.uniform<i8:f32:3, {2.0, 3.0}>",
                ", tensor<3x3x4x2x!quant.uniform<i8:f32, 2.0>",
            ),
            base=f"{op} per axis",
        ),
        _b(f"{op}_c34", ("(tensor<2x8x8x4xf32>", "(tensor<2x8x8x4xf16>"), base=f"{op} hybrid"),
        _b(f"{op}_c26", ("-> tensor<2x6x6x6xf32>", "-> tensor<2x6x6xf32>"), base=f"{op} raw"),
    )


_CONVOLUTION = (
    *_convolutions("convolution"),
    *_convolutions("dynamic_conv"),
    *_special_convolutions("convolution"),
    *_special_convolutions("dynamic_conv"),
    _b(
        "convolution_c4",
        ("padding = dense<0> : tensor<2x2xi64>", "padding = dense<0> : tensor<3x2xi64>"),
    ),
    _b("dynamic_conv_c4", ("tensor<2x2xi64>", "tensor<3x2xi64>")),
)
_BRANCH_TYPE = "(%z) : (tensor<2xf32>) -> ()"
_CONTROL = (
    _b(
        "case_c1",
        (
            (
                'case ({%z = "stablehlo.constant"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>'
                ' "stablehlo.return"(%z) : (tensor<2xf32>) -> ()},'
                ' {%z = "stablehlo.constant"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>'
                ' "stablehlo.return"(%z) : (tensor<2xf32>) -> ()}) :'
            ),
            "case :",
        ),
    ),
    _b("case_c2", ("({%z", "({^bb0(%x: tensor<f32>): %z")),
    _b("case_c3", (_BRANCH_TYPE, "(%z, %z) : (tensor<2xf32>, tensor<2xf32>) -> ()")),
    _b("case_c4", (") : (tensor<i32>) -> tensor<2xf32>", ") : (tensor<i32>) -> tensor<3xf32>")),
    _b("if_c1", ("({%z", "({^bb0(%x: tensor<f32>): %z")),
    _b("if_c2", (_BRANCH_TYPE, "(%z, %z) : (tensor<2xf32>, tensor<2xf32>) -> ()")),
    _b("if_c3", (") : (tensor<i1>) -> tensor<2xf32>", ") : (tensor<i1>) -> tensor<3xf32>")),
    _b(
        "while_c1",
        (
            'tensor<i1> "stablehlo.return"(%z) : (tensor<i1>)',
            'tensor<i1> "stablehlo.return"(%x) : (tensor<i32>)',
        ),
    ),
    _b("while_c2", ("(%x) : (tensor<i32>) -> ()", "(%x, %x) : (tensor<i32>, tensor<i32>) -> ()")),
    _b("while_c3", (") : (tensor<i32>) -> tensor<i32>", ") : (tensor<i32>) -> tensor<i64>")),
    _b("optimization_barrier_c1", *_result("tensor<2xf32>", "tensor<3xf32>")),
    _b("composite_c1", ('"my.op"', '"op"')),
    _b("composite_c2", ("@callee", "@nothing")),
    _b("composite_c3", ("(tensor<4xf32>)", "(tensor<5xf32>)")),
    _b("composite_c4", *_result("tensor<4xf32>", "tensor<5xf32>")),
    _b("tuple_c1", ("-> tuple<tensor<2xf32>,", "-> tuple<tensor<3xf32>,")),
    _b("get_tuple_element_c1", ("index = 1", "index = 2")),
    _b("get_tuple_element_c2", ("-> tensor<3xi32>", "-> tensor<2xf32>")),
    _b("infeed_c1", ("-> (tensor<2xf32>, !stablehlo.token)", "-> ()")),
    _b("infeed_c2", ("-> (tensor<2xf32>,", "-> (!stablehlo.token,")),
    _b(
        "infeed_c3",
        ("!stablehlo.token)", "tensor<2xf32>)"),
        ("infeed : (tensor<2xf32>)", "infeed : (!stablehlo.token)"),
        ("-> (tensor<2xf32>, !stablehlo.token)", "-> (tensor<2xf32>, tensor<2xf32>)"),
    ),
    _b("recv_c1", ("type = 3", "type = 1")),
    _b("recv_c2", ("-> (tensor<2xf32>, !stablehlo.token)", "-> ()")),
    _b("recv_c3", ("-> (tensor<2xf32>,", "-> (!stablehlo.token,")),
    _b("recv_c4", ("-> (tensor<2xf32>, !stablehlo.token)", "-> (tensor<2xf32>, tensor<2xf32>)")),
    _b("send_c1", ("type = 2", "type = 1")),
)
_TWICE = ("dense<[[0, 1]]>", "dense<[[0, 0]]>")
_GAP = ("dense<[[0, 1]]>", "dense<[[0, 2]]>")
_NO_CHANNEL = (
    " channel_handle = #stablehlo.channel_handle<handle = 1,",
    " channel_handle = #stablehlo.channel_handle<handle = -1,",
)
_COLLECTIVES = (
    _b("all_gather_c1", ("all_gather_dim = 1", "all_gather_dim = 2")),
    _b("all_gather_c2", _TWICE),
    _b("all_gather_c4", _GAP),
    _b("all_gather_c5", _NO_CHANNEL),
    _b("all_gather_c6", *_result("tensor<2x6xf32>", "tensor<2x7xf32>")),
    _b("all_reduce_c1", _TWICE),
    _b("all_reduce_c3", _GAP),
    _b("all_reduce_c4", ("handle = 1,", "handle = 0,")),
    _b("all_reduce_c5", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
    _b("all_reduce_c6", *_result("tensor<2x3xf32>", "tensor<3x2xf32>")),
    _b("all_reduce_c7", *_result("tensor<2x3xf32>", "tensor<2x3xf64>")),
    _b("all_to_all_c1", ("split_dimension = 1", "split_dimension = 2")),
    _b("all_to_all_c2", ("tensor<2x4xf32>)", "tensor<2x5xf32>)")),
    _b("all_to_all_c3", ("concat_dimension = 0", "concat_dimension = 2")),
    _b("all_to_all_c4", ("split_count = 2", "split_count = 0")),
    _b("all_to_all_c5", _TWICE),
    _b("all_to_all_c7", _GAP),
    _b(
        "all_to_all_c8",
        ("dense<[[0, 1]]> : tensor<1x2xi64>", "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"),
    ),
    _b("all_to_all_c9", *_result("tensor<4x2xf32>", "tensor<2x4xf32>")),
    _b("collective_broadcast_c1", _TWICE),
    _b("collective_broadcast_c2", ("dense<[[0, 1]]>", "dense<[[0, -1]]>")),
    _b("collective_broadcast_c3", *_result("tensor<4xf32>", "tensor<5xf32>")),
    _b(
        "collective_permute_c1",
        ("dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>", "dense<[[0, 1, 2]]> : tensor<1x3xi64>"),
    ),
    _b("collective_permute_c2", ("[1, 2]", "[0, 2]")),
    _b("collective_permute_c3", ("[1, 2]", "[1, 1]")),
    _b("collective_permute_c4", ("[1, 2]", "[1, -2]")),
    _b("collective_permute_c5", *_result("tensor<4xf32>", "tensor<5xf32>")),
    _b("cross-replica-sum_c1", *_result("tensor<4xf32>", "tensor<5xf32>")),
    _b(
        "reduce_scatter_c1",
        ("dense<[[0, 1]]> : tensor<1x2xi64>", "dense<[[0, 1, 2]]> : tensor<1x3xi64>"),
        ("-> tensor<2x2xf32>", "-> tensor<2x1xf32>"),
    ),
    _b("reduce_scatter_c2", ("scatter_dimension = 1", "scatter_dimension = 2")),
    _b("reduce_scatter_c3", _TWICE),
    _b("reduce_scatter_c5", _GAP),
    _b("reduce_scatter_c6", ("handle = 1,", "handle = 0,")),
    _b("reduce_scatter_c7", _BODY_TYPE, ("(%x, %y)", "(%y, %y)")),
    _b("reduce_scatter_c8", *_result("tensor<2x2xf32>", "tensor<2x3xf32>")),
    _b("reduce_scatter_c9", *_result("tensor<2x2xf32>", "tensor<2x2xf64>")),
)
_DYNAMISM = (
    _b("dynamic_broadcast_in_dim_c1", *_result("tensor<?x3xf32>", "tensor<?x3xf64>")),
    _b(
        "dynamic_broadcast_in_dim_c2",
        ("broadcast_dimensions = array<i64: 0, 1>", "broadcast_dimensions = array<i64: 0>"),
    ),
    _b(
        "dynamic_broadcast_in_dim_c3",
        ("broadcast_dimensions = array<i64: 0, 1>", "broadcast_dimensions = array<i64: 0, 2>"),
    ),
    _b(
        "dynamic_broadcast_in_dim_c4",
        ("broadcast_dimensions = array<i64: 0, 1>", "broadcast_dimensions = array<i64: 1, 1>"),
    ),
    _b("dynamic_broadcast_in_dim_c5", *_result("tensor<?x3xf32>", "tensor<?x4xf32>")),
    _b(
        "dynamic_broadcast_in_dim_c6",
        ("-> tensor<2x2x!quant.uniform<i8:f32:0", "-> tensor<2x2x!quant.uniform<i8:f32:1"),
        base="dynamic_broadcast_in_dim per axis",
    ),
    _b("dynamic_broadcast_in_dim_c7", ("tensor<2xi64>", "tensor<3xi64>")),
    _b(
        "dynamic_broadcast_in_dim_c8",
        ("nonexpanding_dimensions = array<i64: 1>", "nonexpanding_dimensions = array<i64: 0>"),
    ),
    _b(
        "dynamic_broadcast_in_dim_c9",
        (
            "known_expanding_dimensions = array<i64: 0>",
            "known_expanding_dimensions = array<i64: 2>",
        ),
    ),
    _b(
        "dynamic_broadcast_in_dim_c10",
        ("nonexpanding_dimensions = array<i64: 1>", "nonexpanding_dimensions = array<i64: 2>"),
    ),
    _b("dynamic_iota_c1", ("iota_dimension = 1", "iota_dimension = 2")),
    _b("dynamic_iota_c2", ("tensor<2xi64>", "tensor<3xi64>")),
    _b("dynamic_pad_c1", ("tensor<f32>", "tensor<f64>")),
    _b("dynamic_pad_c2", ("tensor<f32>, tensor<1xi64>", "tensor<f32>, tensor<2xi64>")),
    _b("dynamic_pad_c3", ("4 = dense<1>", "4 = dense<-1>")),
    _b("dynamic_pad_c4", *_result("tensor<8xf32>", "tensor<7xf32>")),
    _b("dynamic_reshape_c1", *_result("tensor<2x3xf32>", "tensor<2x3xf64>")),
    _b("dynamic_reshape_c2", ("(tensor<6xf32>", "(tensor<7xf32>")),
    _b(
        "dynamic_reshape_c3",
        ("-> tensor<2x2x2x!quant.uniform<i8:f32:0", "-> tensor<2x2x2x!quant.uniform<i8:f32:1"),
        base="dynamic_reshape per axis",
    ),
    _b("dynamic_reshape_c4", *_result("tensor<2x3xf32>", "tensor<6xf32>")),
    _b("real_dynamic_slice_c1", ("(tensor<4xf32>, tensor<1xi64>", "(tensor<4xf32>, tensor<2xi64>")),
    _b("real_dynamic_slice_c2", *_result("tensor<?xf32>", "tensor<?x?xf32>")),
    _b("set_dimension_size_c1", ("tensor<i32>)", "tensor<1xi32>)")),
    _b("set_dimension_size_c2", ("dimension = 0", "dimension = 1")),
    _b("set_dimension_size_c3", *_result("tensor<?xf32, #stablehlo.bounds<4>>", "tensor<5xf32>")),
)

_BOUNDS = (
    _b("bounds_c1", ("bounds<4>", "bounds<4, ?>"), base="set_dimension_size"),
    _b("bounds_c2", ("tensor<?xf32, #", "tensor<3xf32, #"), base="set_dimension_size"),
)

_SHARDINGS = (
    _b("sdy.sharding_c1", ("@mesh", "@nothing"), base="sharded"),
    _b("sdy.sharding_c2", ('{"x"}, ', ""), base="sharded"),
    _b("sdy.sharding_c3", ('{"x"}', '{"q"}'), base="sharded"),
    _b("sdy.sharding_c4", ("(1)4", "(3)4"), base="sharded"),
    _b("sdy.sharding_c5", ('replicated={"y"}', 'replicated={"x"}'), base="sharded"),
    _b("sdy.sharding_c6", ('"z":(1)4', '"z":(1)2, "z":(2)2'), base="sharded"),
    _b("sdy.sharding_c7", ('{"y"}', '{"z":(4)2, "y"}'), base="sharded"),
    _b("sdy.sharding_c8", ('{"z":(1)4, ?}', "{}"), base="sharded"),
    _b("sdy.sharding_c9", ("@one, []", "@one, [{}, {}]"), base="sharded onto one"),
    _b("sdy.sharding_c10", ("<@one, []>", "<@one, []>, <@one, []>"), base="sharded onto one"),
    _b("sdy.manual_computation_c1", ("(%x) : (tensor<4x8xf32>) -> ()", "() : () -> ()")),
    _b("sdy.manual_computation_c2", ('manual_axes{"x"}', 'manual_axes{"q"}')),
    _b("sdy.manual_computation_c3", ('{"x", "y"}', '{"y", "x"}')),
    _b(
        "sdy.manual_computation_c4",
        ("tensor<4x8xf32>): ", "tensor<4x4xf32>): "),
        ("(tensor<4x8xf32>)", "(tensor<4x4xf32>)"),
    ),
    _b(
        "sdy.sharding_c11",
        ("-> tensor<8x8xf32>", "-> tensor<8x4xf32>"),
        base="sdy.propagation_barrier",
    ),
    _b("sdy.named_computation_c1", ("-> tensor<8xf32>", "-> tensor<4xf32>")),
    _b("sdy.propagation_barrier_c1", ("allowed_direction = 1", "allowed_direction = 3")),
)

BROKEN: tuple[Broken, ...] = (
    *_UNARY,
    *_BINARY,
    *_ELEMENTWISE,
    *_MOVEMENT,
    *_INDEXING,
    *_REDUCTION,
    *_LINEAR,
    *_CONVOLUTION,
    *_CONTROL,
    *_COLLECTIVES,
    *_DYNAMISM,
    *_CHLO,
    *_BOUNDS,
    *_SHARDINGS,
)

UNCHECKED = {
    "all_gather_c3": "how many replicas and partitions there are is not part of the program",
    "all_reduce_c2": "how many replicas and partitions there are is not part of the program",
    "all_to_all_c6": "how many replicas and partitions there are is not part of the program",
    "reduce_scatter_c4": "how many replicas and partitions there are is not part of the program",
}
"""Constraints that a program alone cannot break."""

_BROADCASTS = "checked by MLIR where the op is expanded, not before"

ACCEPTED_BY_MLIR = {
    "compare_c3": "MLIR does not look at compare_type",
    "torch_index_select_c1": "a deprecated op without checks",
    "scatter_c5": "MLIR splits operands without asking for a whole number of updates",
    "scatter_c6": "MLIR lets elements of updates be promoted to those of inputs",
    "dot_general_c13": "MLIR does not compare element types",
    "dynamic_conv_c25": "MLIR does not infer the result",
    "dynamic_conv_c26": "MLIR does not infer the result",
    "reduce_scatter_c1": "MLIR does not compare with the size of a group",
    "dynamic_broadcast_in_dim_c7": "MLIR looks at constant shapes only",
    "dynamic_iota_c2": "MLIR looks at constant shapes only",
    "real_dynamic_slice_c2": "MLIR does not compare with the result",
    "chlo.broadcast_select_c2": _BROADCASTS,
    **{
        f"chlo.broadcast_{name}_{number}": _BROADCASTS
        for name in CHLO_BROADCAST
        for number in ("c2", "c3")
    },
}
"""Broken programs that MLIR's verifier lets pass, and why; all are against the specification."""
