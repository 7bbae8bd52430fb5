"""Kind `staged_scan`: states carried along lines of shared memory.

A block brings a tile of lines there as it lies in memory, whole sectors at a time: `tile` has so many indices of the
outer dimensions, steps along the line, and indices of the inner dimensions. `row_threads` threads share a line: each
folds its part, then scans it, of what the parts before it fold to. Results go back the same way, and tiles of longer
lines follow one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import ScanOp, sizes_of
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.kinds.lines import Elements, SharedElements
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.folds import zero_element
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.scans import is_foldable

_UNROLLED = 8


@launches("staged_scan")
def staged_scan(plan: Plan, ops: Sequence[ScanOp], schedule: Schedule) -> None:
    """One launch for each op."""
    for op in ops:
        b = plan.begin(inputs_of(plan, [op]), op.outputs)
        tiles = _Tiles(b, op, schedule)
        tiles.scan()
        b.launch(tiles.blocks, schedule.threads)


class _Tiles:
    """The tiles of a block."""

    def __init__(self, b: LaunchBuilder, op: ScanOp, schedule: Schedule) -> None:
        self.b, self.op, self.threads = b, op, schedule.threads
        self.tile, self.pitches = schedule.tile, schedule.pitches
        _, self.steps, columns = self.tile
        self.sizes = sizes_of(op.inputs[0])
        self.length = self.sizes[op.dim]
        self.outer, self.inner = self.sizes[: op.dim], self.sizes[op.dim + 1 :]
        self.limits = (prod(self.outer), self.length, prod(self.inner))
        self.tiles = -(-self.length // self.steps)
        groups = -(-self.limits[2] // columns)
        self.blocks = -(-self.limits[0] // self.tile[0]) * groups
        block = b.index(b.block_id())
        self.first = (
            b.mul(b.div(block, groups), self.tile[0]),
            b.mul(b.rem(block, groups), columns),
        )
        """Index of the outer and of the inner dimensions."""
        self.sharing = max(schedule.row_threads, 1)
        """Threads of a line."""
        lines = self.tile[0] * columns
        self.thread = b.thread_id()
        self.line, self.part = b.rem(self.thread, lines), b.div(self.thread, lines)
        """The thread's, while it scans."""
        self.at = (b.div(self.line, columns), b.rem(self.line, columns))
        bounds = [(self.part, self.sharing, self.sharing * lines != self.threads)]
        for first, own, limit, size in zip(
            self.first, self.at, self.limits[::2], self.tile[::2], strict=True
        ):
            bounds.append((b.add(first, own), limit, limit % size > 0))
        self.is_scanning = self._inside(bounds)
        self.kept = len(op.outputs) - len(op.inits)
        """Outputs that have elements for each step."""
        held = sum((n - 1) * pitch for n, pitch in zip(self.tile, self.pitches, strict=True)) + 1
        self.inputs = SharedElements(b, [array(v) for v in op.inputs], held)
        self.outputs = self.inputs
        if not is_foldable(op):
            self.outputs = SharedElements(b, [array(v) for v in op.outputs[: self.kept]], held)
        states = [array(v) for v in op.inits]
        self.totals = SharedElements(b, states, lines * self.sharing)
        self.carried = SharedElements(b, states, lines)

    # Where elements are

    def _inside(self, bounds: Sequence[tuple[Index, int, bool | int]]) -> SSAValue | None:
        """Whether indices are below their limits, of those that need a test; None where none does."""
        b = self.b
        test: SSAValue | None = None
        for index, limit, is_open in bounds:
            if is_open:
                here = b.cmpi("ult", b.index(index), b.index(limit))
                test = here if test is None else b.andi(test, here)
        return test

    def _where(self, test: SSAValue | None) -> AbstractContextManager[None]:
        return nullcontext() if test is None else self.b.if_(test)

    def _place(self, outer: Index, along: Index, inner: Index) -> tuple[Index, ...]:
        """Indices of an element, by the number of each group of dimensions."""
        b = self.b
        at = (*b.e.unlinear(b.index(outer), self.outer), along)
        at = (*at, *b.e.unlinear(b.index(inner), self.inner))
        row = b.add(b.mul(outer, self.length), along)
        b.e.know_linear(at, self.sizes, b.add(b.mul(row, self.limits[2]), inner))
        return at

    def _index(self, outer: Index, step: Index, inner: Index) -> Index:
        """Where an element is in shared memory."""
        b, (far, near, last) = self.b, self.pitches
        return b.add(b.add(b.mul(outer, far), b.mul(step, near)), b.mul(inner, last))

    def _each(self, tile: Index, body: Callable[[tuple[Index, ...], Index], None]) -> None:
        """What threads do for each element of a tile, as they lie in memory."""
        b, (outers, steps, columns) = self.b, self.tile
        count = outers * steps * columns

        def one(number: Index) -> None:
            element = b.add(b.mul(number, self.threads), self.thread)
            row, column = b.div(element, columns), b.rem(element, columns)
            line, step = b.div(row, steps), b.rem(row, steps)
            outer, inner = b.add(self.first[0], line), b.add(self.first[1], column)
            along = b.add(self._start(tile), step)
            bounds = [
                (element, count, count % self.threads),
                (along, self.length, self.length % steps),
            ]
            bounds += [(outer, self.limits[0], self.limits[0] % outers)]
            bounds += [(inner, self.limits[2], self.limits[2] % columns)]
            with self._where(self._inside(bounds)), b.e.scope():
                body(self._place(outer, along, inner), self._index(line, step, column))

        rounds = -(-count // self.threads)
        if rounds <= _UNROLLED:
            for number in range(rounds):
                one(number)
            return
        with b.loop(0, rounds, nonempty=True) as number, b.e.scope():
            one(number)

    def _start(self, tile: Index) -> Index:
        """The index along the line at which a tile starts in memory; it may be negative where scans go to the start."""
        b = self.b
        done = b.mul(tile, self.steps)
        return done if self.op.reverse is None else b.sub(self.length - self.steps, done)

    def _own(self, step: Index) -> Index:
        """Where the thread's element of a step is in shared memory."""
        if self.op.reverse is not None:
            step = self.b.sub(self.steps - 1, step)
        return self._index(self.at[0], step, self.at[1])

    # Scans

    def scan(self) -> None:
        """All tiles of the block."""
        b, e, op = self.b, self.b.e, self.op
        if self.tiles > 1:
            with b.if_(b.cmpi("eq", b.index(self.part), b.index(0))), e.scope():
                self.carried.store(self.line, self._initial())
        with (
            b.loop(0, self.tiles, nonempty=True) if self.tiles > 1 else nullcontext(0) as tile,
            e.scope(),
        ):
            self._each(
                tile,
                lambda at, index: self.inputs.store(index, [e.at(v, at) for v in op.inputs]),
            )
            b.barrier()
            self._scan_tile(tile)
            self._each(tile, self._write)
            if self.tiles > 1:
                b.barrier()

    def _write(self, at: tuple[Index, ...], index: Index) -> None:
        values = self.outputs.load(index)
        for value, element in zip(self.op.outputs[: self.kept], values, strict=True):
            self.b.write(value, at, element)

    def _rest(self) -> tuple[Index, ...]:
        """Indices of the thread's line; of the last one for threads beyond it."""
        b, dim = self.b, self.op.dim
        outer, inner = (
            b.minimum(b.add(first, own), limit - 1)
            for first, own, limit in zip(self.first, self.at, self.limits[::2], strict=True)
        )
        at = self._place(outer, 0, inner)
        return (*at[:dim], *at[dim + 1 :])

    def _initial(self) -> list[Value]:
        at = self._rest()
        return [self.b.e.at(value, at) for value in self.op.inits]

    def _step(self, inputs: Elements, state: Elements) -> list[Value]:
        """Elements of outputs, then the state after a step."""
        return self.b.e.body(self.op.body, [*inputs, *state])

    def _folded(
        self,
        first: Index,
        end: Index,
        state: Sequence[Value],
        step: Callable[[SSAValue, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A state carried by a thread from a step to another."""
        shapes = [len(v) for v in state]
        parts = [part for v in state for part in v]
        b = self.b
        with b.loop(first, end, 1, parts) as loop, b.e.scope():
            after = step(loop.index, regrouped(loop.carried, shapes))
            loop.carry(*(part for v in after for part in v))
        return regrouped(loop.results, shapes)

    def _scan_tile(self, tile: Index) -> None:
        """The tile in shared memory, scanned there."""
        b, e, count = self.b, self.b.e, len(self.op.inits)
        each = -(-self.steps // self.sharing)
        whole: Index = self.steps
        if self.length % self.steps:
            whole = b.minimum(b.sub(self.length, b.mul(tile, self.steps)), self.steps)
        first = b.index(b.minimum(b.mul(self.part, each), whole))
        end = b.index(b.minimum(b.add(first, each), whole))

        def fold(step: SSAValue, state: list[Value]) -> list[Value]:
            return self._step(self.inputs.load(self._own(step)), state)[:count]

        has_some = b.cmpi("ult", first, end)
        is_scanning = has_some if self.is_scanning is None else b.andi(has_some, self.is_scanning)
        if self.sharing > 1:
            with b.if_(is_scanning), e.scope():
                one = self.inputs.load(self._own(first))
                total = self._folded(b.add(first, 1), end, one, fold)
                self.totals.store(self.thread, total)
            b.barrier()
        lines = self.tile[0] * self.tile[2]

        def join(part: SSAValue, state: list[Value]) -> list[Value]:
            other = self.totals.load(b.add(b.mul(part, lines), self.line))
            return self._step(other, state)[:count]

        def scan(step: SSAValue, state: list[Value]) -> list[Value]:
            values = self._step(self.inputs.load(self._own(step)), state)
            self.outputs.store(self._own(step), values[: self.kept])
            return values[self.kept :]

        def scanned() -> list[Value]:
            state = self.carried.load(self.line) if self.tiles > 1 else self._initial()
            if self.sharing > 1:
                state = self._folded(b.constant(0, INDEX), self.part, state, join)
            return self._folded(first, end, state, scan)

        def unscanned() -> list[Value]:
            return [
                zero_element(e.elements(), array(value).element_type) for value in self.op.inits
            ]

        state = e.choose(is_scanning, scanned, unscanned)
        b.barrier()
        is_last = b.andi(is_scanning, b.cmpi("eq", end, b.index(whole)))
        self._finish(tile, is_last, state)

    def _finish(self, tile: Index, is_last: SSAValue, state: Sequence[Value]) -> None:
        """Keeps the state after a tile, and writes that after the line."""
        b, finals = self.b, self.op.outputs[self.kept :]
        if self.tiles > 1:
            with b.if_(is_last), b.e.scope():
                self.carried.store(self.line, state)
        if all(value.first_use is None for value in finals):
            return
        is_end = b.cmpi("eq", b.index(tile), b.index(self.tiles - 1))
        with b.if_(b.andi(is_last, is_end)), b.e.scope():
            at = self._rest()
            for value, element in zip(finals, state, strict=True):
                b.write(value, at, element)
