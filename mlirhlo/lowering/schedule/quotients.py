"""Which quotients of a kernel may be approximate: those with an operand that is rounded already.

The exponential of a float other than 0 is no float, and so it is with logarithms, sines and the like (Lindemann and
Weierstrass): what a kernel computes of one, it computes of a rounded number, whatever its inputs are. An error of two
units in the last place of such a quotient is of the kind that its operands have; roots, powers and sums of inputs may
be exact, so their quotients are rounded as IEEE says.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.table import OPCODES, opcodes
from mlirhlo.dialects.structured import AssembleOp, ContractOp, FoldOp, GatherOp, KernelOp, MapOp
from mlirhlo.dialects.structured.base import ULP, yielded
from mlirhlo.lowering.schedule.attributes import element_of

_ULP = 2
"""Units in the last place that an approximate quotient may be off."""


class Origin(Enum):
    """What is known of a number."""

    EXACT = "may be exact"
    SPECIAL = "zero, infinite or NaN: quotients of these are the same, rounded or approximate"
    ROUNDED = "rounded, or special"


Origins = dict[SSAValue, Origin]

_TRANSCENDENTAL = opcodes(lambda row: row.transcendental and not row.is_root)
_ARITHMETIC = opcodes(
    lambda row: row.elementwise and row.arity == 2 and not (row.exact or row.transcendental)
)
"""Rounded if an operand is."""
_OF_ONE = opcodes(lambda row: row.arity == 1 and (row.exact or row.is_root)) | {"reduce-precision"}
"""Rounded if the operand is."""


def approximate_quotients(kernel: KernelOp) -> None:
    """Sets the error that the quotients of a kernel may have."""
    origins: Origins = {}
    for op in kernel.block.ops:
        found = Origin.EXACT
        match op:
            case ConstantOp():
                found = _constant(op)
            case MapOp():
                for result, origin in zip(op.outputs, _body(op, origins), strict=True):
                    origins[result] = origin
                continue
            case FoldOp():
                origins |= zip(op.outputs, _fold(op, origins), strict=True)
                continue
            case ContractOp():
                found = _computed(_body(op, origins))
            case AssembleOp():
                found = _chosen([_of(v, origins) for v in (*op.pieces, *filter(None, [op.fill]))])
            case GatherOp():
                found = _of(op.source, origins)
            case _:
                pass
        origins |= dict.fromkeys(op.results, found)


def _of(value: SSAValue, origins: Origins) -> Origin:
    return origins.get(value, Origin.EXACT)


def _constant(op: ConstantOp) -> Origin:
    import numpy as np

    if op.literal is None or not element_of(op.output).is_float:
        return Origin.EXACT
    numbers = op.literal.array.astype(np.float64)
    is_special = not np.isfinite(numbers[numbers != 0]).any()
    return Origin.SPECIAL if is_special else Origin.EXACT


def _computed(operands: Sequence[Origin]) -> Origin:
    if Origin.ROUNDED in operands:
        return Origin.ROUNDED
    return Origin.EXACT if Origin.EXACT in operands else Origin.SPECIAL


def _chosen(operands: Sequence[Origin]) -> Origin:
    return Origin.EXACT if Origin.EXACT in operands else _computed(operands)


def _body(op: MapOp | FoldOp | ContractOp, origins: Origins) -> list[Origin]:
    """Of what a body yields; its quotients are marked."""
    block = op.body.block
    inside: Origins = dict(zip(block.args, (_of(v, origins) for v in op.inputs), strict=True))
    _instructions(block, inside)
    for inner in block.ops:
        if not isinstance(inner, Instruction) or inner.opcode.name != "divide":
            continue
        element = element_of(inner.output)
        if element.is_float and element.bits <= 32:
            if Origin.ROUNDED in (inside[v] for v in inner.operands):
                inner.attributes[ULP] = IntegerAttr(_ULP, i64)
    return [inside[v] for v in yielded(op.body)]


def _fold(op: FoldOp, origins: Origins) -> Sequence[Origin]:
    """Of the states: what they are after one element, and stay after the next."""
    elements = _body(op, origins)[: len(op.outputs)]

    def after(state: Sequence[Origin]) -> Sequence[Origin]:
        inside: Origins = dict(zip(op.combiner.block.args, (*state, *elements), strict=True))
        _instructions(op.combiner.block, inside)
        return [inside[v] for v in yielded(op.combiner)]

    first = after([_of(v, origins) for v in op.inits])
    if after(first) != first or op.guarded is not None:
        return [Origin.EXACT] * len(first)
    return first


def _instructions(block: Block, inside: Origins) -> None:
    for op in block.ops:
        origin = Origin.EXACT
        if isinstance(op, ConstantOp):
            origin = _constant(op)
        elif isinstance(op, Instruction) and _holds_fractions(op.output):
            origin = _instruction(op.opcode.name, [inside[v] for v in op.operands])
        inside |= dict.fromkeys(op.results, origin)


def _holds_fractions(value: SSAValue) -> bool:
    element = element_of(value)
    return element.is_float or element.is_complex


def _instruction(opcode: str, operands: Sequence[Origin]) -> Origin:
    if opcode in _TRANSCENDENTAL:
        return Origin.ROUNDED
    if opcode in _ARITHMETIC:
        return _computed(operands)
    if opcode in _OF_ONE:
        return operands[0]
    row = OPCODES[opcode]
    return _chosen(operands[row.data]) if row.exact and row.data else Origin.EXACT
