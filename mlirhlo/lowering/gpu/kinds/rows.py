"""Kind `rows`: folds along the minor dimensions, and what is computed from them, with the row read once.

The results have the shape of the rows (R), or of the rows with their elements (R, F). `row_threads` threads compute a
row together: each holds some of its elements in registers, folds them, and combines what it has with the others by
shuffles, beyond a warp through shared memory. A block computes several short rows at once, and `rounds` of them in
turn; what all rows read alike it reads once. Where `row_threads` are more than a block has, a cluster of blocks
computes a row: their folds they read from each other's shared memory. `parts` blocks share a long row, whose folds come
together in a second launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation

from mlirhlo.dialects.structured import FoldOp, sizes_of
from mlirhlo.lowering.builder import Index, memref_of
from mlirhlo.lowering.gpu.element_ops import initial
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.kinds.row import Row
from mlirhlo.lowering.gpu.kinds.row_reads import SharedRow
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_memory, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import WARP, folds_below


@launches("rows")
def rows(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch, or two where blocks share a row."""
    folds = folds_below(ops)
    if schedule.parts > 1:
        _split(plan, ops, folds, schedule)
        return
    outputs = [value for op in ops for value in op.results]
    b = plan.begin(inputs_of(plan, ops, ops), outputs)
    row = SharedRow(b, ops, schedule)
    with row.each():
        for fold in folds:
            state = row.folded(fold)
            b.e.know(fold, row.indices, b.e.body(fold.combiner, [*initial(b.e, fold), *state]))
        row.store(outputs)
    row.finish()
    b.launch(row.blocks * row.cluster, schedule.threads, cluster=row.cluster)


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
    threads = min(1 << (parts.bit_length() - 1), 1024)
    second = Schedule(0, "rows", threads=max(threads, WARP), row_threads=threads)
    row = Row(b, fold, second, (parts,))

    def loaded(j: Index) -> list[Value]:
        at = b.add(b.mul(row.number, parts), j)
        return [
            tuple(to_register(b, b.load(b.memory[n], [at]), kind) for n in buffers)
            for kind, buffers in zip(kinds, partial, strict=True)
        ]

    with row.each():
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
        self.begin(b.div(block, schedule.parts))
        self.part = b.rem(block, schedule.parts)
        self.valid = None
        self.length //= schedule.parts
        self.first = b.mul(self.part, self.length)
