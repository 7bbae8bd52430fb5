"""Kind `transpose`: what is read across the order of memory goes through a box of shared memory.

A block computes a box of the results (`schedule/boxes.py`). It reads the runs of the box that lie together in what is
read, and writes those that lie together in the results. Threads of a warp move neighbours of a run, from the start of a
sector on; in shared memory runs are padded or swizzled so that they meet no bank twice on either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.structured import MapOp
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array, load_at
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.banks import elements_of, orders_of
from mlirhlo.lowering.schedule.boxes import SECTOR, Crossing, Run, crossing_of
from mlirhlo.lowering.schedule.reads import read_where_written

_WARP = 32
_UNROLLED = 16
"""Elements that a thread moves without a loop."""


@launches("transpose")
def transpose(plan: Plan, ops: Sequence[MapOp], schedule: Schedule) -> None:
    """One launch for each op. Raises `HloError` HLO0806 for a tile of other dimensions than what the op reads."""
    for op in ops:
        crossing = crossing_of(op)
        groups = 0 if crossing is None else len(crossing.sizes)
        if crossing is None or {len(schedule.tile), len(schedule.pitches)} != {groups}:
            raise error("HLO0806", f"`{op.name}` does not read boxes across {groups} dimensions")
        _launch(plan, op, crossing, schedule)


def _launch(plan: Plan, op: MapOp, crossing: Crossing, schedule: Schedule) -> None:
    b = plan.begin(inputs_of(plan, [op]), op.outputs)
    b.read_in_place(read_where_written([op]))
    box = _Box(b, crossing, schedule)
    buffers = box.buffers()
    orders = orders_of(crossing, is_across=bool(schedule.is_across))
    reading = Walk.of(box, crossing.run_read(box.tile), orders[0])
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

        sector = SECTOR // element.byte_size
        box.walk(reading, crossing.strides, start, sector, schedule.row_threads, bring)
    b.barrier()
    sizes = [array(v).element_type.byte_size for v in op.outputs]
    writing = Walk.of(box, crossing.run_written(box.tile), orders[1])

    def compute(at: Mapping[int, Index], linear: Index) -> None:
        indices = box.indices(at, op.space)
        b.e.know_linear(indices, op.space, linear)
        place = box.place(at)
        for (value, map_, _), buffer in zip(crossing.reads, buffers, strict=True):
            element = load_at(b, buffer, place, array(value).element_type)
            b.e.know_read(value, b.e.mapped(map_, indices, op.space), element)
        for value in op.outputs:
            b.write(value, indices, b.e.at(value, indices))

    box.walk(
        writing, crossing.steps, 0, SECTOR // max(sizes), schedule.column_threads or _WARP, compute
    )
    b.launch(box.blocks, schedule.threads)


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
        self.threads = schedule.threads
        counts = [-(-n // t) for n, t in zip(crossing.sizes, self.tile, strict=True)]
        self.blocks = prod(counts)
        origin = Places(b, 0).unlinear(Coordinate(b.block_id()), counts)
        self.origin = [b.mul(c.base, t) for c, t in zip(origin, self.tile, strict=True)]
        self.thread = b.thread_id()

    def buffers(self) -> list[SSAValue]:
        """Shared memory of what is read."""
        count = elements_of(self.tile, self.pitches, self.swizzle)
        elements = [array(v).element_type for v, _, _ in self.crossing.reads]
        return self.b.shared_arrays(elements, count)

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
                test = inside[0] if inside else None
                for other in inside[1:]:
                    test = b.andi(test, other) if test is not None else other
                with nullcontext() if test is None else b.if_(test), b.e.scope():
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
            if sizes[group] % self.tile[group]:
                index = b.index(b.add(self.origin[group], at[group]))
                tests.append(b.cmpi("ult", index, b.index(sizes[group])))
        return at, tests

    def _ends(self, run: Run, place: Index, is_open: bool) -> list[SSAValue]:
        """The test of whether an index of a run is in it, and in the arrays."""
        b = self.b
        if not run.dims:
            return [b.cmpi("ult", b.index(place), b.index(1))] if is_open else []
        last = run.dims[-1]
        size, side = self.crossing.sizes[last], self.tile[last]
        if size % side:
            inner = run.length // side
            length = b.minimum(b.sub(size, self.origin[last]), side)
            return [b.cmpi("ult", b.index(place), b.index(b.mul(length, inner)))]
        return [b.cmpi("ult", b.index(place), b.index(run.length))] if is_open else []

    def _in_run(self, run: Run, place: Index) -> dict[int, Index]:
        """Indices in the box of an index in a run."""
        sides = [self.tile[g] for g in reversed(run.dims)]
        parts = Places(self.b, 0).unlinear(Coordinate(place), sides) if sides else []
        return {g: c.base for g, c in zip(reversed(run.dims), parts, strict=True)}
