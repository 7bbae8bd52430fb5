"""Kind `columns`: folds along outer dimensions, and what is computed from them.

Neighbouring threads fold neighbouring columns, so that what they read lies together. `row_threads` threads of a block
fold parts of a column, which come together in shared memory; `parts` blocks do, whose folds a second launch combines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import FoldOp, sizes_of
from mlirhlo.lowering.builder import Index, memref_of
from mlirhlo.lowering.gpu.element_ops import fold_step, initial
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import folds_below


@launches("columns")
def columns(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch, or two where blocks share a column."""
    folds = folds_below(ops)
    outputs = [value for op in ops for value in op.results]
    parts = max(schedule.parts, 1)
    if parts == 1:
        b = plan.begin(inputs_of(plan, ops, ops), outputs)
        column = _Column(b, folds[0], schedule)
        for fold in folds:
            column.know(fold, column.folded(fold, by_all=fold is not folds[-1]))
        with b.if_(column.is_first), b.e.scope():
            found = [(v, at, b.e.at(v, at)) for at in column.lanes for v in outputs]
            for output, at, element in found:
                b.write(output, at, element)
        b.launch(column.blocks, schedule.threads)
        return
    (fold,) = folds
    partial = Partial(plan, fold, parts)
    b = plan.begin(inputs_of(plan, [fold]), (), partial.numbers)
    column = _Column(b, fold, schedule)
    states = column.folded(fold)
    with b.if_(column.is_first), b.e.scope():
        for lane, state in enumerate(states):
            partial.store(b, column.part, b.add(column.number, lane), state)
    b.launch(column.blocks * parts, schedule.threads)
    partial.combine(ops)


