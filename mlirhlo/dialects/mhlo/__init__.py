"""The ops of the mhlo dialect that front ends still mix into StableHLO, having no op of it.

StableHLO came of mhlo; most of its ops are StableHLO's by another name. What is here is what
StableHLO lacks, so that programs of TensorFlow's bridge are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Dialect

from mlirhlo.dialects.stablehlo.op_classes import make_classes
from mlirhlo.dialects.stablehlo.rows import OpRow, row

__all__ = ["MHLO", "OP_CLASSES", "ROWS"]

_SAME = " {operands}{dict} : {same}"
_FUNCTIONAL = " {operands}{dict} : {functional}"


def _unary(name: str) -> OpRow:
    return row(f"mhlo.{name}", "operand", "", _SAME, traits="elementwise")


ROWS: Mapping[str, OpRow] = {
    r.name: r
    for r in (
        *map(_unary, ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")),
        row("mhlo.add_dependency", "operand token", "", _FUNCTIONAL),
        row("mhlo.bitcast", "operand", "", _FUNCTIONAL),
        row("mhlo.copy", "operand", "cross_program_prefetch_index:i32?", _SAME),
        row("mhlo.stochastic_convert", "operand random", "", _FUNCTIONAL),
        row(
            "mhlo.topk",
            "operand",
            "k:i64 largest:bool=true",
            "({operands}, k = {k:i64}, largest = {largest:bool}){dict} : {arrow}",
            results="values indices",
        ),
    )
}

OP_CLASSES = make_classes(ROWS.values())
"""Every op class by its name."""

MHLO = Dialect("mhlo", list(OP_CLASSES.values()), [])
