"""Random shardings: tiles in any order of devices, even or not, in part replicated, one device, mesh axes, Shardy's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import shape_of
from mlirhlo.dialects.hlo.attributes.mesh import AxisRef, Mesh
from mlirhlo.dialects.hlo.attributes.sharding import DimensionSharding, NamedSharding, Sharding
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, parse_shape

COUNTS = (4, 2, 3, 6, 8)
SHARDED = 35
"""Percentage of instructions with a sharding of their own."""


@dataclass(slots=True)
class Places:
    """Draws shardings for the arrays of one program."""

    c: Choices
    partitions: int
    is_shardy: bool
    mesh: Mesh = field(init=False)
    channel: int = 0
    """The last channel in use."""

    def __post_init__(self) -> None:
        primes = _primes(self.partitions)
        axes: list[int] = []
        for prime in primes:
            if axes and self.c.chance(40):
                axes[-1] *= prime
            else:
                axes.append(prime)
        order = None
        if self.c.rarely(3):
            order = tuple(self.c.permutation(self.partitions))
        self.mesh = Mesh(tuple((f"a{k}", n) for k, n in enumerate(axes)), order)

    def mark(self, shape: Shape, percent: int = SHARDED, *, closed: bool = False) -> str:
        """`, sharding=…` for a value of `shape`, so often; `closed`: without dimensions that Shardy leaves open."""
        if not self.c.chance(percent):
            return ""
        if isinstance(shape, TupleShape):
            leaves = arrays_of(shape)
            if (
                len(leaves) != len(shape.elements)
                or not leaves
                or any(s.is_dynamic for s in leaves)
            ):
                return ""
            return f", sharding={{{', '.join(self.of(s.rank) for s in leaves)}}}"
        if not isinstance(shape, ArrayShape) or shape.is_dynamic:
            return ""
        if self.is_shardy:
            return self._shardy(shape.rank, closed=closed)
        return f", sharding={self.of(shape.rank)}"

    def of(self, rank: int) -> str:
        """A sharding in braces."""
        match 99 if self.is_shardy else self.c.integer(0, 9):
            case 0:
                return "{replicated}"
            case 1:
                return f"{{maximal device={self.c.integer(0, self.partitions - 1)}}}"
            case 2 | 3:
                return str(Sharding.of_mesh(self.named(rank, closed=True)))
            case 99:
                return str(Sharding.of_mesh(self.named(rank, closed=True)).to_v2())
            case _:
                return self.tiled(rank)

    def tiled(self, rank: int) -> str:
        """Tiles in any order of the devices."""
        grid = [1] * (rank + 1)
        for prime in _primes(self.partitions):
            grid[self.c.integer(0, rank)] *= prime
        if math.prod(grid[:-1]) == 1:
            return "{replicated}"
        order = self._order()
        listed = ",".join(map(str, grid if grid[-1] > 1 else grid[:-1]))
        rest = ""
        if grid[-1] > 1:
            rest = self.c.pick((" last_tile_dim_replicate", " last_tile_dims={replicated}"))
        return f"{{devices=[{listed}]{order}{rest}}}"

    def _order(self) -> str:
        primes = _primes(self.partitions)
        match self.c.integer(0, 3):
            case 0 | 1:
                return f"<=[{self.partitions}]"
            case 2 if len(primes) > 1:
                order = self.c.permutation(len(primes))
                return f"<=[{','.join(map(str, primes))}]T({','.join(map(str, order))})"
            case _:
                return ",".join(map(str, self.c.permutation(self.partitions)))

    def named(self, rank: int, *, closed: bool) -> NamedSharding:
        """Axes of the mesh, or halves of them, along some dimensions."""
        c = self.c
        dimensions: list[list[AxisRef]] = [[] for _ in range(rank)]
        for name, size in self.mesh.axes:
            refs = [AxisRef(name)]
            if size in (4, 8) and c.rarely(3):
                refs = [AxisRef(name, 1, 2), AxisRef(name, 2, size // 2)]
            for ref in refs:
                where = c.integer(0, rank)
                if where < rank:
                    dimensions[where].append(ref)
        parts = tuple(
            DimensionSharding(tuple(_merged(axes)), is_closed=closed or not c.rarely(4))
            for axes in dimensions
        )
        return NamedSharding(self.mesh, parts)

    def _shardy(self, rank: int, *, closed: bool) -> str:
        named = self.named(rank, closed=closed)
        cuts = [DimensionSharding(d.axes) for d in named.dimensions]
        old = Sharding.of_mesh(NamedSharding(self.mesh, tuple(cuts))).to_v2()
        dims = ", ".join(str(d).replace("'", '\\"') for d in named.dimensions)
        sdy = f'frontend_attributes={{xla.sdy.sharding="#sdy.sharding<@mesh, [{dims}]>"}}'
        return f", sharding={old}, {sdy}"

    def marked(self, line: str) -> str:
        """A line `name = shape opcode(…)…` with or without a sharding."""
        head, equals, rest = line.partition(" = ")
        return (
            line + self.mark(parse_shape(shape_of(rest))) if equals and "ROOT" not in head else line
        )

    def header(self) -> str:
        """What the module's header says of the mesh."""
        if not self.is_shardy:
            return ""
        axes = ", ".join(f'"{name}"={size}' for name, size in self.mesh.axes)
        order = "" if self.mesh.order is None else f", device_ids={[*self.mesh.order]}"  # type: ignore[misc]
        mesh = f"{{mesh = #sdy.mesh<[{axes}]{order}>}}".replace('"', '\\"')
        return f', frontend_attributes={{xla.sdy.meshes="{mesh}"}}'


def _merged(axes: Sequence[AxisRef]) -> list[AxisRef]:
    """Parts of one axis that follow each other as the whole: they are written so."""
    found: list[AxisRef] = []
    for axis in axes:
        last = found[-1] if found else None
        if last and last.name == axis.name and last.pre_size == 1 and axis.pre_size == last.size:
            found[-1] = AxisRef(axis.name)
        else:
            found.append(axis)
    return found


def _primes(count: int) -> list[int]:
    return {2: [2], 3: [3], 4: [2, 2], 6: [2, 3], 8: [2, 2, 2]}[count]


def arrays_of(shape: TupleShape) -> list[ArrayShape]:
    return [s for s in shape.elements if isinstance(s, ArrayShape)]
