"""Parts of memories: which bytes an element has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index

_PIECE = 16
"""Bytes that stay together in swizzled rows."""


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a memory, by what it begins at in each dimension of the whole."""

    space: str
    """gmem, smem, cluster or regs."""
    whole: tuple[int, ...]
    element: Any
    bytes: int
    """Of an element."""
    starts: tuple[Index, ...]
    kept: tuple[int, ...]
    """Dimensions that the part has."""
    sizes: tuple[int, ...]
    """Of these."""
    buffer: SSAValue | None = None
    """A memref of one dimension; of `regs`, on the stack."""
    offset: int = 0
    """Bytes from the start of shared memory on."""
    swizzle: int = 0
    rank: SSAValue | None = None
    """Of the block, of `cluster`."""
    argument: int = -1
    """Number of the parameter, of `gmem`."""
    is_transposed: bool = False

    def part(
        self, starts: Sequence[Index], kept: Sequence[int], sizes: Sequence[int], b: Any
    ) -> Place:
        """A part of it; `starts` for each dimension that it has, `kept` those that stay."""
        moved = list(self.starts)
        for dim, start in zip(self.kept, starts, strict=True):
            moved[dim] = b.add(moved[dim], start)
        return replace(
            self,
            starts=tuple(moved),
            kept=tuple(self.kept[i] for i in kept),
            sizes=tuple(sizes),
        )

    def linear(self, index: Sequence[Index], b: Any) -> Index:
        """The number of an element in its memory; `index` has the dimensions that the part has, or those of them that
        are not one."""
        full = list(self.starts)
        kept = self.kept
        if len(index) != len(kept):
            kept = tuple(d for d, size in zip(self.kept, self.sizes, strict=True) if size != 1)
        for dim, at in zip(kept, index, strict=True):
            full[dim] = b.add(full[dim], at)
        if not self.swizzle:
            return _row_major(full, self.whole, b)
        rows, columns = self.whole[-2:]
        width = self.swizzle // self.bytes
        row, column = full[-2:]
        panel, inner = b.div(column, width), b.rem(column, width)
        shift = {128: 1, 64: 2, 32: 4}[self.swizzle]
        turn = b.rem(b.div(row, shift), self.swizzle // _PIECE)
        inner = b.xor(inner, b.mul(turn, _PIECE // self.bytes))
        lead = b.mul(_row_major(full[:-2], self.whole[:-2], b), rows * columns)
        within = b.add(b.mul(panel, rows * width), b.add(b.mul(row, width), inner))
        return cast(Index, b.add(lead, within))

    def start_bytes(self, b: Any) -> Index:
        """Where it begins in shared memory, of a part that begins with a row of its panel."""
        full = list(self.starts)
        if not self.swizzle:
            start = b.mul(_row_major(full, self.whole, b), self.bytes)
            return cast(Index, b.add(start, self.offset))
        rows, columns = self.whole[-2:]
        width = self.swizzle // self.bytes
        lead = b.mul(_row_major(full[:-2], self.whole[:-2], b), rows * columns)
        panel = b.mul(b.div(full[-1], width), rows * width)
        within = b.add(panel, b.mul(full[-2], width))
        inner = b.rem(full[-1], width)
        start = b.mul(b.add(b.add(lead, within), inner), self.bytes)
        return cast(Index, b.add(start, self.offset))


def _row_major(index: Sequence[Index], sizes: Sequence[int], b: Any) -> Index:
    found: Index = 0
    for dim, at in enumerate(index):
        found = b.add(found, b.mul(at, prod(sizes[dim + 1 :])))
    return found
