"""Kind `rows`: folds along the minor dimensions, and what is computed from them, with the row read once.

The results have the shape of the rows (R), or of the rows with their elements (R, F). `row_threads` threads compute a
row together: each holds some of its elements in registers, folds them, and combines what it has with the others by
shuffles, beyond a warp through shared memory. A block computes several short rows; `parts` blocks share a long one,
whose folds come together in a second launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import FoldOp, sizes_of
from mlirhlo.lowering.builder import Index, memref_of
from mlirhlo.lowering.gpu.elements import array, fold_step, initial, regrouped
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import folds_below

WARP = 32
SECTOR = 32
"""Bytes of memory that are moved together."""
UNROLLED = 32
"""Elements of a row that a thread holds in registers."""


@launches("rows")
def rows(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch, or two where blocks share a row."""
    folds = folds_below(ops)
    if schedule.parts > 1:
        _split(plan, ops, folds, schedule)
        return
    outputs = [value for op in ops for value in op.results]
    b = plan.begin(inputs_of(plan, ops, ops), outputs)
    read = [array(v).element_type.byte_size for f in folds for v in f.inputs]
    row = Row(b, folds[0], schedule, folds[0].folded, SECTOR // max(read, default=SECTOR))
    for fold in folds:
        state = row.folded(fold)
        b.e.know(fold, row.indices, b.e.body(fold.combiner, [*initial(b.e, fold), *state]))
    row.store(outputs)
    b.launch(row.blocks, schedule.threads)


class Row:
    """The row of a thread, and its elements of it."""

    def __init__(
        self,
        b: LaunchBuilder,
        fold: FoldOp,
        schedule: Schedule,
        folded: Sequence[int],
        sector: int = 1,
    ) -> None:
        """`sector`: elements of a sector, where rows are read from memory."""
        self.b, self.sizes, self.folds = b, sizes_of(fold.outputs[0]), tuple(folded)
        self.threads, self.vector = schedule.row_threads, schedule.vector or 1
        self.warps = schedule.threads // WARP
        """Of the block."""
        self.length = prod(folded)
        count = prod(self.sizes)
        per_block = schedule.threads // self.threads
        self.blocks = -(-count // per_block)
        thread = b.thread_id()
        self.thread = thread
        self.lane = b.index(b.rem(thread, self.threads))
        self.number = b.index(
            b.add(b.mul(b.block_id(), per_block), b.div(thread, self.threads))
            if per_block > 1
            else b.block_id()
        )
        self.valid: SSAValue | None = None
        if count % per_block:
            # All threads of a block go through its barriers: those without a row compute the last one.
            self.valid = b.cmpi("ult", self.number, b.index(count))
            self.number = b.index(b.minimum(self.number, count - 1))
        self.indices = b.e.unlinear(self.number, self.sizes)
        self.first: Index = 0
        """Index of the first element, of those that a row is folded from."""
        span = self.threads * self.vector
        self.is_shifted = self.length % sector > 0 and sector <= span <= self.length // 2
        """Whether threads start before the row, so that they read and write from the starts of sectors."""
        self.shift = b.index(0)
        if self.is_shifted:
            self.shift = b.index(b.rem(b.mul(self.number, self.length), sector))
        self.reach = sector - 1 if self.is_shifted else 0
        self._chunks: list[tuple[list[tuple[Index, ...]], SSAValue | None]] = []

    # Elements

    @property
    def rounds(self) -> int:
        """How many elements, or vectors of them, a thread has."""
        return -(-(self.length + self.reach) // (self.threads * self.vector))

    @property
    def is_held(self) -> bool:
        """Whether a thread's elements are all in registers."""
        return self.length <= self.threads * UNROLLED

    def chunk(self, number: Index) -> tuple[list[tuple[Index, ...]], SSAValue | None]:
        """Indices of neighbours, and whether they are in the row where that is not sure."""
        b = self.b
        span = self.threads * self.vector
        start = b.add(b.mul(number, span), b.mul(self.lane, self.vector))
        inside: SSAValue | None = None
        if self.is_shifted:
            is_before = b.cmpi("ult", b.index(start), self.shift)
            start = b.index(b.sub(start, self.shift))
            inside = b.cmpi("ult", start, b.index(self.length))
            end = b.index(b.minimum(start, self.length - self.vector))
            start = b.select(is_before, b.index(0), end)
        elif not isinstance(number, int) or (number + 1) * span > self.length:
            if self.length % span:
                inside = b.cmpi("ult", b.index(start), b.index(self.length))
                start = b.minimum(start, self.length - self.vector)
        start = b.add(start, self.first)
        folded = b.e.unlinear(b.index(start), self.folds)
        space = (*self.sizes, *self.folds)
        at = (*self.indices, *folded)
        linear = b.add(b.mul(self.number, prod(self.folds)), start)
        b.e.know_linear(at, space, linear)
        return [b.e.beside(at, v, space) for v in range(self.vector)], inside

    def chunks(self) -> list[tuple[list[tuple[Index, ...]], SSAValue | None]]:
        """All of a thread's elements."""
        if not self._chunks:
            self._chunks = [self.chunk(k) for k in range(self.rounds)]
        return self._chunks

    # Folding

    def folded(self, fold: FoldOp) -> list[Value]:
        """The elements of a row folded, without the initial values; all threads of the row have it."""
        return self.together(fold, self.own(fold))

    def own(self, fold: FoldOp) -> list[Value]:
        """A thread's elements folded."""
        if self.is_held:
            state: Sequence[Value] | None = None
            chunks = self.chunks()
            if self.is_shifted:  # the second chunk is in the row, the first one starts before it
                chunks = [chunks[1], chunks[0], *chunks[2:]]
            for neighbours, inside in chunks:
                state = self._taken(fold, neighbours, inside, state)
            assert state is not None
            return list(state)
        b = self.b
        first, *rest = (1, 0) if self.is_shifted else (0,)
        state = self._taken(fold, self.chunk(first)[0], None, None)
        for number in rest:
            state = self._taken(fold, *self.chunk(number), state)
        shapes = [len(v) for v in state]
        parts = [part for v in state for part in v]
        with b.loop(1 + len(rest), self.rounds, 1, parts) as loop, b.e.scope():
            neighbours, inside = self.chunk(loop.index)
            state = self._taken(fold, neighbours, inside, regrouped(loop.carried, shapes))
            loop.carry(*(part for v in state for part in v))
        return regrouped(loop.results, shapes)

    def _taken(
        self,
        fold: FoldOp,
        neighbours: Sequence[tuple[Index, ...]],
        inside: SSAValue | None,
        state: Sequence[Value] | None,
    ) -> list[Value]:
        b = self.b
        after = state
        for at in neighbours:
            after = fold_step(b.e, fold, at, after)
        assert after is not None
        if inside is None or state is None:
            return list(after)
        return [
            tuple(b.select(inside, v, w) for v, w in zip(x, y, strict=True))
            for x, y in zip(after, state, strict=True)
        ]

    def together(self, fold: FoldOp, state: Sequence[Value]) -> list[Value]:
        """What each thread of a row has, combined; all of them get it."""
        b = self.b
        state = self._in_warp(fold, state, min(self.threads, WARP))
        warps = self.threads // WARP
        if warps <= 1:
            return list(state)
        shapes = [array(value).element_type for value in fold.outputs]
        stored = [
            [b.shared([self.warps], memory_type(shape)) for _ in value]
            for shape, value in zip(shapes, state, strict=True)
        ]
        warp = b.index(b.div(self.thread, WARP))
        lane = b.index(b.rem(self.thread, WARP))
        with b.if_(b.cmpi("eq", lane, b.index(0))):
            for shape, buffers, value in zip(shapes, stored, state, strict=True):
                for buffer, part in zip(buffers, value, strict=True):
                    b.store(to_memory(b, part, shape), buffer, [warp])
        b.barrier()
        first = b.sub(warp, b.rem(warp, warps)) if self.warps > warps else 0
        source = b.add(first, b.rem(lane, warps))
        loaded = [
            tuple(to_register(b, b.load(buffer, [source]), shape) for buffer in buffers)
            for shape, buffers in zip(shapes, stored, strict=True)
        ]
        return self._in_warp(fold, loaded, warps)

    def _in_warp(self, fold: FoldOp, state: Sequence[Value], threads: int) -> list[Value]:
        b, offset = self.b, threads // 2
        state = list(state)
        while offset:
            other = [tuple(b.warp_shuffle("xor", part, offset) for part in v) for v in state]
            state = b.e.body(fold.combiner, [*state, *other])
            offset //= 2
        return state

    # Results

    def store(self, outputs: Sequence[SSAValue]) -> None:
        """Stores results of the rows' shape, by one thread, and of their elements."""
        b = self.b
        space = (*self.sizes, *self.folds)
        of_rows = [v for v in outputs if sizes_of(v) == self.sizes]
        of_elements = [v for v in outputs if v not in of_rows and sizes_of(v) == space]
        if of_elements:

            def write(at: tuple[Index, ...]) -> None:
                for value in of_elements:
                    b.write(value, at, b.e.at(value, at))

            self._each(write)
        if of_rows:
            is_first = b.cmpi("eq", self.lane, b.index(0))
            if self.valid is not None:
                is_first = b.andi(is_first, self.valid)
            guard = b.if_(is_first) if self.threads > 1 or self.valid is not None else nullcontext()
            with guard, b.e.scope():
                for value in of_rows:
                    b.write(value, self.indices, b.e.at(value, self.indices))

    def _each(self, write: Callable[[tuple[Index, ...]], object]) -> None:
        """Does something for each of a thread's elements that is in the row."""
        b = self.b

        def one(neighbours: Sequence[tuple[Index, ...]], inside: SSAValue | None) -> None:
            guard = inside
            if self.valid is not None:
                guard = self.valid if inside is None else b.andi(inside, self.valid)
            with nullcontext() if guard is None else b.if_(guard), b.e.scope():
                for at in neighbours:
                    write(at)

        if self.is_held:
            for neighbours, inside in self.chunks():
                one(neighbours, inside)
            return
        with b.loop(0, self.rounds, nonempty=True) as number, b.e.scope():
            one(*self.chunk(number))


def _split(
    plan: Plan, ops: Sequence[Operation], folds: Sequence[FoldOp], schedule: Schedule
) -> None:
    """Blocks fold parts of a row, then one block for each row folds those."""
    (fold,) = folds
    parts, sizes = schedule.parts, sizes_of(fold.outputs[0])
    count = prod(sizes)
    kinds = [array(value).element_type for value in fold.outputs]
    partial = [
        [
            plan.workspace(memref_of(memory_type(kind), count * parts))
            for _ in range(1 + kind.is_complex)
        ]
        for kind in kinds
    ]
    numbers = [n for row in partial for n in row]
    b = plan.begin(inputs_of(plan, [fold]), (), numbers)
    piece = _Part(b, fold, schedule)
    state = piece.folded(fold)
    with b.if_(b.cmpi("eq", piece.lane, b.index(0))):
        at = b.add(b.mul(piece.number, parts), piece.part)
        for kind, buffers, value in zip(kinds, partial, state, strict=True):
            for number, part in zip(buffers, value, strict=True):
                b.store(to_memory(b, part, kind), b.memory[number], [at])
    b.launch(count * parts, schedule.threads)

    outputs = [value for op in ops for value in op.results]
    b = plan.begin(inputs_of(plan, ops, ops), outputs, (), numbers)
    threads = 1 << (parts.bit_length() - 1)
    threads = min(threads, 1024)
    second = Schedule(0, "rows", threads=max(threads, WARP), row_threads=threads)
    row = Row(b, fold, second, (parts,))

    def loaded(j: Index) -> list[Value]:
        at = b.add(b.mul(row.number, parts), j)
        return [
            tuple(to_register(b, b.load(b.memory[n], [at]), kind) for n in buffers)
            for kind, buffers in zip(kinds, partial, strict=True)
        ]

    state = loaded(row.lane)
    shapes = [len(v) for v in state]
    flat = [part for v in state for part in v]
    with b.loop(b.add(row.lane, threads), parts, threads, flat) as loop, b.e.scope():
        after = b.e.body(fold.combiner, [*regrouped(loop.carried, shapes), *loaded(loop.index)])
        loop.carry(*(part for v in after for part in v))
    state = row.together(fold, regrouped(loop.results, shapes))
    b.e.know(fold, row.indices, b.e.body(fold.combiner, [*initial(b.e, fold), *state]))
    row.store(outputs)
    b.launch(row.blocks, second.threads)


class _Part(Row):
    """One part of a row: a block of its own."""

    def __init__(self, b: LaunchBuilder, fold: FoldOp, schedule: Schedule) -> None:
        super().__init__(b, fold, schedule, fold.folded)
        block = b.index(b.block_id())
        self.number = b.index(b.div(block, schedule.parts))
        self.part = b.rem(block, schedule.parts)
        self.valid = None
        self.indices = b.e.unlinear(self.number, self.sizes)
        self.length //= schedule.parts
        self.first = b.mul(self.part, self.length)
