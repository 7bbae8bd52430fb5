"""The sums that matrix units leave in the registers of a warp: fragments of 16 rows and 8 columns.

A thread has two neighbours of a row, and two of the eighth row after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.kinds.contraction import Neighbours
from mlirhlo.lowering.gpu.launches import LaunchBuilder

ROWS, COLUMNS = 16, 8


def fragment_elements(
    b: LaunchBuilder,
    fragments: Sequence[Sequence[SSAValue]],
    across: int,
    first: tuple[Index, Index],
    is_narrow: bool,
) -> list[Neighbours]:
    """A thread's elements; `across` fragments stand beside each other.

    `first`: row and column of the first one. `is_narrow`: whether the results have 16 bits at most.
    """
    elements: list[Neighbours] = []
    lane = b.rem(b.thread_id(), 32)
    row = b.add(first[0], b.div(lane, 4))
    for n in range(0, len(fragments), 2):
        column = b.add(first[1], n % across * COLUMNS)
        for half in (0, 1):
            pairs = [fragment[2 * half :][:2] for fragment in fragments[n : n + 2]]
            at = b.add(row, n // across * ROWS + half * 8)
            neighbours = _four(b, lane, *pairs) if is_narrow else _twos(b, lane, *pairs)
            elements += [
                ((at, b.add(column, start)), [(v,) for v in values]) for start, values in neighbours
            ]
    return elements


def _twos(
    b: LaunchBuilder, lane: Index, first: Sequence[SSAValue], second: Sequence[SSAValue]
) -> list[tuple[Index, Sequence[SSAValue]]]:
    """A thread's elements of a row of two fragments beside each other, as first columns and numbers."""
    start = b.mul(b.rem(lane, 4), 2)
    return [(start, first), (b.add(start, COLUMNS), second)]


def _four(
    b: LaunchBuilder, lane: Index, first: Sequence[SSAValue], second: Sequence[SSAValue]
) -> list[tuple[Index, Sequence[SSAValue]]]:
    """As `_twos`, where a fragment has half a sector of a row: threads exchange pairs, each gets four neighbours."""
    parity = b.rem(lane, 2)
    is_odd = b.cmpi("eq", b.index(parity), b.index(1))
    sent = [b.select(is_odd, v, w) for v, w in zip(first, second, strict=True)]
    got = [b.warp_shuffle("xor", v, 1) for v in sent]
    values = [b.select(is_odd, v, w) for v, w in zip([*got, *second], [*first, *got], strict=True)]
    start = b.mul(b.add(b.div(b.rem(lane, 4), 2), b.mul(parity, 2)), 4)
    return [(start, values)]
