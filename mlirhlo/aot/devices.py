"""Programs of several devices: the arrays that each device takes, and the memory in which devices meet.

A module from before partitioning, with manual computations (`shard_map`), takes whole arrays: it is partitioned here,
and each device copies its tiles in and out. A module of one device's program, with collectives, takes the arrays of
every device. Modules without either are the program of one device, whatever their header says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from mlirhlo.debug.partitioned import Partitioned
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.custom_calls.manual import manual_partitions
from mlirhlo.interp.device_counts import device_counts
from mlirhlo.interp.machine import Machine
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.rewrites.spmd.factors import leaves
from mlirhlo.runtime.meetings import Image, World

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.attributes.sharding import Sharding
    from mlirhlo.dialects.hlo.shapes import Shape
    from mlirhlo.lowering.plan.plan import Plan

LINE = 64
"""Bytes to which buffers are aligned."""
ROW = 4
"""Words of a row: position of the caller's pointer; bytes from the device's memory to its tile; word of the tile's box
in `boxes`, -1 where the device takes the caller's memory itself; bytes to set to zero before."""
BOX_HEAD, BOX_DIMENSION = 4, 3
"""Words of a box: bytes of a row, rows, dimensions, bytes from the whole array's start to the first row; then of each
dimension, the minor ones first, its size, and bytes between neighbours in the whole array and in the tile."""
_NO_BOX = (0, 0, 0, 0)
Bounds: TypeAlias = "tuple[tuple[int, int], ...]"
"""Start and end along each dimension."""


@dataclass(frozen=True, slots=True)
class Program:
    """The module that one device runs, and how many devices there are."""

    module: ModuleOp
    replicas: int = 1
    partitions: int = 1
    tiles: Partitioned | None = None
    """How whole arrays are cut; None where callers have the arrays of each device."""
    arguments: Sequence[ArrayShape] = ()
    """The whole arrays."""
    results: Sequence[ArrayShape] = ()

    @property
    def count(self) -> int:
        """Devices."""
        return self.replicas * self.partitions


def program_of(module: ModuleOp) -> Program:
    """The program of a module, partitioned where it has manual computations. Raises what the passes raise."""
    view = HloModule(module)
    if (manual := manual_partitions(view)) > 1:
        copy = module.clone()
        if view.num_partitions == 1:
            HloModule(copy).set("num_partitions", integer(manual))
        tiles = Partitioned.of(copy)
        if tiles is not None:
            replicas = view.replica_count
            return Program(tiles.module, replicas, tiles.partitions, tiles, *_whole_arrays(view))
    counts = device_counts(view)
    return Program(module, counts.replicas, counts.partitions)


@dataclass(frozen=True, slots=True)
class Tables:
    """What the code of a program of several devices reads."""

    count: int
    """Devices."""
    inputs: Sequence[int]
    """A row of `ROW` words for every device and parameter."""
    outputs: Sequence[int]
    """A row of `ROW` words for every device and result."""
    boxes: Sequence[int]
    """The parts of whole arrays that are tiles."""
    parameters: int
    results: int
    arena_bytes: int
    """Of one device, for its temporaries."""
    device_bytes: int
    """Of one device: temporaries, tiles, then the pointers to its parameters, its context and its results."""
    pointers: int
    """Bytes from a device's memory to these pointers."""
    worlds: Sequence[Image]
    """By variant, the memory in which devices meet."""

    @property
    def world_bytes(self) -> int:
        """Of the largest world."""
        return _aligned(max(8 * world.size for world in self.worlds))

    @property
    def total_bytes(self) -> int:
        """Of the whole arena."""
        return self.world_bytes + self.count * self.device_bytes


def tables_of(program: Program, plans: Sequence[Plan]) -> Tables | None:
    """The tables of a program with its plans by variant; None for one that needs no other device.

    Raises `HloError` HLO0353 and HLO0354 for groups of collectives that do not fit the devices.
    """
    if program.tiles is None and not any(plan.sites for plan in plans):
        return None
    machine = Machine(program.replicas, program.partitions)
    plan = plans[0]
    arena = _aligned(max(one.arena_size for one in plans))
    writer = _Tables(program, arena)
    parameters = [buffer.shape for buffer in plan.parameters]
    results = [buffer.shape for buffer in plan.results]
    return Tables(
        program.count,
        writer.inputs(parameters),
        writer.outputs(results),
        writer.boxes,
        len(parameters),
        len(results),
        arena,
        _aligned(writer.end + 8 * (len(parameters) + 1 + len(results))),
        writer.end,
        [World.image(one.sites, machine) for one in plans],
    )


