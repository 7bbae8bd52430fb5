"""Kind `transpose`: what is read across the order of memory goes through a box of shared memory.

A block computes a box of the results (`schedule/transposes/boxes.py`). It reads the runs of the box that lie together
in what is read, and writes those that lie together in the results. Threads of a warp move neighbours of a run, from the
start of a sector on; in shared memory runs are padded or swizzled so that they meet no bank twice on either way. Where
no padding does that, the box is copied to a second array in the order of the results (`lattices.py` there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured import MapOp
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array, load_at
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.reads import read_where_written
from mlirhlo.lowering.schedule.transposes.banks import elements_of, orders_of
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR, Crossing, Run, crossing_of
from mlirhlo.lowering.schedule.transposes.lattices import Lattice, steps_of

_WARP = 32
_UNROLLED = 16
"""Elements that a thread moves without a loop."""


@launches("transpose")
def transpose(plan: Plan, ops: Sequence[MapOp], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        crossing = crossing_of(op)
        assert crossing is not None
        _launch(plan, op, crossing, schedule)


def _launch(plan: Plan, op: MapOp, crossing: Crossing, schedule: Schedule) -> None:
    b = plan.begin(inputs_of(plan, [op]), op.outputs)
    b.read_in_place(read_where_written([op]))
    elements = [array(v).element_type for v, _, _ in crossing.reads]
    box = _Box(b, crossing, schedule)
    if not schedule.lines:
        buffers = b.shared_arrays(elements, box.count)
        _read(plan, box, buffers, schedule.row_threads)
        b.barrier()
        _write(box, op, buffers, schedule.column_threads)
        b.launch(box.blocks, schedule.threads)
        return
    lattice = Lattice(schedule.pitches, schedule.written, schedule.lanes, schedule.lines)
    part = lattice.part(crossing, box.tile)
    counts = [n for n in (box.count, elements_of(part, lattice.written, ())) for _ in elements]
    arrays = b.shared_arrays(elements * 2, counts, is_aligned=True)
    buffers, written = arrays[: len(elements)], arrays[len(elements) :]
    _read(plan, box, buffers, schedule.row_threads)
    b.barrier()
    rounds = prod(box.tile) // prod(part) + (prod(box.tile) % prod(part) > 0)
    with b.loop(0, rounds, nonempty=True) as number, b.e.scope():
        second = box.part(part, lattice.written, number)
        _copy(box, second, lattice.lanes, list(zip(buffers, written, elements, strict=True)))
        b.barrier()
        _write(second, op, written, schedule.column_threads)
        b.barrier()
    b.launch(box.blocks, schedule.threads)


def _read(plan: Plan, box: _Box, buffers: Sequence[SSAValue], width: int) -> None:
    """Reads the box into shared memory."""
    b, crossing = box.b, box.crossing
    run = Walk.of(box, crossing.run_read(box.tile), box.orders[0])
    for (value, _, start), buffer in zip(crossing.reads, buffers, strict=True):
        element = array(value).element_type
        source = b.flat(b.memory[plan.numbers[value]])

        def bring(
            at: Mapping[int, Index],
            linear: Index,
            source: SSAValue = source,
            buffer: SSAValue = buffer,
            parts: int = 1 + element.is_complex,
        ) -> None:
            place = box.place(at)
            for part in range(parts):
                number = b.load(source, [b.add(b.mul(linear, parts), part)])
                b.store(number, buffer, [b.add(b.mul(place, parts), part)])

        box.walk(run, crossing.strides, start, SECTOR // element.byte_size, width, bring)


def _write(box: _Box, op: MapOp, buffers: Sequence[SSAValue], width: int) -> None:
    """Computes and writes the results of a box from shared memory."""
    b, crossing = box.b, box.crossing
    run = Walk.of(box, crossing.run_written(box.tile), box.orders[1])

    def compute(at: Mapping[int, Index], linear: Index) -> None:
        indices = box.indices(at, op.space)
        b.e.know_linear(indices, op.space, linear)
        place = box.place(at)
        for (value, map_, _), buffer in zip(crossing.reads, buffers, strict=True):
            element = load_at(b, buffer, place, array(value).element_type)
            b.e.know_read(value, b.e.mapped(map_, indices, op.space), element)
        for value in op.outputs:
            b.write(value, indices, b.e.at(value, indices))

    sector = SECTOR // max(array(v).element_type.byte_size for v in op.outputs)
    box.walk(run, crossing.steps, 0, sector, width or _WARP, compute)


def _copy(
    box: _Box,
    part: _Box,
    lanes: Sequence[int],
    buffers: Sequence[tuple[SSAValue, SSAValue, PrimitiveType]],
) -> None:
    """Copies a part of a box to its second array, by a lattice of elements a warp at once."""
    b, tile = box.b, part.tile
    steps = steps_of(box.crossing, box.tile)
    used = [g for g in reversed(range(len(tile))) if tile[g] > 1 and box.pitches[g]]
    cells = {g: -(-tile[g] // (lanes[g] * steps[g])) for g in used}
    warp, lane = b.index(b.div(part.thread, _WARP)), Coordinate(b.index(b.rem(part.thread, _WARP)))
    points = Places(b, 0).unlinear(lane, [lanes[g] for g in used])
    warps = part.threads // _WARP
    count = prod(cells.values())
    reach = {g: cells[g] * lanes[g] * steps[g] for g in used}
    shift = {g: b.sub(part.origin[g], box.origin[g]) for g in used}

    def move(at: Mapping[int, Index], inner: Mapping[int, int]) -> None:
        index = {g: b.add(at[g], inner[g]) for g in used}
        tests = [t for g in used for t in part.limits(g, index[g], reach[g])]
        with _all(b, tests), b.e.scope():
            first = box.place({g: b.add(index[g], shift[g]) for g in used})
            second = part.place(index)
            for source, target, element in buffers:
                for half in range(parts := 1 + element.is_complex):
                    value = b.load(source, [b.add(b.mul(first, parts), half)])
                    b.store(value, target, [b.add(b.mul(second, parts), half)])

    with b.loop(0, -(-count // warps), nonempty=True) as number, b.e.scope():
        cell = b.add(warp, b.mul(number, warps))
        places = Places(b, 0).unlinear(Coordinate(cell), list(cells.values()))
        at = {
            g: b.mul(b.add(b.mul(place.base, lanes[g]), point.base), steps[g])
            for g, place, point in zip(used, places, points, strict=True)
        }
        tests = [b.cmpi("ult", b.index(cell), b.index(count))] if count % warps else []
        with _all(b, tests), b.e.scope():
            for inner in product(*(range(steps[g]) for g in used)):
                move(at, dict(zip(used, inner, strict=True)))
            b.sync_warp()  # so that none is in the next cell while others are in this one


def _all(b: LaunchBuilder, tests: Sequence[SSAValue]) -> AbstractContextManager[object]:
    """Code that runs where all tests are true."""
    return b.if_(reduce(b.andi, tests)) if tests else nullcontext()


@dataclass(frozen=True, slots=True)
class Walk:
    """An order of the elements of a box: runs, by the other groups of dimensions."""

    run: Run
    others: tuple[int, ...]
    """From the outermost one."""
    count: int
    """Runs of a box."""

    @staticmethod
    def of(box: _Box, run: Run, order: Sequence[int]) -> Walk:
        """By groups of dimensions in this order, the innermost first."""
        others = tuple(g for g in reversed(order) if g not in run.dims and box.tile[g] > 1)
        return Walk(run, others, prod(box.tile[g] for g in others))


class _Box:
    """The box of a block."""

    def __init__(self, b: LaunchBuilder, crossing: Crossing, schedule: Schedule) -> None:
        self.b, self.crossing = b, crossing
        self.tile, self.pitches, self.swizzle = schedule.tile, schedule.pitches, schedule.swizzle
        self.whole = self.tile
        """The tile of the box that this is a part of."""
        self.orders = orders_of(crossing, is_across=bool(schedule.is_across))
        self.threads = schedule.threads
        counts = [-(-n // t) for n, t in zip(crossing.sizes, self.tile, strict=True)]
        self.blocks = prod(counts)
        origin = Places(b, 0).unlinear(Coordinate(b.block_id()), counts)
        self.origin = [b.mul(c.base, t) for c, t in zip(origin, self.tile, strict=True)]
        self.thread = b.thread_id()

    @property
    def count(self) -> int:
        """Elements of shared memory."""
        return elements_of(self.tile, self.pitches, self.swizzle)

    def part(self, tile: Sequence[int], pitches: Sequence[int], number: Index) -> _Box:
        """The part of the box of a number, in another array."""
        part = copy(self)
        part.tile, part.pitches, part.swizzle = tuple(tile), tuple(pitches), ()
        b = self.b
        part.origin = [
            origin if side == whole else b.add(origin, b.mul(number, side))
            for origin, side, whole in zip(self.origin, tile, self.tile, strict=True)
        ]
        return part

    def limits(self, group: int, index: Index, reach: int) -> list[SSAValue]:
        """The tests of whether an index below `reach` is in the box, and in the arrays."""
        b, size, side = self.b, self.crossing.sizes[group], self.tile[group]
        tests: list[SSAValue] = []
        if reach > side:
            tests.append(b.cmpi("ult", b.index(index), b.index(side)))
        if self.is_open(group):
            place = b.index(b.add(self.origin[group], index))
            tests.append(b.cmpi("ult", place, b.index(size)))
        return tests

    def is_open(self, group: int) -> bool:
        """Whether a box may end beyond the arrays."""
        size = self.crossing.sizes[group]
        return bool(size % self.tile[group] or size % self.whole[group])

    def place(self, at: Mapping[int, Index]) -> Index:
        """The index in shared memory of an element of the box."""
        b = self.b
        total: Index = 0
        for group, pitch in enumerate(self.pitches):
            if pitch:
                total = b.add(total, b.mul(at[group], pitch))
        if not self.swizzle:
            return total
        every, count, unit = self.swizzle
        mask = b.mul(b.rem(b.div(total, every), count), unit)
        return b.integer(arith.XOrIOp, b.index(total), b.index(mask))

    def indices(self, at: Mapping[int, Index], space: Sequence[int]) -> tuple[Index, ...]:
        """The indices in the op's space at indices of the box."""
        b = self.b
        found: list[Index] = [0] * len(space)
        for group, dims in enumerate(self.crossing.groups):
            index = Coordinate(b.index(b.add(self.origin[group], at[group])))
            parts = Places(b, 0).unlinear(index, [space[d] for d in dims])
            for dim, part in zip(dims, parts, strict=True):
                found[dim] = part.base
        return tuple(found)

    def walk(
        self,
        walk: Walk,
        strides: Sequence[int],
        start: int,
        sector: int,
        width: int,
        body: Callable[[Mapping[int, Index], Index], None],
    ) -> None:
        """`body` for each of the thread's elements in the arrays, with the indices in the box and that in memory."""
        b, run = self.b, walk.run
        slots = run.length + (0 if run.is_aligned else sector - 1)
        width = min(width, 1 << (slots - 1).bit_length())
        chunks = -(-slots // width)
        step = self.threads // width
        first, lane = b.index(b.div(self.thread, width)), b.index(b.rem(self.thread, width))
        base: Index = start
        for group, stride in enumerate(strides):
            base = b.add(base, b.mul(self.origin[group], stride))
        side = max(_WARP // width, 1)
        rows = -(-walk.count // side) * side
        # Threads without a run of their own share the longer ones.
        is_shared = chunks > 1 and (walk.count < step or chunks > _UNROLLED)
        items, apiece = (rows * chunks, 1) if is_shared else (walk.count, chunks)
        rounds = -(-items // step)
        is_open = slots < chunks * width or rounds * step > rows * chunks

        def one(number: Index) -> None:
            item = b.add(first, b.mul(number, step))
            begin: Index = 0
            if is_shared:
                item, begin = b.rem(item, rows), b.mul(b.div(item, rows), width)
            at, tests = self._run(walk, item, rows if is_shared else rounds * step)
            linear = base
            for group, index in at.items():
                linear = b.add(linear, b.mul(index, strides[group]))
            shift = 0 if run.is_aligned else b.rem(linear, sector)
            for chunk in range(apiece):
                place = b.sub(b.add(lane, b.add(begin, chunk * width)), shift)
                inside = tests + self._ends(run, place, is_open or bool(shift))
                with _all(b, inside), b.e.scope():
                    body({**at, **self._in_run(run, place)}, b.add(linear, place))

        if rounds * apiece <= _UNROLLED:
            for number in range(rounds):
                one(number)
            return
        with b.loop(0, rounds, nonempty=True) as number, b.e.scope():
            one(number)

    def _run(
        self, walk: Walk, number: Index, reach: int
    ) -> tuple[dict[int, Index], list[SSAValue]]:
        """Where a run begins in the box, and the tests of whether it is in the arrays."""
        b, sizes = self.b, self.crossing.sizes
        tests: list[SSAValue] = []
        if reach > walk.count:
            tests.append(b.cmpi("ult", b.index(number), b.index(walk.count)))
        sides = [self.tile[g] for g in walk.others]
        parts = [c.base for c in Places(b, 0).unlinear(Coordinate(number), sides)]
        at: dict[int, Index] = dict.fromkeys(range(len(sizes)), 0)
        at |= dict(zip(walk.others, parts, strict=True))
        for group in walk.others:
            tests += self.limits(group, at[group], 0)
        return at, tests

    def _ends(self, run: Run, place: Index, is_open: bool) -> list[SSAValue]:
        """The test of whether an index of a run is in it, and in the arrays."""
        b = self.b
        if not run.dims:
            return [b.cmpi("ult", b.index(place), b.index(1))] if is_open else []
        last = run.dims[-1]
        size, side = self.crossing.sizes[last], self.tile[last]
        if self.is_open(last):
            inner = run.length // side
            begin = self.origin[last]
            if side != self.whole[last]:
                begin = b.minimum(begin, size)  # parts of the last box may be beyond the arrays
            length = b.minimum(b.sub(size, begin), side)
            return [b.cmpi("ult", b.index(place), b.index(b.mul(length, inner)))]
        return [b.cmpi("ult", b.index(place), b.index(run.length))] if is_open else []

    def _in_run(self, run: Run, place: Index) -> dict[int, Index]:
        """Indices in the box of an index in a run."""
        sides = [self.tile[g] for g in reversed(run.dims)]
        parts = Places(self.b, 0).unlinear(Coordinate(place), sides) if sides else []
        return {g: c.base for g, c in zip(reversed(run.dims), parts, strict=True)}
