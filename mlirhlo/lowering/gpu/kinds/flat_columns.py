"""Kind `flat_columns`: folds along outer dimensions, where rows end within sectors.

A block reads `row_threads` whole rows at once, as they lie beside each other, so that what it reads starts and ends
with a sector. Each thread has the same elements of those rows every time, and folds each of them on its own; the folds
of a column's come together in shared memory, those of `parts` blocks in a second launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import FoldOp, sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.element_ops import fold_step, initial
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.kinds.columns import Partial
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import folds_below


@launches("flat_columns")
def flat_columns(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch, or two where blocks share the columns."""
    (fold,) = folds_below(ops)
    sizes = sizes_of(fold.outputs[0])
    if schedule.parts == 1:
        outputs = [value for op in ops for value in op.results]
        b = plan.begin(inputs_of(plan, ops, ops), outputs)
        rows = _Rows(b, fold, schedule)

        def write(column: SSAValue, state: Sequence[Value]) -> None:
            indices = b.e.unlinear(column, sizes)
            b.e.know(fold, indices, b.e.body(fold.combiner, [*initial(b.e, fold), *state]))
            for value in outputs:
                b.write(value, indices, b.e.at(value, indices))

        rows.each_column(write)
        b.launch(1, schedule.threads)
        return
    partial = Partial(plan, fold, schedule.parts)
    b = plan.begin(inputs_of(plan, [fold]), (), partial.numbers)
    rows = _Rows(b, fold, schedule)
    rows.each_column(lambda column, state: partial.store(b, rows.part, column, state))
    b.launch(schedule.parts, schedule.threads)
    partial.combine(ops)


