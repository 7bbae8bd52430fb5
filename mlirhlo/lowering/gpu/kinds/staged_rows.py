"""Kind `staged_rows`: short rows, which a block brings to shared memory together, as they lie beside each other.

Neighbouring threads read neighbouring elements across the ends of rows, so that whole sectors are read whatever the
length of a row is. The rows are then folded from shared memory as by kind `rows`; results go back by the same way.
What all rows read alike, as the scales of a norm, comes to shared memory once a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.element_ops import initial
from mlirhlo.lowering.gpu.elements import array, load_at
from mlirhlo.lowering.gpu.kinds.copies import copy_block
from mlirhlo.lowering.gpu.kinds.row import Row
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import memory_type, to_memory
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import folds_below
from mlirhlo.lowering.schedule.staged_rows import StagedRead, staged_reads


@launches("staged_rows")
def staged_rows(plan: Plan, ops: Sequence[Operation], schedule: Schedule) -> None:
    """One launch."""
    folds = folds_below(ops)
    outputs = [value for op in ops for value in op.results]
    b = plan.begin(inputs_of(plan, ops, ops), outputs)
    row = _StagedRow(b, ops, schedule)
    for fold in folds:
        state = row.folded(fold)
        b.e.know(fold, row.indices, b.e.body(fold.combiner, [*initial(b.e, fold), *state]))
    row.store(outputs)
    b.launch(row.blocks, schedule.threads)


class _StagedRow(Row):
    """A row of shared memory."""

    def __init__(self, b: LaunchBuilder, ops: Sequence[Operation], schedule: Schedule) -> None:
        folds = folds_below(ops)
        super().__init__(b, folds[0], schedule, folds[0].folded)
        self.block = schedule.threads
        self.first_row = b.index(b.mul(b.block_id(), self.per_block))
        self.begin(b.add(self.first_row, self.team))
        self.local = b.index(b.sub(self.number, self.first_row))
        self.staged: list[tuple[StagedRead, SSAValue]] = []
        for read in staged_reads(ops):
            buffer = self._buffer(read.value, self._size(read.by_row, read.by_element))
            self._copy(read.value, buffer, read.by_row, read.by_element, to_shared=True)
            self.staged.append((read, buffer))
        b.barrier()

    def _buffer(self, value: SSAValue, count: int) -> SSAValue:
        element = array(value).element_type
        return self.b.shared([count * (1 + element.is_complex)], memory_type(element))

    def _size(self, by_row: bool, by_element: bool) -> int:
        """Elements that a block has of a value."""
        return (self.per_block if by_row else 1) * (self.length if by_element else 1)

    def chunk(self, number: Index) -> tuple[list[tuple[Index, ...]], SSAValue | None]:
        """As `Row.chunk`; the elements are known to be in shared memory."""
        b = self.b
        neighbours, inside = super().chunk(number)
        space = (*self.sizes, *self.folds)
        for at in neighbours:
            start = self._start(at)
            for read, buffer in self.staged:
                index = (
                    b.mul(self.local, self.length if read.by_element else 1) if read.by_row else 0
                )
                index = b.add(index, start if read.by_element else 0)
                element = load_at(b, buffer, index, array(read.value).element_type)
                b.e.know_read(read.value, b.e.mapped(read.map, at, space), element)
        return neighbours, inside

    def _start(self, at: Sequence[Index]) -> Index:
        """Index of an element in its row."""
        linear: Index = 0
        for index, size in zip(at[len(self.sizes) :], self.folds, strict=True):
            linear = self.b.add(self.b.mul(linear, size), index)
        return linear

    def store(self, outputs: Sequence[SSAValue]) -> None:
        """As `Row.store`, through shared memory."""
        b, e = self.b, self.b.e
        space = (*self.sizes, *self.folds)
        of_rows = [v for v in outputs if sizes_of(v) == self.sizes]
        of_elements = [v for v in outputs if v not in of_rows and sizes_of(v) == space]
        buffers = {v: self._buffer(v, self.per_block) for v in of_rows}
        buffers |= {v: self._buffer(v, self.per_block * self.length) for v in of_elements}

        def keep(value: SSAValue, at: tuple[Index, ...], index: Index) -> None:
            element = array(value).element_type
            numbers = e.at(value, at)
            for part, number in enumerate(numbers):
                place = b.add(b.mul(index, len(numbers)), part)
                b.store(to_memory(b, number, element), buffers[value], [place])

        def keep_all(at: tuple[Index, ...]) -> None:
            index = b.add(b.mul(self.local, self.length), self._start(at))
            for value in of_elements:
                keep(value, at, index)

        if of_elements:
            self._each(keep_all)
        first = b.cmpi("eq", self.lane, b.index(0))
        with b.if_(first) if of_rows and self.threads > 1 else nullcontext(), e.scope():
            for value in of_rows:
                keep(value, self.indices, self.local)
        b.barrier()
        for value, buffer in buffers.items():
            self._copy(value, buffer, True, value in of_elements)

    def _copy(
        self,
        value: SSAValue,
        buffer: SSAValue,
        by_row: bool,
        by_element: bool,
        *,
        to_shared: bool = False,
    ) -> None:
        """All threads of the block copy what its rows have in memory, or what all rows share."""
        b, parts = self.b, 1 + array(value).element_type.is_complex
        memory = b.flat(b.memory[b.plan.numbers[value]])
        size = self._size(by_row, by_element) * parts
        per_row = (self.length if by_element else 1) * parts
        total, first = (
            (per_row * self.count, b.mul(self.first_row, per_row)) if by_row else (size, 0)
        )
        copy_block(
            b, memory, buffer, size, self.block, first=first, total=total, to_shared=to_shared
        )
