"""Kernels that work row by row: softmax, normalisations, sums along the last dimension, argmax.

    parallel for row:
      for i in row:  m = max(m, x[i])              round 0, in several vectors at once
      for i in row:  e[i] = exp(x[i] - m); s += e[i]    round 1; e is saved
      for i in row:  out[i] = e[i] / s             round 2

A row comes from memory once and stays in the cache for the other rounds. Where rows are few and long,
each round is a parallel loop over pieces of all rows, and the pieces' results are put together in order:
the pieces do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import Index, Loop
from mlirhlo.lowering.hlo_to_loops import extremes
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type, to_register
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import element_type
from mlirhlo.lowering.hlo_to_loops.fold_plan import Fold, FoldPlan
from mlirhlo.lowering.hlo_to_loops.fold_rooms import FoldRooms
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places, ranged
from mlirhlo.lowering.hlo_to_loops.row_state import (
    Row,
    Saved,
    States,
    flat_of,
    packed_as,
)
from mlirhlo.lowering.target import current

_SCRATCH_BYTES = 32 << 10
"""What is saved of a row on the stack; longer rows save in results or not at all."""
_LEAST_AHEAD, _MOST_AHEAD = 1 << 10, 1 << 16
"""Bytes of a row that is asked for while the one before it is worked on."""
_PIECE = 1 << 15
"""Elements of a piece of a long row."""
_FEW_ROWS = 16
"""Rows that are too few to share out."""
_MOST_PIECES = 64
_DEAR_ROW = 12.0
"""Instructions of what has one element a row, from which on it is worth computing for a vector of rows."""
_LEAST_DIVIDED = 8
"""Vectors of a row that is divided without division instructions."""
_NARROW, _LONG = 4, 4
"""So few columns of rows of at least so many vectors have lanes along the rows."""
_SHORT, _TOGETHER = 32, 4
"""Rows of so few vectors are worked on together, to hide how long each takes to put its lanes together."""


def are_narrow_columns(frame: Frame, plan: FoldPlan) -> bool:
    """Whether columns are so few, and so long, that they are worked on as rows are."""
    last = len(plan.sizes) - 1
    return (
        plan.folded[-1] == last - 1
        and plan.sizes[last] <= _NARROW
        and plan.sizes[last - 1] >= _LONG * frame.lanes
        and not plan.whole
        and not plan.saved
        and not any(element_type(v).is_complex for v in frame.operands)
    )


def row_kernel(frame: Frame, plan: FoldPlan) -> FuncOp:
    """The kernel of a plan whose last dimension is folded, or of narrow columns."""
    pieces = 1
    if plan.rows < _FEW_ROWS and len(plan.folded) == 1:
        pieces = min(-(-plan.row // _PIECE), _MOST_PIECES)
    rows = _Rows(frame, plan)
    if pieces > 1:
        rows.in_pieces(pieces)
    else:
        rows.one_by_one()
    return frame.b.finish()


def know(e: Elements, fold: Fold, place: Sequence[Coordinate], results: Sequence[Value]) -> None:
    """Says what a fold comes to at a place."""
    if isinstance(shape_of(fold.op.output.type), TupleShape):
        e.know_parts(fold.op.output, place, results)
    else:
        e.know(fold.op.output, place, results[0])


class _Rows(FoldRooms):
    def __init__(self, frame: Frame, plan: FoldPlan) -> None:
        super().__init__(frame.b)
        self.frame, self.plan = frame, plan
        self.lanes = frame.lanes
        self.length = plan.sizes[plan.folded[-1]]
        self.range = (0, self.length)
        is_short = len(plan.folded) == 1 and self.length <= _SHORT * self.lanes
        self.together = _TOGETHER if is_short and plan.rows % _TOGETHER == 0 else 1
        self.are_columns = plan.folded[-1] < len(plan.sizes) - 1
        """Whether rows that lie side by side, element by element, are worked on together."""
        if self.are_columns:
            self.together = plan.sizes[-1]
        self.gathers_rows = (
            self.together > 1
            and not self.are_columns
            and plan.of_row_cost >= _DEAR_ROW
            and len(plan.kept) == 1
            and plan.rows % self.lanes == 0 == self.lanes % self.together
            and not any(element_type(frame.outputs[n]).is_complex for n in plan.of_rows)
        )
        """Whether what has one element a row is computed for as many rows as there are lanes."""
        self.is_far = any(map(frame.is_far, frame.operands))
        """Whether rows come from memory."""
        self.share()

    def share(self) -> None:
        """A result may be written over an operand that is not read later, nor elsewhere."""
        plan, frame = self.plan, self.frame
        if len(plan.whole) != 1 or plan.of_rows or set(self.homes().values()) - {None}:
            return
        ((number, last),) = plan.whole
        for operand, value in enumerate(frame.operands):
            same = frame.sizes_and_bytes(value) == frame.sizes_and_bytes(frame.outputs[number])
            if same and plan.last_read.get(value, last + 1) <= last:
                frame.b.may_share(operand, len(frame.operands) + number)

    def homes(self) -> dict[SSAValue, int | None]:
        """For saved values the output that keeps them; None for one on the stack."""
        plan, frame = self.plan, self.frame
        homes: dict[SSAValue, int | None] = {}
        used: set[int] = set()
        for value, since in plan.saved.items():
            if element_type(value).is_complex:
                continue
            own = [n for n, at in plan.whole if frame.outputs[n] is value and at == since]
            if own:
                homes[value] = own[0]
                continue
            if self.plan.row * element_type(value).byte_size <= _SCRATCH_BYTES:
                homes[value] = None
                continue
            last = max(n for n, loaded in enumerate(plan.loaded) if value in loaded)
            for number, at in plan.whole:
                same = frame.memory(frame.outputs[number]) == frame.memory(value)
                if same and at >= last and number not in used:
                    used.add(number)
                    homes[value] = number
                    break
        return homes

    # Rows

    def one_by_one(self) -> None:
        """Rows in parallel, all rounds over one, or some short ones, before the next."""
        b, many, plan = self.b, self.together, self.plan
        if not self.gathers_rows:
            with b.parallel(plan.rows // many, work=self.frame.work) as number:
                for row in self.some(b.mul(number, many)):
                    self.store_of_row(row)
            return
        with b.parallel(plan.rows // self.lanes, work=self.frame.work) as block:
            first = b.mul(block, self.lanes)
            totals = {fold: self.rooms(fold.reducer.elements, self.lanes) for fold in plan.folds}
            with b.loop(0, self.lanes, many) as before:
                self.some(b.add(first, before), totals, before)
            self.store_of_rows(first, totals)

    def some(
        self,
        first: Index,
        totals: Mapping[Fold, Sequence[SSAValue]] | None = None,
        before: Index = 0,
    ) -> list[Row]:
        """All rounds over rows that are worked on together; what folds come to goes to `totals` from
        `before` on."""
        b, plan, many = self.b, self.plan, self.together
        rows = [self.begin(b.add(first, at)) for at in range(many)]
        if self.are_columns:  # what does not depend on the column is computed once
            rows = [
                replace(row, e=rows[0].e, place=(*rows[0].place[:-1], Coordinate(at)))
                for at, row in enumerate(rows)
            ]
        homes = self.homes()
        for at, row in enumerate(rows):
            for value, home in homes.items():
                row.saved[value] = self.room_for(value, home)
            kept = set(homes.values())
            row.streams = self.frame.streams(n for n, _ in self.plan.whole if n not in kept)
            row.next = self.following(b.add(first, at))
        for at in range(self.plan.rounds):
            start = [state for row in rows for state in self.start(row, at)]
            sets = self.nest([row.e for row in rows], rows, at, start, ())
            each = len(sets) // many
            for at_fold, fold in enumerate(self.plan.folds_of(at)):
                reducer, parts = fold.reducer, [s[at_fold] for s in sets]
                if many == 1 and not plan.of_rows:
                    everywhere = reducer.vectors_everywhere(rows[0].e, parts)
                    results = reducer.finished(rows[0].e, everywhere, fold.starts)
                    know(rows[0].e, fold, rows[0].place, results)
                    continue
                found = [
                    reducer.vectors_joined(row.e, parts[n * each : (n + 1) * each])
                    for n, row in enumerate(rows)
                ]
                joined = reducer.rows_joined(rows[0].scalar, found)
                for number, (row, total) in enumerate(zip(rows, joined, strict=True)):
                    total = reducer.finished(row.scalar, total, fold.starts)
                    self.know(row, fold, total)
                    if totals is not None:
                        self.keep(reducer.elements, total, totals[fold], b.add(before, number))
        return rows

    def in_pieces(self, most: int) -> None:
        """Long rows: each round shares out all pieces of all rows."""
        b, plan, rows = self.b, self.plan, self.plan.rows
        totals: dict[Fold, list[SSAValue]] = {}
        for at in range(plan.rounds):
            folds = self.plan.folds_of(at)
            unit = self.unroll(at) * self.lanes
            units = self.length // unit
            pieces = min(most, units)
            parts = {f: self.rooms(f.reducer.work, rows * pieces) for f in folds}
            with b.parallel(rows * pieces, work=self.frame.work / plan.rounds) as number:
                row = self.begin(b.div(number, pieces), totals)
                piece = b.rem(number, pieces)
                low, high = (
                    b.mul(b.div(b.mul(n, units), pieces), unit) for n in (piece, b.add(piece, 1))
                )
                sets = self.main([row.e], [row], at, self.start(row, at), (), low, high)
                for at_fold, fold in enumerate(folds):
                    total = self.joined(row, fold, [s[at_fold] for s in sets])
                    self.keep(fold.reducer.work, total, parts[fold], number)
            sums = {f: self.rooms(f.reducer.elements, rows) for f in folds}
            with b.loop(0, rows) as number:
                row = self.begin(number, totals)
                sets = self.start(row, at)[:1]
                sets = self.rest([row.e], [row], at, sets, (), units * unit)
                for at_fold, fold in enumerate(folds):
                    last = self.joined(row, fold, [sets[0][at_fold]])
                    total = self.put_together(row, fold, parts[fold], number, pieces)
                    total = fold.reducer.joined(row.scalar, total, last)
                    total = fold.reducer.finished(row.scalar, total, fold.starts)
                    self.keep(fold.reducer.elements, total, sums[fold], number)
            totals |= sums
        if plan.of_rows:
            with b.loop(0, rows) as number:
                self.store_of_row(self.begin(number, totals))

    def put_together(
        self, row: Row, fold: Fold, rooms: Sequence[SSAValue], number: SSAValue, pieces: int
    ) -> list[Value]:
        """What the pieces of a row gave, in their order."""
        b, reducer = self.b, fold.reducer
        first = b.mul(number, pieces)
        total = self.fetch(reducer.work, rooms, first)
        with b.loop(b.add(first, 1), b.add(first, pieces), 1, flat_of(total)) as loop:
            scope = row.scalar.scope()
            before = packed_as(loop.carried, total)
            more = reducer.joined(scope, before, self.fetch(reducer.work, rooms, loop.index))
            loop.carry(*flat_of(more))
        return packed_as(cast(Loop, loop).results, total)

    def begin(self, number: Index, totals: Mapping[Fold, Sequence[SSAValue]] | None = None) -> Row:
        """A row, and what is known of it."""
        b, frame, plan = self.b, self.frame, self.plan
        scalar = Elements(Places(b, 0), frame.buffers)
        sizes = [plan.sizes[d] for d in plan.kept]
        place = ranged(scalar.places.unlinear(Coordinate(number), sizes), sizes)
        row = Row(Elements(Places(b, self.lanes), frame.buffers), scalar, tuple(place))
        row.e.divides = self.length >= _LEAST_DIVIDED * self.lanes and current().vector_bytes >= 64
        for fold, rooms in (totals or {}).items():
            self.know(row, fold, self.fetch(fold.reducer.elements, rooms, number))
        return row

    def know(self, row: Row, fold: Fold, results: Sequence[Value]) -> None:
        """Results of a row's fold, for the rounds to come."""
        spread = [tuple(row.e.splat(p) for p in v) for v in results]
        know(row.scalar, fold, row.place, results)
        know(row.e, fold, row.place, spread)

    def store_of_row(self, row: Row) -> None:
        """Results with one element a row."""
        frame = self.frame
        for number in self.plan.of_rows:
            output = frame.outputs[number]
            value = row.scalar.at(output, row.place)
            indices = [c.base for c in row.place]
            store(self.b, frame.targets[number], indices, value, arrays_in(output)[0], 0, None)

    def store_of_rows(self, first: Index, totals: Mapping[Fold, Sequence[SSAValue]]) -> None:
        """The same for as many rows as there are lanes."""
        b, frame, lanes = self.b, self.frame, self.lanes
        e = Elements(Places(b, lanes), frame.buffers)
        place = (Coordinate(first, 1, None, lanes, (0, self.plan.rows)),)
        for fold, rooms in totals.items():
            know(e, fold, place, self.fetch(fold.reducer.elements, rooms, 0, lanes))
        values = [e.at(frame.outputs[number], place) for number in self.plan.of_rows]
        for number, value in zip(self.plan.of_rows, values, strict=True):
            shape = arrays_in(frame.outputs[number])[0]
            store(b, frame.targets[number], [first], value, shape, lanes, None)

    # Rounds

    def unroll(self, at: int) -> int:
        """Vectors of a row at once: enough to hide how long a sum takes, fewer where there is more to do."""
        if self.together > 1:
            return 1
        if at in self.plan.divides:
            return 1  # a vector with elements that have to be divided is one apart
        folds = self.plan.folds_of(at)
        cost, width = self.plan.cost[at], sum(f.width for f in folds)
        # Several rounds over rows that come from memory wait for that: two sums are enough, for shorter code.
        light = 6
        if self.plan.rounds > 1 and (self.is_far or any(f.reducer.is_extreme for f in folds)):
            light = 1
        most = 4 if cost <= light and width <= 2 else 2 if cost <= 14 and width <= 4 else 1
        if self.is_far and not folds:
            most = 1
        vectors = max(self.length // self.lanes, 1)
        while most > 1 and (vectors < most or (vectors % most and vectors < 8 * most)):
            most //= 2
        return most

    def start(self, row: Row, at: int) -> States:
        """What the folds of a round start from, once for each vector that is worked on at once."""
        folds = self.plan.folds_of(at)
        states = [f.reducer.start(row.e, f.starts) for f in folds]
        first = [
            s if f.reducer.extreme_of(s) is None else [(*s[0], row.e.constant(False, i1))]
            for f, s in zip(folds, states, strict=True)
        ]
        return [first, *[states] * (self.unroll(at) - 1)]

    def look_for_nans(self, at: int, after: States, each: int) -> States:
        """States without the elements that `step` leaves in those of extremes: the first of each `each`, a
        row's, knows where one was a NaN."""
        found = [list(s) for s in after]
        for at_fold, fold in enumerate(self.plan.folds_of(at)):
            if fold.reducer.extreme_of(after[0][at_fold]) is None:
                continue
            for first in range(0, len(after), each):
                values = [s[at_fold][0] for s in after[first : first + each]]
                nans = extremes.with_nans(self.b, values[0][1], [v[-1] for v in values])
                for n, (total, *_) in enumerate(values):
                    found[first + n][at_fold] = [(total,) if n else (total, nans)]
        return found

    def nest(
        self,
        scopes: Sequence[Elements],
        rows: Sequence[Row],
        at: int,
        sets: States,
        indices: Sequence[Coordinate],
    ) -> States:
        """All of some rows; each has a scope, and as many sets as all others."""
        if len(indices) < len(self.plan.folded) - 1:
            size = self.plan.sizes[self.plan.folded[len(indices)]]
            return self.carried(
                scopes,
                0,
                size,
                1,
                sets,
                lambda inner, i, s: self.nest(inner, rows, at, s, [*indices, i]),
            )
        each = len(sets) // len(rows)
        whole = self.length - self.length % (each * self.lanes)
        after = [*self.main(scopes, rows, at, sets, indices, 0, whole)]
        after[::each] = self.rest(scopes, rows, at, after[::each], indices, whole)
        return after

    def carried(
        self,
        scopes: Sequence[Elements],
        low: Index,
        high: Index,
        step: int,
        sets: States,
        body: Callable[[Sequence[Elements], Coordinate, States], States],
    ) -> States:
        """A loop that carries the sets."""
        flat = [p for s in sets for fold in s for p in flat_of(fold)]

        def packed(values: Sequence[SSAValue]) -> States:
            rest = iter(values)
            return [[[tuple(next(rest) for _ in v) for v in fold] for fold in s] for s in sets]

        with self.b.loop(low, high, step, flat) as loop:
            index = loop.index if flat else loop
            inner = {e: e.scope() for e in scopes}
            after = body(
                [inner[e] for e in scopes],
                Coordinate(index, 0, None, step),
                packed(loop.carried if flat else ()),
            )
            if flat:
                loop.carry(*[p for s in after for fold in s for p in flat_of(fold)])
        return packed(loop.results) if flat else sets

    def main(
        self,
        scopes: Sequence[Elements],
        rows: Sequence[Row],
        at: int,
        sets: States,
        indices: Sequence[Coordinate],
        low: Index,
        high: Index,
    ) -> States:
        """Whole vectors, as many at once as there are sets."""
        if low == high:
            return sets
        lanes, each = self.lanes, len(sets) // len(rows)

        def body(inner: Sequence[Elements], i: Coordinate, before: States) -> States:
            after: list[Sequence[Sequence[Value]]] = []
            with self.frame.stores_together():
                for n, state in enumerate(before):
                    row, vector = divmod(n, each)
                    base = self.b.add(i.base, vector * lanes)
                    place = [*indices, Coordinate(base, 1, None, lanes, self.range)]
                    after.append(self.step(inner[row], rows[row], at, state, place))
            return self.look_for_nans(at, after, each)

        return self.carried(scopes, low, high, each * lanes, sets, body)

    def rest(
        self,
        scopes: Sequence[Elements],
        rows: Sequence[Row],
        at: int,
        sets: States,
        indices: Sequence[Coordinate],
        first: int,
    ) -> States:
        """What is left of rows from `first` on, one vector of each at a time."""
        whole = self.length - self.length % self.lanes
        sets = self.main(scopes, rows, at, sets, indices, first, whole)
        if whole == self.length:
            return sets
        mask = self.b.mask(self.b.index(self.length - whole), self.lanes)
        last = [*indices, Coordinate(whole, 1, None, self.lanes, self.range)]
        inner = {e: e.scope(Places(self.b, self.lanes, mask)) for e in scopes}
        after = [
            self.step(inner[e], row, at, state, last)
            for e, row, state in zip(scopes, rows, sets, strict=True)
        ]
        return self.look_for_nans(at, after, 1)

    def step(
        self,
        e: Elements,
        row: Row,
        at: int,
        before: Sequence[Sequence[Value]],
        indices: Sequence[Coordinate],
    ) -> Sequence[Sequence[Value]]:
        """One vector: what the folds carry after it, extremes with the element. Stores what the round makes."""
        b, plan, frame = self.b, self.plan, self.frame
        at_dims = dict(zip(plan.kept, row.place, strict=True))
        at_dims |= dict(zip(plan.folded, indices, strict=True))
        place = [at_dims[d] for d in range(len(plan.sizes))]
        for value in plan.loaded[at]:
            if value in row.saved:
                e.know(value, place, self.load(e, row.saved[value], value, place))
        after: list[Sequence[Value]] = []
        for fold, state in zip(self.plan.folds_of(at), before, strict=True):
            elements = fold.reducer.taken(b, [e.at(v, place) for v in fold.inputs])
            mask = e.places.mask
            if (opcode := fold.reducer.extreme_of(state)) is not None:
                ((total, *nans),), ((number,),) = state, elements
                if mask is not None:
                    number = b.select(mask, number, total)
                total = extremes.of_numbers(b, opcode, total, number)
                after.append([(total, *nans, number)])
                continue
            more = fold.reducer.combined(e, state, elements)
            if mask is not None:
                more = [
                    tuple(b.select(mask, p, q) for p, q in zip(v, w, strict=True))
                    for v, w in zip(more, state, strict=True)
                ]
            after.append(more)
        if row.next is not None and at == self.busiest():
            # Into the second cache: few lines can be on their way to the first, results' among them.
            self.prefetch(row.next, indices, self.operands(), 2)
        if plan.rounds == 1:
            *outer, last = indices
            for value, distance in frame.far_ahead(self.operands()):
                ahead = Coordinate(b.add(last.base, distance))
                locality = 0 if frame.is_beyond(value) else 3
                self.prefetch(row.place, [*outer, ahead], [value], locality)
        whole = [n for n, r in plan.whole if r == at]
        values = [e.at(frame.outputs[n], place) for n in whole]
        for value, saved in row.saved.items():
            if plan.saved[value] == at and not saved.is_stored:
                bases = self.bases(saved.buffer, place)
                element = e.at(value, place)
                store(
                    b, saved.buffer, bases, element, arrays_in(value)[0], self.lanes, e.places.mask
                )
        for n, result in zip(whole, values, strict=True):
            frame.store(n, [c.base for c in place], result, e.places, row.streams.get(n))
        return after

    def busiest(self) -> int:
        """The round after the first that computes most."""
        return max(range(1, self.plan.rounds), key=lambda at: (self.plan.cost[at], -at))

    def following(self, number: Index) -> tuple[Coordinate, ...] | None:
        """The place of the row worked on after this one, where it is worth asking for early.

        Later rounds read nothing from memory: it can bring the next row meanwhile.
        """
        plan = self.plan
        bytes_ = plan.row * max(map(self.frame.byte_size, self.operands()), default=0)
        if plan.rounds == 1 or not _LEAST_AHEAD <= bytes_ <= _MOST_AHEAD:
            return None
        sizes = [plan.sizes[d] for d in plan.kept]
        after = Coordinate(self.b.minimum(self.b.add(number, self.together), plan.rows - 1))
        return tuple(Places(self.b, 0).unlinear(after, sizes))

    def operands(self) -> list[SSAValue]:
        """Those that are read row by row."""
        return [v for v in self.frame.operands if v in self.plan.last_read]

    def prefetch(
        self,
        row: Sequence[Coordinate],
        indices: Sequence[Coordinate],
        operands: Sequence[SSAValue],
        locality: int = 3,
    ) -> None:
        at_dims = dict(zip(self.plan.kept, row, strict=True))
        at_dims |= dict(zip(self.plan.folded, indices, strict=True))
        place = [at_dims[d].base for d in range(len(self.plan.sizes))]
        for operand in operands:
            self.frame.prefetch(operand, place, locality=locality)

    def bases(self, buffer: SSAValue, place: Sequence[Coordinate]) -> list[Index]:
        """Indices of a place in a result, or on the stack in a row of its own."""
        rank = len(cast("MemRefType[Any]", buffer.type).get_shape())
        if rank == len(place):
            return [c.base for c in place]
        folded = [place[d] for d in self.plan.folded]
        sizes = [self.plan.sizes[d] for d in self.plan.folded]
        return [Places(self.b, 0).linear([Coordinate(c.base) for c in folded], sizes).base]

    def load(
        self, e: Elements, saved: Saved, value: SSAValue, place: Sequence[Coordinate]
    ) -> Value:
        bases = self.bases(saved.buffer, place)
        found = self.b.vector_load(saved.buffer, bases, self.lanes, e.places.mask)
        return (to_register(self.b, found, element_type(value)),)

    # Results of folds in memory

    def room_for(self, value: SSAValue, home: int | None) -> Saved:
        """Memory for a value that is saved."""
        if home is not None:
            is_stored = self.frame.outputs[home] is value
            return Saved(self.frame.targets[home], is_stored)
        type_ = memory_type(element_type(value))
        return Saved(self.b.scratch([self.plan.row], type_), False)

    def joined(self, row: Row, fold: Fold, sets: Sequence[Sequence[Value]]) -> list[Value]:
        """Vectors that were worked on at once, and their lanes, in one."""
        return fold.reducer.lanes_joined(row.scalar, fold.reducer.vectors_joined(row.e, sets))