class _Tables:
    """Rows and boxes, with the memory of tiles behind the temporaries."""

    def __init__(self, program: Program, arena: int) -> None:
        self.program = program
        self.boxes: list[int] = [*_NO_BOX]
        self.end = arena

    def inputs(self, shapes: Sequence[ArrayShape]) -> list[int]:
        """Rows of the parameters; `shapes`: of one device's arrays."""
        tiles = self.program.tiles
        if tiles is None:
            return self._own(shapes)
        rows: list[int] = []
        offsets = self._reserve(shapes)
        for partition in self._partitions():
            rest = zip(shapes, self.program.arguments, tiles.parameters, strict=True)
            for number, (tile, whole, sharding) in enumerate(rest):
                bounds = _bounds(whole, sharding, partition)
                if _is_same(tile, whole, bounds):
                    rows += [number, 0, -1, 0]
                    continue
                sizes = [] if bounds is None else [end - start for start, end in bounds]
                unset = 0 if sizes == [*tile.dimensions] else tile.byte_size
                rows += [number, offsets[number], self._box(whole, tile, bounds), unset]
        return rows

    def outputs(self, shapes: Sequence[ArrayShape]) -> list[int]:
        """Rows of the results, each part of which the first device that has it gives."""
        tiles = self.program.tiles
        if tiles is None:
            return self._own(shapes)
        rows: list[int] = []
        offsets = self._reserve(shapes)
        done: set[tuple[int, Bounds]] = set()
        for partition in self._partitions():
            rest = zip(shapes, self.program.results, tiles.results, strict=True)
            for number, (tile, whole, sharding) in enumerate(rest):
                bounds = _bounds(whole, sharding, partition)
                is_new = bounds is not None and (number, bounds) not in done
                done |= {(number, bounds)} if bounds is not None else set()
                if is_new and _is_same(tile, whole, bounds):
                    rows += [number, 0, -1, 0]
                else:
                    box = self._box(whole, tile, bounds) if is_new else 0
                    rows += [number, offsets[number], box, 0]
        return rows

    def _own(self, shapes: Sequence[ArrayShape]) -> list[int]:
        """Rows of arrays that callers have for every device."""
        pointers = self.program.count * len(shapes)
        return [word for at in range(pointers) for word in (at, 0, -1, 0)]

    def _partitions(self) -> Sequence[int]:
        return [*range(self.program.partitions)] * self.program.replicas

    def _reserve(self, shapes: Sequence[ArrayShape]) -> list[int]:
        offsets: list[int] = []
        for shape in shapes:
            offsets.append(self.end)
            self.end = _aligned(self.end + shape.byte_size)
        return offsets

    def _box(self, whole: ArrayShape, tile: ArrayShape, bounds: Bounds | None) -> int:
        """The word of `boxes` where a tile's box begins."""
        if bounds is None or any(start == end for start, end in bounds):
            return 0
        start = len(self.boxes)
        self.boxes += box_words(whole, tile, bounds)
        return start


def _bounds(whole: ArrayShape, sharding: Sharding | None, partition: int) -> Bounds | None:
    """What a partition has of an array: start and end along each dimension; None for nothing."""
    if sharding is None:
        return tuple((0, size) for size in whole.dimensions)
    bounds = sharding.tile_bounds(whole.dimensions, partition)
    return None if bounds is None else tuple(bounds)


def _is_same(tile: ArrayShape, whole: ArrayShape, bounds: Bounds | None) -> bool:
    """Whether a tile is the whole array."""
    full = tuple((0, size) for size in whole.dimensions)
    return bounds == full and physical_order(tile) == physical_order(whole)


def box_words(whole: ArrayShape, tile: ArrayShape, bounds: Bounds) -> list[int]:
    """The words of the box that is a tile of a whole array."""
    size = whole.element_type.byte_size
    order = physical_order(tile)
    sizes = [end - start for start, end in bounds]
    strides, within = strides_of(whole), strides_of(tile)
    row, rank = size, len(order)
    while rank and strides[order[rank - 1]] == within[order[rank - 1]] == row:
        row *= sizes[order[rank - 1]]
        rank -= 1
    start = sum(stride * first for stride, (first, _) in zip(strides, bounds, strict=True))
    outer = order[:rank]
    words = [row, prod(sizes[dim] for dim in outer), rank, start]
    for dim in reversed(outer):
        words += [sizes[dim], strides[dim], within[dim]]
    return words


def strides_of(shape: ArrayShape) -> list[int]:
    """Bytes between neighbours along each dimension, as the layout has it."""
    strides = [0] * shape.rank
    step = shape.element_type.byte_size
    for dim in reversed(physical_order(shape)):
        strides[dim] = step
        step *= shape.dimensions[dim]
    return strides


def _aligned(size: int) -> int:
    return -(-size // LINE) * LINE


def _whole_arrays(module: HloModule) -> tuple[list[ArrayShape], list[ArrayShape]]:
    """The arrays that a module's entry takes and gives."""
    parameters = sorted(module.entry.parameters, key=lambda op: op.parameter_number)
    taken = [leaf for op in parameters for leaf in leaves(op.shape)]
    return _arrays(taken), _arrays(leaves(module.entry.root.shape))


def _arrays(shapes: Sequence[Shape]) -> list[ArrayShape]:
    return [shape for shape in shapes if isinstance(shape, ArrayShape)]
