"""Kind `scan`: states carried along lines.

A thread a line carries the state from element to element. Where the order of folding is open, `row_threads` threads
scan a line together, tile by tile: each scans its neighbours, the totals of threads are scanned by shuffles, those
of warps through shared memory, and what came before a thread is put in front of its own. A line that begins within a
sector is scanned from the start of the sector on: its first threads have no elements then. `parts` blocks share a
long line: each looks back at those before it (`look_back.py`), so that the line is read once. Short lines, and those
that are no neighbours in memory, are of kind `staged_scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured import ScanOp, sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.kinds.look_back import Chain, clear
from mlirhlo.lowering.gpu.kinds.neighbours import read_neighbours
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.hlo_to_loops.folds import zero_element
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.scans import idle_threads

WARP = 32

State = Sequence[Value]


@launches("scan")
def scan(plan: Plan, ops: Sequence[ScanOp], schedule: Schedule) -> None:
    """One launch for each op, two where blocks share a line."""
    for op in ops:
        if 0 in sizes_of(op.inputs[0]):
            _by_threads(plan, op, schedule)
        elif schedule.row_threads:
            _together(plan, op, schedule)
        else:
            _by_threads(plan, op, schedule)


def _by_threads(plan: Plan, op: ScanOp, schedule: Schedule) -> None:
    sizes = sizes_of(op.inputs[0])
    rest = (*sizes[: op.dim], *sizes[op.dim + 1 :])
    count, length = prod(rest), sizes[op.dim]
    if not count:
        return
    b = plan.begin(inputs_of(plan, [op]), op.outputs)
    per_element = len(op.outputs) - len(op.inits)

    def body(index: SSAValue) -> None:
        at = b.e.unlinear(index, rest)
        state = [b.e.at(value, at) for value in op.inits]
        shapes = [len(v) for v in state]
        parts = [part for v in state for part in v]
        if length:
            with b.loop(0, length, 1, parts, nonempty=True) as loop, b.e.scope():
                along = b.sub(length - 1, loop.index) if op.reverse is not None else loop.index
                here = (*at[: op.dim], along, *at[op.dim :])
                inputs = [b.e.at(value, here) for value in op.inputs]
                made = b.e.body(op.body, [*inputs, *regrouped(loop.carried, shapes)])
                for value, element in zip(op.outputs[:per_element], made, strict=False):
                    b.write(value, here, element)
                loop.carry(*(part for v in made[per_element:] for part in v))
            state = regrouped(loop.results, shapes)
        for value, element in zip(op.outputs[per_element:], state, strict=True):
            b.write(value, at, element)

    threads = schedule.threads or min(THREADS, -(-count // WARP) * WARP)
    b.launch(b.each_thread(count, threads, body), threads)


def _together(plan: Plan, op: ScanOp, schedule: Schedule) -> None:
    kinds = [array(value).element_type for value in op.inits]
    parts = schedule.parts or 1
    if parts > 1:
        words = clear(plan, prod(sizes_of(op.inits[0])) * parts, kinds)
        b = plan.begin(inputs_of(plan, [op]), op.outputs, [words])
        chain = Chain(b, b.memory[words], kinds)
        line = _Line(b, op, schedule, kinds, chain.number)
        line.scan_part(chain)
    else:
        b = plan.begin(inputs_of(plan, [op]), op.outputs)
        line = _Line(b, op, schedule, kinds, b.index(b.block_id()))
        line.scan([b.e.at(value, line.at) for value in op.inits])
    b.launch(line.blocks, schedule.threads)


class _Line:
    """The line of a thread, and its elements of it."""

    def __init__(
        self,
        b: LaunchBuilder,
        op: ScanOp,
        schedule: Schedule,
        kinds: Sequence[PrimitiveType],
        block: SSAValue,
    ) -> None:
        """`block`: the number of the block, in the order of parts of lines."""
        self.b, self.block, self.op, self.kinds = b, block, op, kinds
        self.sizes = sizes_of(op.inputs[0])
        self.threads, self.held = schedule.row_threads, schedule.vector or 1
        self.parts = max(schedule.parts, 1)
        self.length = self.sizes[op.dim]
        self.tile = self.threads * self.held
        rest = (*self.sizes[: op.dim], *self.sizes[op.dim + 1 :])
        count, per_block = prod(rest), schedule.threads // self.threads
        idle = idle_threads(op, self.held)
        self.tiles = -(-(self.length + idle * self.held) // (self.tile * self.parts))
        """Of a part."""
        self.is_open = idle > 0 or self.tile * self.tiles * self.parts > self.length
        self.blocks = -(-count // per_block) * self.parts
        thread = b.thread_id()
        self.lane: Index = b.rem(thread, self.threads)
        self.part: Index = b.rem(block, self.parts)
        number = b.add(b.mul(b.div(block, self.parts), per_block), b.div(thread, self.threads))
        self.number = b.index(number)
        self.valid: SSAValue | None = None
        if count % per_block:
            self.valid = b.cmpi("ult", self.number, b.index(count))
            self.number = b.index(b.minimum(self.number, count - 1))
        self.at = b.e.unlinear(self.number, rest)
        self.idle: Index = 0
        """Threads before the first one that has elements: memory before the line is in its sector."""
        if idle:
            lines = (
                self.number
                if op.reverse is None
                else b.sub(count * (idle + 1), b.add(self.number, 1))
            )
            self.idle = b.rem(b.mul(lines, self.length // self.held), idle + 1)
        self.warps = self.threads // WARP
        self.shared = [
            [b.shared([self.warps], memory_type(kind)) for _ in range(1 + kind.is_complex)]
            for kind in kinds
            if self.warps > 1
        ]

    def combine(self, before: State, after: State) -> list[Value]:
        """The fold of two neighbouring parts."""
        return self.b.e.body(self.op.body, [*after, *before])[: len(self.kinds)]

    def chosen(self, condition: SSAValue, one: State, other: State) -> list[Value]:
        """One of two states."""
        return [
            tuple(self.b.select(condition, v, w) for v, w in zip(x, y, strict=True))
            for x, y in zip(one, other, strict=True)
        ]

    # Elements

    def start(self, tile: Index) -> Index:
        """Where a thread's elements of a tile begin."""
        b = self.b
        number = b.add(b.mul(self.part, self.tiles), tile)
        start = b.add(b.mul(number, self.tile), b.mul(self.lane, self.held))
        return b.sub(start, b.mul(self.idle, self.held))

    def first_thread(self, tile: Index) -> Index:
        """The first thread of the line that has elements of a tile."""
        if self.idle == 0:
            return 0
        b = self.b
        number = b.index(b.add(self.part, tile))
        return b.select(b.cmpi("eq", number, b.index(0)), b.index(self.idle), b.index(0))

    def place(self, position: Index) -> tuple[Index, ...]:
        """Indices of an element by its number in the order of the scan."""
        b, dim = self.b, self.op.dim
        along = b.sub(self.length - 1, position) if self.op.reverse is not None else position
        at = (*self.at[:dim], along, *self.at[dim:])
        if dim == len(self.sizes) - 1:
            b.e.know_linear(at, self.sizes, b.add(b.mul(self.number, self.length), along))
        return at

    def elements(self, tile: Index) -> list[list[Value]]:
        """A thread's elements scanned; those outside of the line are of no meaning."""
        b, start = self.b, self.start(tile)
        places = [self.place(b.add(start, number)) for number in range(self.held)]

        def read() -> list[Value]:
            if self.op.reverse is None:
                for value in self.op.inputs:
                    read_neighbours(b, value, places)
            return [b.e.at(value, at) for at in places for value in self.op.inputs]

        def nothing() -> list[Value]:
            return [zero_element(b.e.elements(), kind) for kind in self.kinds] * self.held

        if self.is_open:
            inside = b.cmpi("ult", b.index(start), b.index(self.length))
            elements = b.e.choose(inside, read, nothing)
        else:
            elements = read()
        scanned: list[list[Value]] = []
        for at in range(0, len(elements), len(self.kinds)):
            state = elements[at : at + len(self.kinds)]
            scanned.append(self.combine(scanned[-1], state) if scanned else state)
        return scanned

    # Threads together

    def across(
        self, own: State, first: Index
    ) -> tuple[list[Value], list[Value], list[Value] | None]:
        """Of what each thread has folded from the `first` one on: that of the warp up to the thread before it, the fold
        of all, and that of the warps before its own."""
        b = self.b
        lane = b.index(b.rem(self.lane, WARP))
        start = b.index(self.in_warp(first))
        total = list(own)
        offset = 1
        while offset < min(self.threads, WARP):
            other = [tuple(b.warp_shuffle("up", part, offset) for part in v) for v in total]
            reaches = b.cmpi("uge", lane, b.index(b.add(start, offset)))
            total = self.chosen(reaches, self.combine(other, total), total)
            offset *= 2
        before = [tuple(b.warp_shuffle("up", part, 1) for part in v) for v in total]
        if self.warps <= 1:
            last = min(self.threads, WARP) - 1
            whole = [tuple(b.warp_shuffle("idx", part, last) for part in v) for v in total]
            return before, whole, None
        warp = b.index(b.div(self.lane, WARP))
        with b.if_(b.cmpi("eq", lane, b.index(WARP - 1))):
            for kind, buffers, value in zip(self.kinds, self.shared, total, strict=True):
                for buffer, part in zip(buffers, value, strict=True):
                    b.store(to_memory(b, part, kind), buffer, [warp])
        b.barrier()
        whole = self._of_warp(0)
        earlier = whole
        for number in range(1, self.warps):
            if number > 1:
                earlier = self.chosen(b.cmpi("uge", warp, b.index(number)), whole, earlier)
            whole = self.combine(whole, self._of_warp(number))
        b.barrier()
        return before, whole, earlier

    def in_warp(self, first: Index) -> Index:
        """The first thread of the own warp that has elements; `first`: that of the line, in its first warp."""
        b = self.b
        if first == 0:
            return 0
        is_later = b.cmpi("uge", b.index(self.lane), b.index(WARP))
        return b.select(is_later, b.index(0), b.index(first))

    def _of_warp(self, number: int) -> list[Value]:
        b = self.b
        return [
            tuple(to_register(b, b.load(buffer, [number]), kind) for buffer in buffers)
            for kind, buffers in zip(self.kinds, self.shared, strict=True)
        ]

    # Lines

    def scan(self, state: State) -> None:
        """Scans the part, of this state before it, and stores."""
        b = self.b
        shapes = [len(v) for v in state]
        flat = [part for v in state for part in v]
        with b.loop(0, self.tiles, 1, flat, nonempty=True) as loop, b.e.scope():
            carried = regrouped(loop.carried, shapes)
            scanned, first = self.elements(loop.index), self.first_thread(loop.index)
            before, whole, earlier = self.across(scanned[-1], first)
            prefix: State = carried
            if earlier is not None:
                is_later = b.cmpi("uge", b.index(self.lane), b.index(WARP))
                prefix = self.chosen(is_later, self.combine(prefix, earlier), prefix)
            is_first = b.cmpi("eq", b.index(b.rem(self.lane, WARP)), b.index(self.in_warp(first)))
            prefix = self.chosen(is_first, prefix, self.combine(prefix, before))
            self._store(loop.index, [self.combine(prefix, own) for own in scanned])
            loop.carry(*(part for v in self.combine(carried, whole) for part in v))

    def _store(self, tile: Index, results: Sequence[State]) -> None:
        b, count = self.b, len(self.kinds)
        start = self.start(tile)
        guard = self.valid
        if self.is_open:
            inside = b.cmpi("ult", b.index(start), b.index(self.length))
            guard = inside if guard is None else b.andi(guard, inside)
        with nullcontext() if guard is None else b.if_(guard), b.e.scope():
            for number, state in enumerate(results):
                here = self.place(b.add(start, number))
                for value, element in zip(self.op.outputs[:count], state, strict=True):
                    b.write(value, here, element)
            if any(value.first_use is not None for value in self.op.outputs[count:]):
                last = b.index(b.add(start, self.held))
                with b.if_(b.cmpi("eq", last, b.index(self.length))):
                    for value, element in zip(self.op.outputs[count:], results[-1], strict=True):
                        b.write(value, self.at, element)

    def scan_part(self, chain: Chain) -> None:
        """Scans a part that threads hold in registers, after what the parts before it fold to."""
        b = self.b
        tiles: list[list[list[Value]]] = []
        total: State | None = None
        for tile in range(self.tiles):
            scanned, first = self.elements(tile), self.first_thread(tile)
            before, whole, earlier = self.across(scanned[-1], first)
            lane = b.index(self.lane)
            is_first = b.cmpi("eq", b.index(b.rem(lane, WARP)), b.index(self.in_warp(first)))
            prefix: State = before
            if earlier is not None:
                is_later = b.cmpi("uge", lane, b.index(WARP))
                joined = self.chosen(is_first, earlier, self.combine(earlier, before))
                prefix = self.chosen(is_later, joined, before)
            is_open = b.cmpi("eq", lane, b.index(first))
            if total is None:
                own = [self.chosen(is_open, v, self.combine(prefix, v)) for v in scanned]
                total = whole
            else:
                joined = self.chosen(is_open, total, self.combine(total, prefix))
                own = [self.combine(joined, v) for v in scanned]
                total = self.combine(total, whole)
            tiles.append(own)
        assert total is not None
        init = [b.e.at(value, self.at) for value in self.op.inits]
        state = chain.state_before(self.part, self.lane, init, total, self.combine)
        for tile, own in enumerate(tiles):
            self._store(tile, [self.combine(state, v) for v in own])
