"""What attributes of the `tpu` dialect say, as frozen values; `str` gives their text in MLIR."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Self

_LAYOUT = re.compile(r"(\d+),\{(\*|\d+),(\*|\d+)\},\((\d+),(\d+)\)((?:,-2,-1)|(?:,-1)|(?:,-2)|)\Z")
SUBLANES, LANES = 8, 128
"""Rows and columns of a vector register; each entry has 32 bits."""
SCRATCH = (SUBLANES * 9, LANES)
"""Rows and lanes of words of the memory that the compiler moves registers through."""


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """`<vmem>`, or `<vmem, tc>` for the memory of one kind of core."""

    space: str
    core: str | None = None

    def __str__(self) -> str:
        return self.space if self.core is None else f"{self.space}, {self.core}"


@dataclass(frozen=True, slots=True)
class TiledLayout:
    """How a memref lies in memory: nested tiles, and strides in units of the first tile.

    The first tile covers the last dimensions, each further one the last dimensions of what the ones
    before it make of the first: tiles, and places in them.
    """

    tiles: tuple[tuple[int, ...], ...]
    strides: tuple[int, ...]

    def __str__(self) -> str:
        tiles = "".join(f"({_numbers(tile)})" for tile in self.tiles)
        return f"{tiles},[{_numbers(self.strides)}]"

    def problem(self, rank: int | None = None) -> str | None:
        """What is wrong with the layout (of a memref of `rank`), if anything."""
        if any(size <= 0 for tile in self.tiles for size in tile):
            return "the sizes of tiles are positive"
        if rank is not None and len(self.strides) != rank:
            return f"{len(self.strides)} strides for {rank} dimensions"
        if self.tiles and len(self.tiles[0]) > len(self.strides):
            return "the first tile has more dimensions than there are strides"
        sizes = self.tiles[0] if self.tiles else ()
        for tile in self.tiles[1:]:
            if len(tile) > len(sizes):
                return "a tile has more dimensions than what it divides"
            at = len(sizes) - len(tile)
            whole = sizes[at:]
            if any(a % b for a, b in zip(whole, tile, strict=True)):
                return f"({_numbers(tile)}) does not divide ({_numbers(whole)})"
            # `(512)(128)(4,1)`: of 512 the second tile makes 4x128, which the third one divides.
            sizes = (*sizes[:at], *(a // b for a, b in zip(whole, tile, strict=True)), *tile)
        return None

    def offset(self, index: tuple[int, ...]) -> int:
        """Where the element of `index` lies, in elements from the start."""
        if not self.tiles:
            return sum(i * stride for i, stride in zip(index, self.strides, strict=True))
        first = self.tiles[0]
        plain = len(index) - len(first)
        outer = [*index[:plain], *(i // t for i, t in zip(index[plain:], first, strict=True))]
        inner = [i % t for i, t in zip(index[plain:], first, strict=True)]
        sizes = list(first)
        for tile in self.tiles[1:]:
            # The last dimensions split in two: which tile, and where in it.
            at = len(inner) - len(tile)
            kept = list(zip(inner[at:], sizes[at:], tile, strict=True))
            inner = [*inner[:at], *(i // t for i, _, t in kept), *(i % t for i, _, t in kept)]
            sizes = [*sizes[:at], *(s // t for _, s, t in kept), *(t for _, _, t in kept)]
        within = 0
        for i, size in zip(inner, sizes, strict=True):
            within = within * size + i
        start = sum(i * stride for i, stride in zip(outer, self.strides, strict=True))
        return start * prod(first) + within


@dataclass(frozen=True, slots=True)
class DotDimensionNumbers:
    """Which dimensions a matmul contracts, keeps and batches; `output_order` is pairs (side, dim)."""

    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_non_contracting: tuple[int, ...]
    rhs_non_contracting: tuple[int, ...]
    output_order: tuple[int, ...]
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()

    def lists(self) -> tuple[tuple[int, ...], ...]:
        """All lists, in the order of the text."""
        return (
            self.lhs_contracting,
            self.rhs_contracting,
            self.lhs_non_contracting,
            self.rhs_non_contracting,
            self.output_order,
            self.lhs_batch,
            self.rhs_batch,
        )

    def __str__(self) -> str:
        return ", ".join(f"[{', '.join(map(str, numbers))}]" for numbers in self.lists())

    def wanted_order(self) -> tuple[int, ...]:
        """The only order the compiler takes: batch, what is left of lhs, what is left of rhs."""
        sides = (
            *((0, dim) for dim in self.lhs_batch),
            *((0, dim) for dim in self.lhs_non_contracting),
            *((1, dim) for dim in self.rhs_non_contracting),
        )
        return tuple(number for pair in sides for number in pair)


@dataclass(frozen=True, slots=True)
class ElementWindow:
    """Padding of a window that moves by elements, in elements."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    def __str__(self) -> str:
        return f"{list(self.low)}, {list(self.high)}"


