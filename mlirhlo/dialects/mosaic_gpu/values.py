"""Layouts of registers and of shared memory, as values: which lane holds which element.

A warp group of 128 lanes holds a vector in the registers of its lanes. A `TiledLayout` tiles the vector
repeatedly; dimensions of the tiled shape, counted from the end, belong to warps, to lanes, or to the registers
of a lane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

WARPS, LANES = 4, 32
"""Warps of a warp group, lanes of a warp."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """Stands among the dimensions of warps or lanes: that many hold the same elements."""

    times: int

    def __str__(self) -> str:
        return f"#mosaic_gpu.Replicated<times = {self.times}>"


@dataclass(frozen=True, slots=True)
class SplatLayout:
    """All elements are equal; each lane holds one."""

    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class StridedLayout:
    """Vectors of `vector_size` neighbours go to the lanes in turn."""

    shape: tuple[int, ...]
    vector_size: int

    def __str__(self) -> str:
        return f"{list(self.shape)}, {self.vector_size}"


@dataclass(frozen=True, slots=True)
class TiledLayout:
    """See the module."""

    tiling: tuple[tuple[int, ...], ...]
    warp_dims: tuple[int | Replicated, ...]
    lane_dims: tuple[int | Replicated, ...]
    vector_dim: int

    def __str__(self) -> str:
        tiles = ", ".join(str(list(tile)) for tile in self.tiling)
        warps, lanes = (", ".join(map(str, dims)) for dims in (self.warp_dims, self.lane_dims))
        return f"[{tiles}], warp_dims = [{warps}], lane_dims = [{lanes}], vector_dim = {self.vector_dim}"

    @property
    def base_tile(self) -> tuple[int, ...]:
        """The part of a vector that a warp group holds at least."""
        return self.tiling[0]

    def problem(self) -> str | None:
        """What is wrong with it, if anything."""
        if not self.tiling or not self.tiling[0]:
            return "it has no tiles"
        rank = len(self.tiling[0]) + sum(map(len, self.tiling))
        for before, after in zip(self.tiling, self.tiling[1:], strict=False):
            tail = before[len(before) - len(after) :]
            if len(after) > len(before) or any(
                not size or of % size for size, of in zip(after, tail, strict=True)
            ):
                return f"the tile {list(after)} does not divide {list(before)}"
        for what, dims, count in (
            ("warps", self.warp_dims, WARPS),
            ("lanes", self.lane_dims, LANES),
        ):
            if any(isinstance(dim, int) and not -rank <= dim < 0 for dim in dims):
                return f"dimensions of {what} are counted from the end"
            found = math.prod(
                dim.times if isinstance(dim, Replicated) else self.tiled_base[dim] for dim in dims
            )
            if found != count:
                return f"its {what} are {found}, not {count}"
        return None

    @property
    def tiled_base(self) -> tuple[int, ...]:
        """The tiled shape of one base tile."""
        return tiled_shape(self.base_tile, self.tiling)


Layout = TiledLayout | StridedLayout | SplatLayout


def tiled_shape(shape: Sequence[int], tiling: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """A shape after each tile cut its last dimensions: outer ones divided, those of the tile behind."""
    found = list(shape)
    for tile in tiling:
        head, tail = found[: len(found) - len(tile)], found[len(found) - len(tile) :]
        found = [*head, *(n // t for n, t in zip(tail, tile, strict=True)), *tile]
    return tuple(found)


WGMMA = TiledLayout(((64, 8), (16, 8), (8, 8), (2,)), (-7,), (-3, -2), -1)
"""Accumulators of wgmma."""
WGMMA_ROW = TiledLayout(((64,), (16,), (8,), (1,)), (-4,), (-2, Replicated(4)), -1)
"""What a reduction of `WGMMA` over its columns leaves."""
WGMMA_COL = TiledLayout(((8,), (2,)), (Replicated(4),), (Replicated(8), -2), -1)
"""What a reduction of `WGMMA` over its rows leaves."""
WGMMA_8BIT = TiledLayout(((64, 16), (16, 16), (8, 16), (4,)), (-7,), (-3, -2), -1)
"""Operands of 8 bits of wgmma in registers."""
TCGEN05 = TiledLayout(((128, 8), (32, 8), (8, 8), (2,)), (-7,), (-3, -2), -1)
"""Accumulators of tcgen05 as warps load them."""


@lru_cache(maxsize=1024)
def elements_of(layout: Layout, shape: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For every lane of a warp group the indices of the elements in its registers, in their order.

    `shape` is a multiple of the layout's base tile.
    """
    if isinstance(layout, SplatLayout):
        return (((0,) * len(shape),),) * (WARPS * LANES)
    if isinstance(layout, StridedLayout):
        return _strided(layout, shape)
    full = tiled_shape(shape, layout.tiling)
    extents = layout.tiled_base
    owned = {dim for dim in (*layout.warp_dims, *layout.lane_dims) if isinstance(dim, int)}
    rank = len(full)
    free = [dim for dim in range(-rank, 0) if dim not in owned]
    found: list[tuple[tuple[int, ...], ...]] = []
    for warp, lane in product(range(WARPS), range(LANES)):
        fixed = _digits(warp, layout.warp_dims, extents) | _digits(lane, layout.lane_dims, extents)
        registers: list[tuple[int, ...]] = []
        for digits in product(*(range(full[dim]) for dim in free)):
            index = fixed | dict(zip(free, digits, strict=True))
            registers.append(
                _untiled([index[dim] for dim in range(-rank, 0)], shape, layout.tiling)
            )
        found.append(tuple(registers))
    return tuple(found)


def _digits(
    number: int, dims: Sequence[int | Replicated], extents: Sequence[int]
) -> dict[int, int]:
    """The index of each dimension that a warp or lane of that number has."""
    found: dict[int, int] = {}
    for dim in reversed(dims):
        extent = dim.times if isinstance(dim, Replicated) else extents[dim]
        if isinstance(dim, int):
            found[dim] = number % extent
        number //= extent
    return found


def _untiled(
    index: Sequence[int], shape: Sequence[int], tiling: Sequence[Sequence[int]]
) -> tuple[int, ...]:
    """The element that an index of the tiled shape stands for."""
    del shape
    found = list(index)
    for tile in reversed(tiling):
        count = len(tile)
        outer, inner = found[-2 * count : -count], found[-count:]
        found[-2 * count :] = [o * t + i for o, t, i in zip(outer, tile, inner, strict=True)]
    return tuple(found)


def _strided(
    layout: StridedLayout, shape: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    size, lanes = math.prod(shape), WARPS * LANES
    chunk = lanes * layout.vector_size
    found: list[tuple[tuple[int, ...], ...]] = []
    for lane in range(lanes):
        flat = [
            base + lane * layout.vector_size + element
            for base in range(0, size, chunk)
            for element in range(layout.vector_size)
        ]
        found.append(tuple(_index(number, shape) for number in flat))
    return tuple(found)


def _index(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    for size in reversed(shape):
        found.append(number % size)
        number //= size
    return tuple(reversed(found))
