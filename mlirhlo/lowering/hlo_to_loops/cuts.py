"""Where concatenates and pads have their edges, along the dimensions of what is computed from them.

Between edges every element comes from one operand: a kernel that walks these regions one by one copies
blocks instead of choosing for each element.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops.merging import sizes_of

Place: TypeAlias = "tuple[tuple[int, int] | None, ...]"
"""For each dimension the dimension of the results that it runs along, and what is added to its index."""
Region: TypeAlias = "Sequence[tuple[int, int]]"
"""A range of each dimension."""

_MOST_REGIONS = 12
"""More are not worth the code, where edges cross."""
_MOST_PIECES = 64
"""More are not, along one dimension: choosing takes as much code as the regions have together."""


def regions(outputs: Sequence[SSAValue], operands: Sequence[SSAValue]) -> list[Region]:
    """The regions of results of one shape; all of it where there are too many."""
    sizes = sizes_of(outputs[0])
    cuts: list[set[int]] = [{0, size} for size in sizes]
    ends = set(operands)
    whole: Place = tuple((d, 0) for d in range(len(sizes)))
    seen: set[tuple[SSAValue, Place]] = set()
    stack = [(v, whole) for v in outputs]
    while stack:
        value, place = stack.pop()
        if (value, place) in seen or value in ends:
            continue
        seen.add((value, place))
        stack += _operands(value, place, cuts)
    ranges = [
        list(pairwise(sorted(c for c in found if 0 <= c <= size)))
        for found, size in zip(cuts, sizes, strict=True)
    ]
    crossed = sum(len(pieces) > 1 for pieces in ranges) > 1
    if prod(map(len, ranges)) > (_MOST_REGIONS if crossed else _MOST_PIECES):
        return [[(0, size) for size in sizes]]
    return [list(region) for region in product(*ranges)]


def _operands(value: SSAValue, place: Place, cuts: list[set[int]]) -> list[tuple[SSAValue, Place]]:
    """Operands of an instruction and their places; adds its edges."""
    op: Any = value.owner
    name = op.opcode.name

    def cut(d: int, index: int) -> None:
        if (along := place[d]) is not None:
            cuts[along[0]].add(index - along[1])

    def moved(d: int, by: int) -> tuple[int, int] | None:
        along = place[d]
        return None if along is None else (along[0], along[1] + by)

    if name == "broadcast":
        pairs = zip(cast("tuple[int, ...]", op.dimensions), sizes_of(op.operand), strict=True)
        return [(op.operand, tuple(place[d] if n != 1 else None for d, n in pairs))]
    if name == "transpose":
        source: list[tuple[int, int] | None] = [None] * len(place)
        for at, d in enumerate(cast("tuple[int, ...]", op.dimensions)):
            source[d] = place[at]
        return [(op.operand, tuple(source))]
    if name == "slice":
        parts = op.slices.dimensions
        return [
            (
                op.operand,
                tuple(moved(d, p.start) if p.stride == 1 else None for d, p in enumerate(parts)),
            )
        ]
    if name == "concatenate":
        (along,) = cast("tuple[int, ...]", op.dimensions)
        found: list[tuple[SSAValue, Place]] = []
        start = 0
        for operand in op.inputs:
            cut(along, start)
            found.append((operand, (*place[:along], moved(along, -start), *place[along + 1 :])))
            start += sizes_of(operand)[along]
        return found
    if name == "pad":
        inner: list[tuple[int, int] | None] = []
        edges = zip(op.padding.dimensions, sizes_of(op.operand), strict=True)
        for d, (edge, size) in enumerate(edges):
            if edge.interior:
                inner.append(None)
                continue
            cut(d, edge.low)
            cut(d, edge.low + size)
            inner.append(moved(d, -edge.low))
        return [(op.operand, tuple(inner))]
    if op.opcode.elementwise or name == "copy":
        return [(v, place if sizes_of(v) else ()) for v in op.inputs]
    return [(v, (None,) * len(sizes_of(v))) for v in op.inputs]
