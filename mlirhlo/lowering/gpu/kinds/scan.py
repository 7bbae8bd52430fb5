"""Kind `scan`: states carried along lines.

A thread a line carries the state from element to element. Where the order of folding is open, `row_threads` threads
scan a line together, tile by tile: each scans its neighbours, the totals of threads are scanned by shuffles, those
of warps through shared memory, and what came before a thread is put in front of its own. `parts` blocks share a
long line: a launch folds all parts but the last, then each block begins with the fold of the parts before its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured import ScanOp, sizes_of
from mlirhlo.lowering.builder import Index, memref_of
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule

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
    parts = max(schedule.parts, 1)
    kinds = [array(value).element_type for value in op.inits]
    lines = prod(sizes_of(op.inits[0]))
    totals = [
        [
            plan.workspace(memref_of(memory_type(kind), lines * parts))
            for _ in range(1 + kind.is_complex)
        ]
        for kind in kinds
        if parts > 1
    ]
    numbers = [number for row in totals for number in row]
    if parts > 1:
        b = plan.begin(inputs_of(plan, [op]), (), numbers)
        line = _Line(b, op, schedule, kinds)
        state = line.total()
        with b.if_(b.cmpi("eq", b.index(line.lane), b.index(0))):
            at = b.add(b.mul(line.number, parts), line.part)
            for kind, buffers, value in zip(kinds, totals, state, strict=True):
                for number, part in zip(buffers, value, strict=True):
                    b.store(to_memory(b, part, kind), b.memory[number], [at])
        b.launch(lines * parts, schedule.threads)
    b = plan.begin(inputs_of(plan, [op]), op.outputs, (), numbers)
    line = _Line(b, op, schedule, kinds)
    state = [b.e.at(value, line.at) for value in op.inits]
    if parts > 1:
        state = line.after_parts(state, totals)
    line.scan(state)
    b.launch(line.blocks, schedule.threads)


class _Line:
    """The line of a thread, and its elements of it."""

    def __init__(
        self, b: LaunchBuilder, op: ScanOp, schedule: Schedule, kinds: Sequence[PrimitiveType]
    ) -> None:
        self.b, self.op, self.kinds = b, op, kinds
        self.sizes = sizes_of(op.inputs[0])
        self.threads, self.held = schedule.row_threads, schedule.vector or 1
        self.parts = max(schedule.parts, 1)
        self.length = self.sizes[op.dim]
        self.tile = self.threads * self.held
        self.tiles = -(-self.length // (self.tile * self.parts))
        """Of a part."""
        rest = (*self.sizes[: op.dim], *self.sizes[op.dim + 1 :])
        count, per_block = prod(rest), schedule.threads // self.threads
        self.blocks = -(-count // per_block) * self.parts
        thread, block = b.thread_id(), b.index(b.block_id())
        self.lane: Index = b.rem(thread, self.threads)
        self.part: Index = b.rem(block, self.parts)
        number = b.add(b.mul(b.div(block, self.parts), per_block), b.div(thread, self.threads))
        self.number = b.index(number)
        self.valid: SSAValue | None = None
        if count % per_block:
            self.valid = b.cmpi("ult", self.number, b.index(count))
            self.number = b.index(b.minimum(self.number, count - 1))
        self.at = b.e.unlinear(self.number, rest)
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
        return b.add(b.mul(number, self.tile), b.mul(self.lane, self.held))

    def place(self, position: Index) -> tuple[Index, ...]:
        """Indices of an element by its number in the order of the scan."""
        b, dim = self.b, self.op.dim
        along = b.sub(self.length - 1, position) if self.op.reverse is not None else position
        at = (*self.at[:dim], along, *self.at[dim:])
        if dim == len(self.sizes) - 1:
            b.e.know_linear(at, self.sizes, b.add(b.mul(self.number, self.length), along))
        return at

    def elements(self, tile: Index) -> list[list[Value]]:
        """A thread's elements scanned; behind the end the last one again."""
        b, start = self.b, self.start(tile)
        found: list[list[Value]] = []
        for number in range(self.held):
            position = b.add(start, number)
            if self.tile * self.tiles * self.parts > self.length:
                position = b.minimum(position, self.length - 1)
            here = self.place(position)
            state = [b.e.at(value, here) for value in self.op.inputs]
            found.append(self.combine(found[-1], state) if found else state)
        return found

    # Threads together

    def across(self, own: State) -> tuple[list[Value], list[Value], list[Value] | None]:
        """Of what each thread has folded: that of the warp up to the thread before it, the fold of all, and that
        of the warps before its own."""
        b = self.b
        lane = b.index(b.rem(self.lane, WARP))
        total = list(own)
        offset = 1
        while offset < min(self.threads, WARP):
            other = [tuple(b.warp_shuffle("up", part, offset) for part in v) for v in total]
            reaches = b.cmpi("uge", lane, b.index(offset))
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
            scanned = self.elements(loop.index)
            before, whole, earlier = self.across(scanned[-1])
            prefix: State = carried
            if earlier is not None:
                is_later = b.cmpi("uge", b.index(self.lane), b.index(WARP))
                prefix = self.chosen(is_later, self.combine(prefix, earlier), prefix)
            is_first = b.cmpi("eq", b.index(b.rem(self.lane, WARP)), b.index(0))
            prefix = self.chosen(is_first, prefix, self.combine(prefix, before))
            self._store(loop.index, [self.combine(prefix, own) for own in scanned])
            loop.carry(*(part for v in self.combine(carried, whole) for part in v))

    def _store(self, tile: Index, results: Sequence[State]) -> None:
        b, count = self.b, len(self.kinds)
        start = self.start(tile)
        is_open = self.tile * self.tiles * self.parts > self.length
        for number, state in enumerate(results):
            position = b.index(b.add(start, number))
            guard = self.valid
            if is_open:
                inside = b.cmpi("ult", position, b.index(self.length))
                guard = inside if guard is None else b.andi(guard, inside)
            with nullcontext() if guard is None else b.if_(guard), b.e.scope():
                here = self.place(position)
                for value, element in zip(self.op.outputs[:count], state, strict=True):
                    b.write(value, here, element)
                if any(value.first_use is not None for value in self.op.outputs[count:]):
                    with b.if_(b.cmpi("eq", position, b.index(self.length - 1))):
                        for value, element in zip(self.op.outputs[count:], state, strict=True):
                            b.write(value, self.at, element)

    def total(self) -> list[Value]:
        """The fold of the part; of the last one, which may end early, nothing that is meant to be used."""
        b = self.b
        _, state, _ = self.across(self.elements(0)[-1])
        shapes = [len(v) for v in state]
        flat = [part for v in state for part in v]
        with b.loop(1, self.tiles, 1, flat) as loop, b.e.scope():
            _, whole, _ = self.across(self.elements(loop.index)[-1])
            after = self.combine(regrouped(loop.carried, shapes), whole)
            loop.carry(*(part for v in after for part in v))
        return regrouped(loop.results, shapes)

    def after_parts(self, state: State, totals: Sequence[Sequence[int]]) -> list[Value]:
        """A state after all parts before this one."""
        b = self.b
        shapes = [len(v) for v in state]
        flat = [part for v in state for part in v]
        with b.loop(0, self.part, 1, flat) as loop, b.e.scope():
            at = b.add(b.mul(self.number, self.parts), loop.index)
            stored = [
                tuple(to_register(b, b.load(b.memory[n], [at]), kind) for n in buffers)
                for kind, buffers in zip(self.kinds, totals, strict=True)
            ]
            after = self.combine(regrouped(loop.carried, shapes), stored)
            loop.carry(*(part for v in after for part in v))
        return regrouped(loop.results, shapes)
