"""What rows read beside their own elements: values that all rows read alike, and one for each row.

A block that computes several rows brings what they read alike to shared memory, each thread from there to registers
where it has the same elements of every row. What a row has one of is read by one thread for all of its warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.kinds.copies import copy_block
from mlirhlo.lowering.gpu.kinds.row import Row
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_register
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.row_chains import WARP, folds_below
from mlirhlo.lowering.schedule.staged_rows import StagedRead, staged_reads
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

_MOST = 16
"""Elements of a thread's that stay in registers over all rows, of what these read alike."""


class SharedRow(Row):
    """A row of which some reads come from shared memory."""

    def __init__(self, b: LaunchBuilder, ops: Sequence[Operation], schedule: Schedule) -> None:
        fold = folds_below(ops)[0]
        reads = [r for r in staged_reads(ops) if not array(r.value).element_type.is_complex]
        self.whole = [read for read in reads if read.by_row and read.by_element]
        sizes = [array(read.value).element_type.byte_size for read in self.whole]
        sector = SECTOR // min(sizes, default=SECTOR)
        super().__init__(b, fold, schedule, fold.folded, sector)
        self.of_rows = [
            (read, b.shared([self.per_block], self._type(read)))
            for read in reads
            if read.by_row and not read.by_element and self.threads > WARP
        ]
        alike = [read for read in reads if read.by_element and not read.by_row]
        is_shared = schedule.rounds > 1 or (schedule.rounds and self.per_block > 1)
        alike = alike if is_shared else []
        elements = [array(read.value).element_type for read in alike]
        self.alike = list(zip(alike, b.shared_arrays(elements, self.length), strict=True))
        for read, buffer in self.alike:
            copy_block(b, self._memory(read), buffer, self.length, schedule.threads)
        if self.alike:
            b.barrier()
        self._held: dict[tuple[SSAValue, int, int], Value] = {}

    def _type(self, read: StagedRead) -> Any:
        return memory_type(array(read.value).element_type)

    def _memory(self, read: StagedRead) -> SSAValue:
        return self.b.flat(self.b.memory[self.b.plan.numbers[read.value]])

    def columns(self) -> None:
        """As `Row.columns`; a few elements of what all rows read alike stay in registers too."""
        super().columns()
        if self.rounds * self.vector * len(self.alike) > _MOST:
            return
        for number, (_, start, _) in self._columns.items():
            for read, buffer in self.alike:
                for lane in range(self.vector):
                    self._held[read.value, number, lane] = self._shared(
                        read, buffer, self.b.add(start, lane)
                    )

    def _shared(self, read: StagedRead, buffer: SSAValue, index: Index) -> Value:
        number = self.b.load(buffer, [index])
        return (to_register(self.b, number, array(read.value).element_type),)

    def begin(self, number: Index) -> None:
        """As `Row.begin`; what the row reads one of is known from here on."""
        super().begin(number)
        b = self.b
        if not self.of_rows:
            return
        with b.if_(self.leads), b.e.scope():
            for read, buffer in self.of_rows:
                b.store(b.load(self._memory(read), [self.number]), buffer, [self.team])
        b.barrier()
        space = (*self.sizes, *self.folds)
        at = (*self.indices, *(0 for _ in self.folds))
        for read, buffer in self.of_rows:
            element = self._shared(read, buffer, self.team)
            b.e.know_read(read.value, b.e.mapped(read.map, at, space), element)

    def _read(
        self, read: StagedRead, indices: Sequence[tuple[Index, ...]], inside: SSAValue
    ) -> None:
        """Elements of threads that have some; where a whole warp has none, it reads nothing."""
        b, shape = self.b, array(read.value)
        memory, space = self._memory(read), (*self.sizes, *self.folds)
        linear = [b.e.linear_of(at, space) for at in indices]

        def loaded() -> list[Value]:
            numbers = [b.load(memory, [at]) for at in linear if at is not None]
            return [(to_register(b, number, shape.element_type),) for number in numbers]

        def none() -> list[Value]:
            zero = b.constant(0, memory_type(shape.element_type))
            return [(to_register(b, zero, shape.element_type),)] * len(indices)

        for at, element in zip(indices, b.e.choose(inside, loaded, none), strict=True):
            b.e.know_read(read.value, b.e.mapped(read.map, at, space), element)

    def chunk(self, number: Index) -> tuple[list[tuple[Index, ...]], SSAValue | None]:
        """As `Row.chunk`; what all rows read alike is known at these indices."""
        b = self.b
        neighbours, inside = super().chunk(number)
        space = (*self.sizes, *self.folds)
        if inside is not None and self.is_held and self.threads > WARP:
            for read in self.whole:
                self._read(read, neighbours, inside)
        for lane, at in enumerate(neighbours):
            for read, buffer in self.alike:
                element = (
                    self._held.get((read.value, number, lane)) if isinstance(number, int) else None
                )
                if element is None:
                    index = b.e.linear_of(at[len(self.sizes) :], self.folds)
                    assert index is not None
                    element = self._shared(read, buffer, index)
                b.e.know_read(read.value, b.e.mapped(read.map, at, space), element)
        return neighbours, inside
