"""Tiles of ragged products: the terms that are in a group, or the rows of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.arith import MaxSIOp, MinSIOp
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.element_ops import factor_inputs
from mlirhlo.lowering.schedule.group_ranges import group_range_of

if TYPE_CHECKING:
    from mlirhlo.lowering.gpu.kinds.contraction import Block
    from mlirhlo.lowering.schedule.group_ranges import GroupRange

TILE_BYTES = 16
"""Of shared memory, for the tile that a thread has looked for."""

_FOUND = 1 << 30
"""What is left to count when a tile is known: more than there are tiles."""


def terms_of_groups(block: Block) -> tuple[Index, Index] | None:
    """The first term and the end of those that are not zeros, the first at a multiple of the tile's; None where all are
    needed, or the tile cannot tell."""
    groups, product, b = group_range_of(block.op), block.product, block.b
    if groups is None or product.terms != (groups.position,) or groups.group not in product.batch:
        return None
    start, end = _bounds(block, groups)
    return b.mul(b.div(start, block.depth), block.depth), b.minimum(end, block.terms)


def within(
    block: Block, terms: tuple[Index, Index], first: Index, count: Index
) -> tuple[Index, Index]:
    """The first of some terms that are in a part of `count` from `first` on, and how many there are."""
    b = block.b
    low = b.integer(MaxSIOp, b.index(terms[0]), b.index(first))
    high = b.index(b.minimum(terms[1], b.add(first, count)))
    return low, b.integer(MaxSIOp, b.subi(high, low), b.index(0))


def _bounds(block: Block, groups: GroupRange) -> tuple[SSAValue, SSAValue]:
    """Where the block's group begins and ends."""
    b, e, op, dims = block.b, block.b.e, block.op, block.indices((0, 0), 0)
    arguments = factor_inputs(e, op, dims, groups.inputs)
    (start,), (end,) = e.values(op.body, arguments, dims, [groups.start, groups.end])
    return b.cast_index(start, INDEX), b.cast_index(end, INDEX)


@dataclass(frozen=True, slots=True)
class GroupTile:
    """Rows of one group that a block computes."""

    group: Index
    first: Index
    """The tile's first row, a multiple of how many it has; others of its rows may be of other groups."""
    low: Index
    end: Index
    """Rows of the group."""
    has_terms: SSAValue
    """Not so of rows that are in no group, which are zeros, nor of a tile too many, which has no rows."""


def most_tiles(block: Block, groups: GroupRange) -> int:
    """How many tiles groups of rows have at most: one more for each, and for rows that are in none."""
    return -(-block.limits[0] // block.sides[0]) + block.op.space[groups.group]


def tile_of_group(block: Block, groups: GroupRange, number: Index) -> GroupTile:
    """The tile of a number. One thread looks for it."""
    b, count = block.b, block.op.space[groups.group]
    side, limit = block.sides[0], block.limits[0]
    shared = b.shared([TILE_BYTES // 4], i32)
    with b.if_(b.cmpi("eq", b.index(block.thread), b.index(0))), b.e.scope():

        def visit(
            group: Index, start: SSAValue, end: SSAValue, state: Sequence[SSAValue]
        ) -> list[SSAValue]:
            left, *others = state
            first = b.div(start, side)
            is_there = b.cmpi("ult", start, end)
            tiles = b.sub(b.div(b.add(end, side - 1), side), first)
            tiles = b.select(is_there, b.index(tiles), b.index(0))
            is_here = b.cmpi("ult", left, tiles)
            row = b.mul(b.add(first, left), side)
            mine = (b.index(group), b.index(row), start, end)
            chosen = [b.select(is_here, new, old) for new, old in zip(mine, others, strict=True)]
            return [b.select(is_here, b.index(_FOUND), b.index(b.sub(left, tiles))), *chosen]

        nothing = [b.index(count), *(b.index(0) for _ in range(3))]
        with (
            b.loop(0, count, 1, [b.index(number), *nothing, b.index(0)], nonempty=True) as loop,
            b.e.scope(),
        ):
            *state, _ = loop.carried
            block.group = loop.index
            start, end = (
                b.integer(MinSIOp, b.integer(MaxSIOp, bound, b.index(0)), b.index(limit))
                for bound in _bounds(block, groups)
            )
            loop.carry(*visit(loop.index, start, end, state), end)
        *state, end = loop.results
        _, *values = visit(count, end, b.index(limit), state)
        for at, value in enumerate(values):
            b.store(b.cast_index(value, i32), shared, [at])
    b.barrier()
    group, first, low, end = (b.cast_index(b.load(shared, [at]), INDEX) for at in range(4))
    has_terms = b.cmpi("ult", group, b.index(count))
    return GroupTile(b.minimum(group, count - 1), first, low, end, has_terms)
