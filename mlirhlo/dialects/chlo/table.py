"""The ops of the chlo dialect, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.stablehlo.rows import OpRow, row

_ARROW = " {operands}{dict} : {arrow}"
_FUNCTIONAL = " {operands}{dict} : {functional}"
_BROADCAST = "broadcast_dimensions:i64s?"


def _unary(name: str) -> OpRow:
    return row(f"chlo.{name}", "operand", "", _ARROW, traits="elementwise")


def _binary(name: str, operands: str) -> OpRow:
    return row(f"chlo.{name}", operands, "", _ARROW, traits="elementwise")


def _broadcast(name: str) -> OpRow:
    return row(f"chlo.broadcast_{name}", "lhs rhs", _BROADCAST, _FUNCTIONAL)


ROWS: Mapping[str, OpRow] = {
    r.name: r
    for r in sorted(
        (
            *map(_unary, ("_asin_acos_kernel", "acos", "acosh", "asin", "asinh", "atan", "atanh")),
            *map(_unary, ("bessel_i1e", "conj", "cosh", "digamma", "erf", "erf_inv", "erfc")),
            *map(_unary, ("is_inf", "is_neg_inf", "is_pos_inf", "lgamma", "sinh", "square", "tan")),
            _binary("mulhi", "lhs rhs"),
            _binary("next_after", "x y"),
            _binary("polygamma", "n x"),
            _binary("zeta", "x q"),
            *map(_broadcast, ("add", "and", "atan2", "complex", "divide", "maximum", "minimum")),
            *map(_broadcast, ("multiply", "next_after", "or", "polygamma", "power", "remainder")),
            *map(_broadcast, ("shift_left", "shift_right_arithmetic", "shift_right_logical")),
            *map(_broadcast, ("subtract", "xor", "zeta")),
            row(
                "chlo.broadcast_compare",
                "lhs rhs",
                f"{_BROADCAST} comparison_direction:ComparisonDirectionAttr"
                " compare_type:ComparisonTypeAttr?",
                _FUNCTIONAL,
            ),
            row("chlo.broadcast_select", "pred on_true on_false", "", _FUNCTIONAL),
            row(
                "chlo.constant",
                "",
                "value:elements",
                "{constant}",
                results="output",
                traits="constant",
            ),
            row("chlo.constant_like", "operand", "value:any"),
            row(
                "chlo.ragged_dot",
                "lhs rhs group_sizes",
                "ragged_dot_dimension_numbers:RaggedDotDimensionNumbersAttr"
                " precision_config:precisions?",
            ),
            row(
                "chlo.scan",
                "inputs* inits*",
                "dimension:i64 scan_dim_size:i64? is_reverse:bool=false is_associative:bool?",
                "{scan}",
                results="outputs* carries*",
                regions=1,
                traits="segments",
            ),
            row(
                "chlo.top_k",
                "operand",
                "k:i64",
                "({operands}, k = {k:i64}){dict} : {arrow}",
                results="values indices",
            ),
        ),
        key=lambda r: r.name,
    )
}
"""Every op of the chlo dialect by its name."""