class _Rows:
    """The rows of a block: `together` of them at once."""

    def __init__(self, b: LaunchBuilder, fold: FoldOp, schedule: Schedule) -> None:
        self.b, self.fold = b, fold
        self.columns, self.rows = prod(sizes_of(fold.outputs[0])), prod(fold.folded)
        self.together, self.vector = schedule.row_threads, schedule.vector
        self.threads, self.parts = schedule.threads, schedule.parts
        self.slots = self.together * self.columns
        """Elements of the rows that are read at once."""
        self.part: Index = b.block_id() if self.parts > 1 else 0
        whole = self.rows // self.together
        self.each = -(-whole // self.parts)
        """Times that a block reads rows; the last one may read fewer, or once more."""
        span = self.threads * self.vector
        thread = b.mul(b.thread_id(), self.vector)
        self.places = [b.index(b.add(thread, start)) for start in range(0, self.slots, span)]
        """The first of each of the thread's groups of neighbours in those rows."""
        self.is_open = self.slots % span > 0
        inside = self.places
        if self.is_open:  # threads beyond the rows fold the last elements too
            most = self.slots - self.vector
            inside = [b.index(b.minimum(place, most)) for place in self.places]
        self.lanes = [_Lane(self, place, lane) for place in inside for lane in range(self.vector)]
        self.kinds = [array(value).element_type for value in fold.outputs]
        self.buffers = b.shared_arrays(self.kinds, self.slots)

    def _all(
        self, number: Index, states: Sequence[Sequence[Value]], *, is_sure: bool = True
    ) -> list[list[Value]]:
        """The states after all of the thread's elements of the rows that are read at this time."""
        b, fold, total = self.b, self.fold, self.rows * self.columns
        found: list[list[Value]] = []
        for at, lane in enumerate(self.lanes):
            start = b.add(b.mul(number, self.slots), lane.place)
            row = b.add(b.mul(number, self.together), lane.row)
            inside: SSAValue | None = None
            if not is_sure:
                inside = b.cmpi("ult", b.index(start), b.index(total))
                start, row = b.minimum(start, total - self.vector), b.minimum(row, self.rows - 1)
            folded = b.e.unlinear(b.index(row), fold.folded)
            sizes = (*fold.folded, *sizes_of(fold.outputs[0]))
            b.e.know_linear((*folded, *lane.column), sizes, b.add(start, lane.number))
            state = states[at] if states else None
            after = fold_step(b.e, fold, (*lane.column, *folded), state)
            if inside is not None and state is not None:
                after = [
                    tuple(b.select(inside, v, w) for v, w in zip(x, y, strict=True))
                    for x, y in zip(after, state, strict=True)
                ]
            found.append(after)
        return found

    def _folded(self) -> list[list[Value]]:
        """What each of the thread's elements folds to, over all rows of the block."""
        b = self.b
        first, whole = b.mul(self.part, self.each), self.rows // self.together
        states = self._all(first, ())
        width, shapes = len(states[0]), [len(v) for state in states for v in state]

        def grouped(parts: Sequence[SSAValue]) -> list[list[Value]]:
            values = regrouped(parts, shapes)
            return [values[at : at + width] for at in range(0, len(values), width)]

        end: Index = self.each
        if whole % self.each:
            end = b.minimum(b.sub(whole, first), self.each)
        with b.loop(1, end, 1, _flat(states)) as loop, b.e.scope():
            after = self._all(b.add(first, loop.index), grouped(loop.carried))
            loop.carry(*_flat(after))
        if self.rows % self.together == 0:
            return grouped(loop.results)
        is_last = b.cmpi("eq", b.index(self.part), b.index(self.parts - 1))
        with b.otherwise(is_last, loop.results) as choice, b.e.scope():
            after = self._all(whole, grouped(loop.results), is_sure=False)
            choice.give(*_flat(after))
        return grouped(choice.results)

    def each_column(self, write: Callable[[SSAValue, Sequence[Value]], None]) -> None:
        """`write` for each column that the thread combines the folds of, with what they are together."""
        b, fold = self.b, self.fold
        states = self._folded()
        for at, place in enumerate(self.places):
            guard: AbstractContextManager[None] = nullcontext()
            if self.is_open:
                guard = b.if_(b.cmpi("ult", place, b.index(self.slots)))
            with guard, b.e.scope():
                for lane in range(self.vector):
                    state = states[at * self.vector + lane]
                    for kind, buffer, (piece,) in zip(self.kinds, self.buffers, state, strict=True):
                        b.store(to_memory(b, piece, kind), buffer, [b.add(place, lane)])
        b.barrier()

        def loaded(column: SSAValue, row: Index) -> list[Value]:
            at = b.add(b.mul(row, self.columns), column)
            return [
                (to_register(b, b.load(buffer, [at]), kind),)
                for kind, buffer in zip(self.kinds, self.buffers, strict=True)
            ]

        def one(column: SSAValue) -> None:
            state = loaded(column, 0)
            flat = [piece for (piece,) in state]
            with b.loop(1, self.together, 1, flat) as loop, b.e.scope():
                both = [*((v,) for v in loop.carried), *loaded(column, loop.index)]
                loop.carry(*(piece for (piece,) in b.e.body(fold.combiner, both)))
            write(column, [(v,) for v in loop.results])

        for start in range(0, self.columns, self.threads):
            column = b.index(b.add(b.thread_id(), start))
            is_whole = start + self.threads <= self.columns
            test = (
                nullcontext() if is_whole else b.if_(b.cmpi("ult", column, b.index(self.columns)))
            )
            with test, b.e.scope():
                one(column)


def _flat(states: Sequence[Sequence[Value]]) -> list[SSAValue]:
    return [piece for state in states for value in state for piece in value]


class _Lane:
    """One of a thread's elements of the rows that are read at once."""

    def __init__(self, rows: _Rows, place: SSAValue, number: int) -> None:
        b = rows.b
        self.place, self.number = place, number
        """The first of its neighbours, and its number among them."""
        own = b.add(place, number)
        self.row = b.div(own, rows.columns)
        column = b.index(b.rem(own, rows.columns))
        self.column = b.e.unlinear(column, sizes_of(rows.fold.outputs[0]))
