"""Programs with random shardings: an instruction of any opcode, moved about before and behind it; chains of several.

Everything may carry a sharding: tiles in any order of devices, even or not, replication in part, one device,
mesh axes and parts of them, Shardy's attributes. A program computes the same however it is partitioned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlirhlo.dialects.hlo.attributes.mesh import AxisRef, Mesh
from mlirhlo.dialects.hlo.attributes.sharding import DimensionSharding, NamedSharding, Sharding
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, parse_shape
from strategies import every
from strategies.choices import Choices
from strategies.instructions import GENERATORS, Case, dims, name_of, shape_of, sizes

__all__ = ["OPCODES", "Program", "every", "program"]

UNCHECKED = ("get-dimension-size", "set-dimension-size")
"""Their inputs are of dynamic size, which shardings of this file do not fit."""

COUNTS = (4, 2, 3, 6, 8)
SHARDED = 35
"""Percentage of instructions with a sharding of their own."""


@dataclass(slots=True)
class Program:
    """A module before partitioning, its inputs, and how it is partitioned."""

    text: str
    inputs: list[np.ndarray]
    partitions: int
    propagation: str
    """The pass before `spmd-partitioning`; none if empty."""
    off: float = 0.0
    """How far an element may be off, of the largest in the result."""


# ---------------------------------------------------------------- shardings


@dataclass(slots=True)
class Places:
    """Draws shardings for the arrays of one program."""

    c: Choices
    partitions: int
    is_shardy: bool
    mesh: Mesh = field(init=False)

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

    def mark(self, shape: Shape, percent: int = SHARDED) -> str:
        """`, sharding=…` for a value of `shape`, so often."""
        if not self.c.chance(percent):
            return ""
        if isinstance(shape, TupleShape):
            leaves = list(_arrays(shape))
            if len(leaves) != len(shape.elements) or not leaves:
                return ""
            return f", sharding={{{', '.join(self.of(s.rank) for s in leaves)}}}"
        if not isinstance(shape, ArrayShape):
            return ""
        if self.is_shardy:
            return self._shardy(shape.rank)
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

    def _shardy(self, rank: int) -> str:
        named = self.named(rank, closed=False)
        closed = [DimensionSharding(d.axes) for d in named.dimensions]
        old = Sharding.of_mesh(NamedSharding(self.mesh, tuple(closed))).to_v2()
        dims = ", ".join(str(d).replace("'", '\\"') for d in named.dimensions)
        sdy = f'frontend_attributes={{xla.sdy.sharding="#sdy.sharding<@mesh, [{dims}]>"}}'
        return f", sharding={old}, {sdy}"

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


def _arrays(shape: TupleShape) -> list[ArrayShape]:
    return [s for s in shape.elements if isinstance(s, ArrayShape)]


# ---------------------------------------------------------------- programs


@dataclass(slots=True)
class _Writer:
    """The entry of a program as it grows."""

    c: Choices
    places: Places
    lines: list[str] = field(default_factory=list)
    inputs: list[np.ndarray] = field(default_factory=list)
    head: list[str] = field(default_factory=list)

    def add(self, shape: str, rest: str, percent: int = SHARDED) -> str:
        """`shape rest` under a new name, with or without a sharding."""
        name = f"v{len(self.lines)}"
        self.lines.append(
            f"  {name} = {shape} {rest}{self.places.mark(parse_shape(shape), percent)}"
        )
        return name

    def parameter(self, array: np.ndarray) -> str:
        """A parameter of these values."""
        self.inputs.append(np.ascontiguousarray(array).reshape(array.shape))
        shape = sizes(name_of(array), array.shape)
        return self.add(shape, f"parameter({len(self.inputs) - 1})", 80)

    def detour(self, value: str, type_: str, shape: Sequence[int]) -> str:
        """The same array after instructions that move it there and back."""
        c, rank = self.c, len(shape)
        full = sizes(type_, shape)
        match c.integer(0, 7):
            case 0 if rank > 1:
                order = c.permutation(rank)
                back = [order.index(d) for d in range(rank)]
                there = sizes(type_, [shape[d] for d in order])
                value = self.add(there, f"transpose({value}), dimensions={dims(order)}")
                return self.add(full, f"transpose({value}), dimensions={dims(back)}")
            case 1 if rank and type_ != "f8e8m0fnu":
                edges = [(c.integer(0, 3), c.integer(0, 3)) for _ in shape]
                wide = [n + a + b for n, (a, b) in zip(shape, edges, strict=True)]
                text = "x".join(f"{a}_{b}" for a, b in edges)
                zero = self.add(f"{type_}[]", _zero(type_), 0)
                value = self.add(sizes(type_, wide), f"pad({value}, {zero}), padding={text}")
                bounds = ", ".join(f"[{a}:{a + n}]" for n, (a, _) in zip(shape, edges, strict=True))
                return self.add(full, f"slice({value}), slice={{{bounds}}}")
            case 2:
                flat = sizes(type_, [math.prod(shape)])
                value = self.add(flat, f"reshape({value})")
                return self.add(full, f"reshape({value})")
            case 3 if rank:
                chosen = dims(c.subset(rank, c.integer(1, rank)))
                value = self.add(full, f"reverse({value}), dimensions={chosen}")
                return self.add(full, f"reverse({value}), dimensions={chosen}")
            case 4:
                value = self.add(f"({full}, {full})", f"tuple({value}, {value})")
                value = self.add(f"({full}, {full})", f"opt-barrier({value})")
                return self.add(full, f"get-tuple-element({value}), index={c.integer(0, 1)}")
            case 5:
                rows = c.integer(1, 5)
                place = c.integer(0, rank)
                many = [*shape[:place], rows, *shape[place:]]
                others = [d for d in range(rank + 1) if d != place]
                value = self.add(
                    sizes(type_, many), f"broadcast({value}), dimensions={dims(others)}"
                )
                return self.row(value, type_, many, place, c.integer(0, rows - 1))
            case 6:
                return self.add(full, f'custom-call({value}), custom_call_target="Sharding"', 100)
            case _:
                return self.add(full, f"copy({value})")

    def row(self, value: str, type_: str, shape: Sequence[int], dim: int, at: int) -> str:
        """One row along a dimension, without it: by a static or a dynamic slice, a gather or a sum."""
        c = self.c
        one = [1 if d == dim else n for d, n in enumerate(shape)]
        less = [n for d, n in enumerate(shape) if d != dim]
        if c.chance(60):
            bounds = ", ".join(
                f"[{at}:{at + 1}]" if d == dim else f"[0:{n}]" for d, n in enumerate(shape)
            )
            value = self.add(sizes(type_, one), f"slice({value}), slice={{{bounds}}}")
        else:
            index = self.add("s32[]", f"constant({at})", 0)
            zero = self.add("s32[]", "constant(0)", 0)
            starts = ", ".join(index if d == dim else zero for d in range(len(shape)))
            rest = f"dynamic-slice({value}, {starts}), dynamic_slice_sizes={dims(one)}"
            value = self.add(sizes(type_, one), rest)
        return self.add(sizes(type_, less), f"reshape({value})")

    def operand(self, array: np.ndarray) -> str:
        """An array as a parameter, or made of parameters that hold it."""
        c, type_, shape = self.c, name_of(array), array.shape
        if c.chance(15):
            rows, place = c.integer(1, 5), c.integer(0, array.ndim)
            at = c.integer(0, rows - 1)
            others = np.roll(array.reshape(-1), 1).reshape(shape)
            stacked = np.stack([array if k == at else others for k in range(rows)], place)
            value = self.parameter(stacked)
            return self.row(value, type_, stacked.shape, place, at)
        if c.chance(10) and array.ndim:
            dim = c.integer(0, array.ndim - 1)
            at = c.integer(0, shape[dim])
            parts = np.split(array, [at], dim)
            names = ", ".join(self.parameter(part) for part in parts)
            return self.add(sizes(type_, shape), f"concatenate({names}), dimensions={{{dim}}}")
        value = self.parameter(array)
        while c.chance(25):
            value = self.detour(value, type_, shape)
        return value


def _zero(type_: str) -> str:
    return f"constant({'(0, 0)' if type_.startswith('c') else 'false' if type_ == 'pred' else 0})"


def program(c: Choices, opcode: str) -> Program:
    """A program about one opcode."""
    case = GENERATORS[opcode](c, opcode)
    count = c.pick(COUNTS)
    places = Places(c, count, is_shardy=c.rarely(4))
    writer = _Writer(c, places)
    names = [writer.operand(array) for array in case.inputs]
    body = [*case.before, f"@r = {case.line}"]
    for line in body:
        for k, name in reversed([*enumerate(names)]):
            line = line.replace(f"@p{k}", name)
        text = line.replace("@", "c_")
        writer.lines.append(
            f"  {text}{places.mark(parse_shape(shape_of(line.split(' = ', 1)[1])))}"
        )
    roots = _leaves(writer, case)
    while c.chance(35):
        at = c.integer(0, len(roots) - 1)
        name, shape = roots[at]
        roots[at] = (writer.detour(name, shape.element_type.name, shape.dimensions), shape)
    return _finished(writer, roots, case)


def _leaves(writer: _Writer, case: Case) -> list[tuple[str, ArrayShape]]:
    shape = parse_shape(case.shape)
    if isinstance(shape, ArrayShape):
        return [("c_r", shape)]
    assert isinstance(shape, TupleShape)
    return [
        (writer.add(str(s), f"get-tuple-element(c_r), index={k}"), s)
        for k, s in enumerate(_arrays(shape))
    ]


def _finished(writer: _Writer, roots: Sequence[tuple[str, ArrayShape]], case: Case) -> Program:
    c, places = writer.c, writer.places
    shapes = ", ".join(str(s) for _, s in roots)
    whole = TupleShape(tuple(s for _, s in roots))
    end = places.mark(whole, 70)
    root = f"  ROOT r = ({shapes}) tuple({', '.join(n for n, _ in roots)}){end}"
    head = f"HloModule m, num_partitions={places.partitions}{places.header()}\n"
    lines = [head, case.computations.replace("@", "c_"), "ENTRY e {", *writer.lines, root, "}"]
    propagation = "shardy-xla" if places.is_shardy else "sharding-propagation"
    if not places.is_shardy and c.rarely(5):
        propagation = ""
    off = case.scaled
    return Program("\n".join(lines) + "\n", writer.inputs, places.partitions, propagation, off)


OPCODES: tuple[str, ...] = tuple(sorted(o for o in GENERATORS if o not in UNCHECKED))
MAKERS: dict[str, Callable[[Choices], Program]] = {}