class Partial:
    """Folds of parts of columns, which a launch of its own combines."""

    def __init__(self, plan: Plan, fold: FoldOp, parts: int) -> None:
        self.plan, self.fold, self.parts = plan, fold, parts
        self.count = prod(sizes_of(fold.outputs[0]))
        self.kinds = [array(value).element_type for value in fold.outputs]
        self.buffers = [
            [
                plan.workspace(memref_of(memory_type(k), self.count * parts))
                for _ in range(1 + k.is_complex)
            ]
            for k in self.kinds
        ]
        self.numbers = [n for row in self.buffers for n in row]
        """Of the buffers."""

    def store(self, b: LaunchBuilder, part: Index, column: Index, state: Sequence[Value]) -> None:
        """Stores what a part of a column folds to."""
        at = b.add(b.mul(part, self.count), column)
        for kind, buffers, value in zip(self.kinds, self.buffers, state, strict=True):
            for number, piece in zip(buffers, value, strict=True):
                b.store(to_memory(b, piece, kind), b.memory[number], [at])

    def combine(self, ops: Sequence[Operation]) -> None:
        """Adds the launch that computes the results of ops."""
        fold, sizes = self.fold, sizes_of(self.fold.outputs[0])
        outputs = [value for op in ops for value in op.results]
        b = self.plan.begin(inputs_of(self.plan, ops, ops), outputs, (), self.numbers)

        def body(index: SSAValue) -> None:
            indices = b.e.unlinear(index, sizes)

            def loaded(part: Index) -> list[Value]:
                at = b.add(b.mul(part, self.count), index)
                return [
                    tuple(to_register(b, b.load(b.memory[n], [at]), kind) for n in buffers)
                    for kind, buffers in zip(self.kinds, self.buffers, strict=True)
                ]

            state = loaded(0)
            shapes = [len(v) for v in state]
            flat = [piece for v in state for piece in v]
            with b.loop(1, self.parts, 1, flat, nonempty=True) as loop, b.e.scope():
                both = [*regrouped(loop.carried, shapes), *loaded(loop.index)]
                loop.carry(*(piece for v in b.e.body(fold.combiner, both) for piece in v))
            state = regrouped(loop.results, shapes)
            b.e.know(fold, indices, b.e.body(fold.combiner, [*initial(b.e, fold), *state]))
            for value in outputs:
                b.write(value, indices, b.e.at(value, indices))

        threads = min(THREADS, -(-self.count // 32) * 32)
        b.launch(b.each_thread(self.count, threads, body), threads)


class _Column:
    """The column of a thread, or its neighbours, and their elements of it."""

    def __init__(self, b: LaunchBuilder, fold: FoldOp, schedule: Schedule) -> None:
        self.b, self.folds = b, fold.folded
        self.down, self.vector = schedule.row_threads, schedule.vector or 1
        self.across = schedule.threads // self.down
        sizes = sizes_of(fold.outputs[0])
        count = prod(sizes)
        parts = max(schedule.parts, 1)
        self.length = prod(self.folds) // parts
        self.blocks = -(-count // (self.across * self.vector))
        thread = b.thread_id()
        self.x, self.y = b.index(b.rem(thread, self.across)), b.index(b.div(thread, self.across))
        block: Index = b.block_id()
        self.part: Index = 0
        if parts > 1:
            self.part, block = b.div(block, self.blocks), b.rem(block, self.blocks)
        group = b.index(b.add(b.mul(block, self.across), self.x))
        self.is_first = b.cmpi("eq", self.y, b.index(0))
        if count % (self.across * self.vector):
            # All threads come to the barriers: those beyond the last column fold it too.
            groups = count // self.vector
            self.is_first = b.andi(self.is_first, b.cmpi("ult", group, b.index(groups)))
            group = b.index(b.minimum(group, groups - 1))
        self.number = b.mul(group, self.vector)
        self.lanes = b.e.neighbours(group, self.vector, sizes)
        """Indices of the columns."""

    def know(self, fold: FoldOp, states: Sequence[Sequence[Value]]) -> None:
        """The fold is known from here on, to the first threads of the columns."""
        e = self.b.e
        for at, state in zip(self.lanes, states, strict=True):
            e.know(fold, at, e.body(fold.combiner, [*initial(e, fold), *state]))

    def folded(self, fold: FoldOp, *, by_all: bool = False) -> list[list[Value]]:
        """The columns' elements folded, without the initial values, for their first thread, or for all of them."""
        states = self._own(fold)
        return self._together(fold, states, by_all=by_all) if self.down > 1 else states

    def _own(self, fold: FoldOp) -> list[list[Value]]:
        b = self.b

        def taken(number: Index, states: Sequence[Sequence[Value]]) -> list[list[Value]]:
            at = b.add(b.mul(number, self.down), self.y)
            inside: SSAValue | None = None
            if not isinstance(number, int) and self.length % self.down:
                inside = b.cmpi("ult", b.index(at), b.index(self.length))
                at = b.minimum(at, self.length - 1)
            at = b.add(b.mul(self.part, self.length), at)
            row = b.e.unlinear(b.index(at), self.folds)
            found: list[list[Value]] = []
            for lane, column in enumerate(self.lanes):
                state = states[lane] if states else None
                after = fold_step(b.e, fold, (*column, *row), state)
                if inside is not None and state is not None:
                    after = [
                        tuple(b.select(inside, v, w) for v, w in zip(x, y, strict=True))
                        for x, y in zip(after, state, strict=True)
                    ]
                found.append(after)
            return found

        states = taken(0, ())
        rounds = -(-self.length // self.down)
        if rounds == 1:
            return states
        shapes, width = [len(v) for state in states for v in state], len(states[0])

        def grouped(parts: Sequence[SSAValue]) -> list[list[Value]]:
            values = regrouped(parts, shapes)
            return [values[at : at + width] for at in range(0, len(values), width)]

        with b.loop(1, rounds, 1, _flat(states), nonempty=True) as loop, b.e.scope():
            loop.carry(*_flat(taken(loop.index, grouped(loop.carried))))
        return grouped(loop.results)

    def _together(
        self, fold: FoldOp, states: Sequence[Sequence[Value]], *, by_all: bool
    ) -> list[list[Value]]:
        b = self.b
        kinds = [array(value).element_type for value in fold.outputs]
        width = self.across * self.vector
        stored = [
            [b.shared([self.down, width], memory_type(kind)) for _ in value]
            for kind, value in zip(kinds, states[0], strict=True)
        ]
        place = b.mul(self.x, self.vector)
        for lane, state in enumerate(states):
            for kind, buffers, value in zip(kinds, stored, state, strict=True):
                for buffer, piece in zip(buffers, value, strict=True):
                    b.store(to_memory(b, piece, kind), buffer, [self.y, b.add(place, lane)])
        b.barrier()

        def loaded(row: int) -> list[list[Value]]:
            return [
                [
                    tuple(
                        to_register(b, b.load(buffer, [row, b.add(place, lane)]), kind)
                        for buffer in buffers
                    )
                    for kind, buffers in zip(kinds, stored, strict=True)
                ]
                for lane in range(self.vector)
            ]

        # All threads combine, also where only the first has a use for it: it knows its own part.
        found = loaded(0) if by_all else [list(state) for state in states]
        for row in range(1, self.down):
            found = [
                b.e.body(fold.combiner, [*state, *other])
                for state, other in zip(found, loaded(row), strict=True)
            ]
        return found


def _flat(states: Sequence[Sequence[Value]]) -> list[SSAValue]:
    return [piece for state in states for value in state for piece in value]
