"""The row of a thread: its elements, folds of them with the other threads of the row, and results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import FoldOp, sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.clusters import cluster_barrier, cluster_load
from mlirhlo.lowering.gpu.element_ops import fold_step
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import HELD, WARP


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
        self.count = prod(self.sizes)
        """Rows."""
        self.cluster = max(self.threads // schedule.threads, 1)
        """Blocks that compute a row together."""
        self.per_block = max(schedule.threads // self.threads, 1)
        self.rounds_of_rows = max(schedule.rounds, 1)
        self.blocks = -(-self.count // (self.per_block * self.rounds_of_rows))
        """Or clusters of blocks."""
        self.thread = b.thread_id()
        self.lane = b.index(b.rem(self.thread, self.threads))
        self.team = b.index(b.div(self.thread, self.threads))
        """Number of the row among those that the block computes at once."""
        self.leads = b.cmpi("eq", self.lane, b.index(0))
        """Whether a thread is the first one of the block's for its row."""
        self.rank: Index = 0
        """Number of the block in its cluster."""
        if self.cluster > 1:
            self.rank = b.index(b.rem(b.block_id(), self.cluster))
            self.lane = b.index(b.add(b.mul(self.rank, schedule.threads), self.thread))
        self.first: Index = 0
        """Index of the first element, of those that a row is folded from."""
        span = self.threads * self.vector
        self.sector = sector
        self.is_shifted = self.length % sector > 0 and sector <= span <= self.length // 2
        """Whether threads start before the row, so that they read and write from the starts of sectors."""
        self.reach = sector - 1 if self.is_shifted else 0
        self.number: SSAValue
        self.valid: SSAValue | None = None
        self.indices: tuple[Index, ...] = ()
        self.shift: Index = 0
        self._barriers = 0
        self._columns: dict[int, tuple[list[tuple[Index, ...]], Index, SSAValue | None]] = {}
        self._chunks: list[tuple[list[tuple[Index, ...]], SSAValue | None]] = []

    @contextmanager
    def each(self) -> Generator[None]:
        """Code for each row of the threads."""
        b = self.b
        block = b.div(b.block_id(), self.cluster)
        first = b.add(b.mul(block, self.per_block), self.team if self.per_block > 1 else 0)
        if self.rounds_of_rows == 1:
            self.begin(first)
            yield
            return
        if self.is_held and not self.is_shifted:
            self.columns()
        with b.loop(0, self.rounds_of_rows, nonempty=True) as round_, b.e.scope():
            self.begin(b.add(first, b.mul(round_, self.blocks * self.per_block)))
            yield
            if (
                self.threads > WARP and self._barriers < 2
            ):  # the next row takes the same shared memory
                b.barrier()

    def begin(self, number: Index) -> None:
        """Code from here on is for the row of this number."""
        b = self.b
        self._chunks, self._barriers = [], 0
        self.number = b.index(number)
        if self.count % (self.per_block * self.blocks * self.rounds_of_rows):
            # All threads of a block go through its barriers: those without a row compute the last one.
            self.valid = b.cmpi("ult", self.number, b.index(self.count))
            self.number = b.index(b.minimum(self.number, self.count - 1))
        self.indices = b.e.unlinear(self.number, self.sizes)
        if self.is_shifted:
            groups = b.mul(self.number, self.length // self.vector)
            self.shift = b.index(b.rem(groups, self.sector // self.vector))

    # Elements

    @property
    def rounds(self) -> int:
        """How many elements, or vectors of them, a thread has."""
        return -(-(self.length + self.reach) // (self.threads * self.vector))

    @property
    def is_held(self) -> bool:
        """Whether a thread's elements are all in registers."""
        return self.length <= self.threads * HELD

    def columns(self) -> None:
        """Computes where a thread's elements are in a row once for all rows."""
        self._columns = {k: self._column(k) for k in range(self.rounds)}

    def _column(self, number: Index) -> tuple[list[tuple[Index, ...]], Index, SSAValue | None]:
        """Indices of neighbours in a row, that of the first one in the order of memory, and whether they are in the
        row where that is not sure."""
        b, groups = self.b, self.length // self.vector
        start = b.add(b.mul(number, self.threads), self.lane)
        inside: SSAValue | None = None
        if self.is_shifted:
            shift = b.index(self.shift)
            is_before = b.cmpi("ult", b.index(start), shift)
            start = b.index(b.sub(start, shift))
            inside = b.cmpi("ult", start, b.index(groups))
            start = b.select(is_before, b.index(0), b.index(b.minimum(start, groups - 1)))
        elif not isinstance(number, int) or (number + 1) * self.threads > groups:
            if groups % self.threads:
                inside = b.cmpi("ult", b.index(start), b.index(groups))
                start = b.minimum(start, groups - 1)
        # The product comes last, so that LLVM sees that vectors are aligned.
        start = b.mul(start, self.vector)
        start = b.add(start, self.first)
        folded = b.e.unlinear(b.index(start), self.folds)
        return [b.e.beside(folded, v, self.folds) for v in range(self.vector)], start, inside

    def chunk(self, number: Index) -> tuple[list[tuple[Index, ...]], SSAValue | None]:
        """Indices of neighbours, and whether they are in the row where that is not sure."""
        b = self.b
        found = self._columns.get(number) if isinstance(number, int) else None
        lanes, start, inside = found or self._column(number)
        space = (*self.sizes, *self.folds)
        linear = b.add(b.mul(self.number, prod(self.folds)), start)
        neighbours = [(*self.indices, *lane) for lane in lanes]
        for lane, at in enumerate(neighbours):
            b.e.know_linear(at, space, b.add(linear, lane))
        return neighbours, inside

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
        warps = min(self.threads // WARP, self.warps)
        if warps > 1:
            warp = b.index(b.div(self.thread, WARP))
            lane = b.index(b.rem(self.thread, WARP))
            buffers = self._kept(fold, state, self.warps, b.cmpi("eq", lane, b.index(0)), warp)
            b.barrier()
            self._barriers += 1
            first = b.sub(warp, b.rem(warp, warps)) if self.warps > warps else 0
            source = b.add(first, b.rem(lane, warps))
            state = _loaded(b, fold, buffers, lambda buffer: b.load(buffer, [source]))
            state = self._in_warp(fold, state, warps)
        if self.cluster > 1:
            # Each block has its own index, so that a warp reads different banks.
            buffers = self._kept(fold, state, self.cluster, self.leads, self.rank)
            cluster_barrier(b)
            other = b.index(b.rem(self.thread, self.cluster))
            state = _loaded(b, fold, buffers, lambda buffer: cluster_load(b, buffer, other))
            state = self._in_warp(fold, state, self.cluster)
        return list(state)

    def _kept(
        self, fold: FoldOp, state: Sequence[Value], count: int, guard: SSAValue, at: Index
    ) -> list[list[SSAValue]]:
        """Buffers of so many states in shared memory, where some threads store theirs at an index."""
        b = self.b
        kinds = [array(value).element_type for value in fold.outputs]
        kept = [
            [b.shared([count], memory_type(kind)) for _ in value]
            for kind, value in zip(kinds, state, strict=True)
        ]
        with b.if_(guard):
            for kind, buffers, value in zip(kinds, kept, state, strict=True):
                for buffer, part in zip(buffers, value, strict=True):
                    b.store(to_memory(b, part, kind), buffer, [at])
        return kept

    def finish(self) -> None:
        """Ends the code of all rows: no block of a cluster ends while another one reads its memory."""
        if self.cluster > 1:
            cluster_barrier(self.b)

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


def _loaded(
    b: LaunchBuilder,
    fold: FoldOp,
    kept: Sequence[Sequence[SSAValue]],
    load: Callable[[SSAValue], SSAValue],
) -> list[Value]:
    """A state from shared memory."""
    return [
        tuple(to_register(b, load(buffer), array(value).element_type) for buffer in buffers)
        for value, buffers in zip(fold.outputs, kept, strict=True)
    ]
