"""Kernels of rows that are no longer than a vector: as many rows at once as a vector has lanes.

The rows are turned in registers, so that every lane has a row of its own; folds go through the vectors
one after the other, nothing is saved, and results are turned back. Rows of a few elements are read
several in a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.func import FuncOp

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, to_memory, to_register
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import element_type
from mlirhlo.lowering.hlo_to_loops.fold_plan import Fold, FoldPlan
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places, ranged
from mlirhlo.lowering.hlo_to_loops.symbols import reads_of
from mlirhlo.lowering.hlo_to_loops.transposes import columns_of, rows_of, turned

_MOST = 16
"""Elements of a row, and lanes."""


def are_short_rows(frame: Frame, plan: FoldPlan) -> bool:
    """Whether the rows of a plan are worth turning."""
    values = [*frame.outputs, *(v for v in frame.operands if v in plan.last_read)]
    return (
        len(plan.folded) == 1
        and len(plan.kept) > 0
        and plan.row <= min(frame.lanes, _MOST)
        and plan.sizes[plan.kept[-1]] >= min(frame.lanes, _MOST)
        and not any(element_type(v).is_complex for v in values)
    )


def short_row_kernel(frame: Frame, plan: FoldPlan) -> FuncOp:
    """The kernel of a plan with short rows."""
    _ShortRows(frame, plan).build()
    return frame.b.finish()


class _ShortRows:
    def __init__(self, frame: Frame, plan: FoldPlan) -> None:
        self.frame, self.plan, self.b = frame, plan, frame.b
        self.lanes = min(frame.lanes, _MOST)
        self.length = plan.row
        self.is_dense = _is_dense(self.length, self.lanes)
        """Whether vectors hold row after row."""
        last = len(plan.sizes) - 1
        whole = [v for f in plan.folds for v in f.inputs]
        whole += [frame.outputs[n] for n, _ in plan.whole]
        self.turned_reads = list(
            dict.fromkeys(
                (v, place)
                for v, place in reads_of(whole, frame.operands)
                if place[-2:] == (last - 1, last) and all(0 <= d < last - 1 for d in place[:-2])
            )
        )
        """Operands whose rows the results have, in that order; others dimensions are any."""

    def build(self) -> None:
        """Rows along the last of the kept dimensions in vectors; the last of them begins where all its rows are
        there, and does some again: no operand lies where results do."""
        b, plan, lanes = self.b, self.plan, self.lanes
        *outer, last = [plan.sizes[d] for d in plan.kept]
        vectors = -(-last // lanes)
        with b.parallel(prod(outer) * vectors, work=self.frame.work) as number:
            before = self.place(b.div(number, vectors), outer)
            first = b.mul(b.rem(number, vectors), lanes)
            self.rows(before, b.minimum(first, last - lanes) if last % lanes else first)

    def place(self, number: Index, sizes: Sequence[int]) -> list[Coordinate]:
        """Of the kept dimensions but the last."""
        return ranged(Places(self.b, 0).unlinear(Coordinate(number), sizes), sizes)

    def rows(self, before: Sequence[Coordinate], first: Index) -> None:
        """As many rows as there are lanes, from `first` on."""
        b, plan, frame, lanes = self.b, self.plan, self.frame, self.lanes
        is_whole = self.is_dense or self.length == lanes
        row_mask = None if is_whole else b.mask(b.index(self.length), lanes)
        e = Elements(Places(b, lanes), frame.buffers)
        kept = (*before, Coordinate(first, 1, None, 1, (0, plan.sizes[plan.kept[-1]])))
        for value, read in self.turned_reads:
            around = [kept[d] for d in read[:-2]]
            rows = [
                b.vector_load(frame.buffers[value], place, lanes, row_mask)
                for place in self.vectors(around, first)
            ]
            columns = columns_of(b, rows) if self.is_dense else turned(b, rows, self.length)
            for at, vector in enumerate(columns):
                found = to_register(b, vector, element_type(value))
                e.know(value, [*around, kept[-1], Coordinate(at)], (found,))
        for fold in plan.folds:
            self.fold(e, fold, kept)
        places = [self.whole(kept, at) for at in range(self.length)]
        whole = [[e.at(frame.outputs[n], place) for place in places] for n, _ in plan.whole]
        of_rows = [e.at(frame.outputs[n], kept) for n in plan.of_rows]
        for (n, _), values in zip(plan.whole, whole, strict=True):
            element = element_type(frame.outputs[n])
            columns = [to_memory(b, v[0], element) for v in values]
            rows = rows_of(b, columns) if self.is_dense else turned(b, columns, lanes)
            for place, row in zip(self.vectors(before, first), rows, strict=True):
                b.vector_store(row, frame.targets[n], place, row_mask)
        for n, result in zip(plan.of_rows, of_rows, strict=True):
            frame.store(n, [c.base for c in kept], result, e.places)

    def fold(self, e: Elements, fold: Fold, kept: tuple[Coordinate, ...]) -> None:
        """A fold of all rows at once, in order."""
        reducer = fold.reducer
        state: list[Value] = reducer.start(e, fold.starts)
        for at in range(self.length):
            place = self.whole(kept, at)
            taken = reducer.taken(self.b, [e.at(v, place) for v in fold.inputs])
            state = reducer.combined(e, state, taken)
        results = reducer.finished(e, state, fold.starts)
        if isinstance(shape_of(fold.op.output.type), TupleShape):
            e.know_parts(fold.op.output, kept, results)
        else:
            e.know(fold.op.output, kept, results[0])

    def whole(self, kept: Sequence[Coordinate], at: int) -> list[Coordinate]:
        """The place of element `at` of every row; a row is the last dimension."""
        return [*kept, Coordinate(at)]

    def vectors(self, before: Sequence[Coordinate], first: Index) -> list[list[Index]]:
        """Where the vectors of as many rows begin as there are lanes: one row each, or all that they hold."""
        base = [c.base for c in before]
        if self.is_dense:
            return [[*base, first, n * self.lanes] for n in range(self.length)]
        return [[*base, self.b.add(first, n), 0] for n in range(self.lanes)]


def _is_dense(length: int, lanes: int) -> bool:
    """Whether rows are read and written one after the other in whole vectors: where that takes no more
    shuffles than turning a square."""

    def shuffles(count: int) -> int:
        # Those that pick have an order of their own each.
        return 2 * count * (count - 1) if count % 2 else count + 2 * shuffles(count // 2)

    return length < lanes and shuffles(length) <= lanes * (lanes.bit_length() - 1)
