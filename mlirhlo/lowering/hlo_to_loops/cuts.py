"""Regions of results between the edges of the concatenates and pads that they are computed from.

Between edges every element comes from one operand: a kernel that walks these regions one by one copies
blocks instead of choosing for each element.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops.merging import sizes_of
from mlirhlo.rewrites.fusion.edges import MOST_REGIONS, Edges

Range: TypeAlias = "tuple[int, int]"
Region: TypeAlias = "Sequence[Range]"
"""A range of each dimension."""

_MOST_PIECES = 64
"""More are not, along one dimension: choosing takes as much code as the regions have together."""


def regions(
    outputs: Sequence[SSAValue], operands: Sequence[SSAValue], lanes: int, along: int = -1
) -> list[Region]:
    """The regions of results of one shape, vectors of which go along one dimension.

    Where there are too many, edges of other dimensions are left to tests, which are the same for all lanes
    of a vector; all of it is one region where there are too many still.
    """
    sizes = sizes_of(outputs[0])
    cuts = Edges.of(outputs, set(operands)).cuts
    ranges = [
        list(pairwise(sorted(c for c in found if 0 <= c <= size)))
        for found, size in zip(cuts, sizes, strict=True)
    ]
    if ranges:
        ranges[along] = _whole_vectors(ranges[along], lanes)
    if not _are_few(ranges):
        pieces = ranges[along]
        ranges = [[(0, size)] for size in sizes]
        if len(pieces) <= _MOST_PIECES:
            ranges[along] = pieces
    return [list(region) for region in product(*ranges)]


def _are_few(ranges: Sequence[Sequence[Range]]) -> bool:
    crossed = sum(len(pieces) > 1 for pieces in ranges) > 1
    return prod(map(len, ranges)) <= (MOST_REGIONS if crossed else _MOST_PIECES)


def _whole_vectors(pieces: list[Range], lanes: int) -> list[Range]:
    """The first and the last piece take a vector where they are shorter and their neighbour is long."""
    if len(pieces) < 2:
        return pieces
    (low, first), *_ = pieces
    *_, (last, high) = pieces
    if first - low < lanes <= (pieces[1][1] - first) // 2:
        pieces = [(low, low + lanes), (low + lanes, pieces[1][1]), *pieces[2:]]
    if high - last < lanes <= (last - pieces[-2][0]) // 2:
        pieces = [*pieces[:-2], (pieces[-2][0], high - lanes), (high - lanes, high)]
    return pieces