@dataclass(frozen=True, slots=True)
class VectorLayout:
    """How a vector lies in registers: `32,{0,0},(8,128)`.

    An offset of None is replicated along sublanes or lanes. `implicit` says which of the last two
    dimensions the vector has not: -1 the minor one, -2 the second minor one, both.
    """

    bits: int
    offsets: tuple[int | None, int | None]
    tiling: tuple[int, int]
    implicit: tuple[int, ...] = ()

    def __str__(self) -> str:
        offsets = ",".join("*" if o is None else str(o) for o in self.offsets)
        implicit = "".join(f",{dim}" for dim in self.implicit)
        return f"{self.bits},{{{offsets}}},({_numbers(self.tiling)}){implicit}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The layout that `text` spells; None if it spells none."""
        match = _LAYOUT.match(text)
        if match is None:
            return None
        bits, sublane, lane, rows, columns, implicit = match.groups()
        dims = tuple(int(dim) for dim in implicit.split(",") if dim)
        first, second = (None if o == "*" else int(o) for o in (sublane, lane))
        return cls(int(bits), (first, second), (int(rows), int(columns)), dims)

    def generalizes(self, other: Self, shape: tuple[int, ...]) -> bool:
        """Whether registers of a vector of `shape` in this layout hold it in the other one too."""
        if self.bits != other.bits or any(
            mine is not None and mine != its
            for mine, its in zip(self.offsets, other.offsets, strict=True)
        ):
            return False
        mine, its = (layout.tiled_dimensions(shape) for layout in (self, other))
        if mine != its and not self.tiling[0] == other.tiling[0] == 1:
            return False
        if self.tiling == other.tiling:
            return True
        # Of different tiles each dimension has one, or is replicated in larger ones, of narrow
        # elements with the other one.
        slices = (
            (self.tiling[0], other.tiling[0]),
            (self.lanes_a_register, other.lanes_a_register),
        )
        of_words = self.bits == 32 or self.offsets == (None, None)
        return self.tiling[1] == other.tiling[1] == LANES and all(
            (own is None and of_words and sizes[0] % sizes[1] == 0)
            or (at is not None and at + size <= least)
            for own, at, size, least, sizes in zip(
                self.offsets,
                other.offsets,
                mine,
                (min(self.tiling[0], other.tiling[0]), LANES),
                slices,
                strict=True,
            )
        )

    def tiled_dimensions(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """The last two sizes of a vector of `shape`, with those that it has not as one."""
        full = (1, 1, *shape)
        if self.implicit == (-2, -1):
            return (1, 1)
        if self.implicit == (-1,):
            return (full[-1], 1)
        return (1 if self.implicit == (-2,) else full[-2], full[-1])

    @property
    def tiles_a_register(self) -> int:
        """How many tiles one register holds side by side."""
        return (32 // self.bits) * SUBLANES * LANES // prod(self.tiling)

    @property
    def lanes_a_register(self) -> int:
        """How many lanes of one row a register holds, through all of its tiles."""
        return self.tiles_a_register * self.tiling[1]


def _numbers(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
