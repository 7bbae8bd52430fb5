"""Where instructions read their operands, in terms of the dimensions that a kernel walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.dialects.structured import MapOp
from mlirhlo.dialects.structured.base import StructuredOp
from mlirhlo.lowering.hlo_to_loops.merging import sizes_of

Symbols: TypeAlias = "tuple[int, ...]"
"""A place: for each dimension the dimension of the whole it runs along, or one of those below."""
UNIT, OTHER = -1, -2
"""The only index of a dimension of one element; anything else."""

MAPPED = opcodes(
    lambda row: (
        (row.is_index_map and row.movement is not Movement.SLICE and row.moves)
        or row.name in ("get-tuple-element", "map")
    )
) - {"reverse"}
"""Instructions whose operands' places are known, besides element-wise ones."""


def operand_places(op: Any, place: Symbols) -> list[tuple[SSAValue, Symbols]]:
    """Where the operands of an instruction are read for its element at a place."""
    if isinstance(op, StructuredOp):
        return _structured_places(op, place)
    name = op.opcode.name
    if name == "broadcast":
        along = cast("tuple[int, ...]", op.dimensions)
        pairs = zip(along, sizes_of(op.operand), strict=True)
        return [(op.operand, tuple(place[d] if n != 1 else UNIT for d, n in pairs))]
    if name == "transpose":
        moved = [UNIT] * len(place)
        for at, d in enumerate(cast("tuple[int, ...]", op.dimensions)):
            moved[d] = place[at]
        return [(op.operand, tuple(moved))]
    if name == "reshape":
        return [(op.operand, _reshaped(op, place))]
    if op.opcode.elementwise or name in MAPPED:
        return [(v, place if sizes_of(v) else ()) for v in op.inputs]
    return [(v, (OTHER,) * len(sizes_of(v))) for v in op.inputs]


def _structured_places(op: StructuredOp, place: Symbols) -> list[tuple[SSAValue, Symbols]]:
    if not isinstance(op, MapOp):
        return [(v, (OTHER,) * len(sizes_of(v))) for v in op.operands]

    def symbol(expr: AffineExpr, size: int) -> int:
        if isinstance(expr, AffineDimExpr):
            return place[expr.position]
        return UNIT if size == 1 else OTHER

    return [
        (v, tuple(map(symbol, map_.results, sizes_of(v))))
        for v, map_ in zip(op.inputs, op.index_maps, strict=True)
    ]


def _reshaped(op: Any, place: Symbols) -> Symbols:
    """Through a reshape that adds or drops dimensions of one element."""
    before, after = sizes_of(op.operand), sizes_of(op.output)
    if [n for n in before if n != 1] != [n for n in after if n != 1]:
        return (OTHER,) * len(before)
    rest = iter([s for s, n in zip(place, after, strict=True) if n != 1])
    return tuple(UNIT if n == 1 else next(rest) for n in before)


def reads_of(
    outputs: Sequence[SSAValue], operands: Sequence[SSAValue]
) -> list[tuple[SSAValue, Symbols]]:
    """Every read of an operand, and its place."""
    ends = set(operands)
    whole = tuple(range(len(sizes_of(outputs[0]))))
    seen: set[tuple[SSAValue, Symbols]] = set()
    stack = [(v, whole) for v in outputs]
    reads: list[tuple[SSAValue, Symbols]] = []
    while stack:
        value, place = stack.pop()
        if (value, place) in seen:
            continue
        seen.add((value, place))
        if value in ends:
            reads.append((value, place))
        else:
            stack += operand_places(value.owner, place)
    return reads
