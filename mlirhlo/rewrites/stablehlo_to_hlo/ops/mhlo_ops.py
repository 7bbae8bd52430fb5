"""Ops of the mhlo dialect that are HLO instructions, which StableHLO has no ops for.

Its elementwise functions become CHLO's before (`wrapped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.mhlo import ROWS
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import boolean, integer, number
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, joined_shape, lowers, result_shape

_OPCODES: Mapping[str, str] = {
    name: opcode
    for name, row in ROWS.items()
    if (opcode := name.removeprefix("mhlo.").replace("_", "-")) in OPCODES
    and "elementwise" not in row.traits
    and len(row.results) == 1
}


@lowers(*_OPCODES)
def instruction(op: Operation, body: Body) -> Sequence[SSAValue]:
    """The instruction of that name."""
    return (body.emit(_OPCODES[op.name], body.inputs(op), result_shape(op)),)


@lowers("mhlo.topk")
def topk(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`topk`, of the largest elements or of the smallest."""
    largest = op.properties.get("largest")
    properties = {
        "k": integer(number(op, "k")),
        "largest": boolean(largest is None or bool(number(op, "largest"))),
    }
    value = body.emit("topk", body.inputs(op), joined_shape(op), properties)
    return body.split(value, 2)
