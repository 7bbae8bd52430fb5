"""Kernels that fold rows into columns: sums over the first dimensions, and what is done with them.

    parallel for piece of rows:
      for four rows r of it, or more:
        for column:  part[column] += x[r, column] + … + x[r + 3, column]
    for column:  total[column] = all parts

Rows are walked in the order of memory, some at once, and totals stay in the cache, so that columns cost
what reading costs. Where there are enough arrays or tiles of columns to share out, rows are in one piece,
all rounds of a tile follow each other, and totals stand on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value, memory_type
from mlirhlo.lowering.hlo_to_loops.fold_plan import Fold, FoldPlan
from mlirhlo.lowering.hlo_to_loops.fold_rooms import FoldRooms
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_TILE_BYTES = 16 << 10
"""Of the totals of a tile of columns: they stay in the first cache."""
_ENOUGH = 32
"""Rounds of a parallel loop that are enough for all threads."""
_PIECE = 1 << 15
"""Elements of a piece of rows, at least."""


def column_kernel(frame: Frame, plan: FoldPlan) -> FuncOp:
    """The kernel of a plan whose last dimension is kept."""
    columns = _Columns(frame, plan)
    if columns.pieces > 1:
        columns.in_pieces()
    else:
        columns.in_tiles()
    return frame.b.finish()


@dataclass
class _Tile:
    """Columns of one array that are worked on together."""

    e: Elements
    place: tuple[Coordinate, ...]
    """Of the kept dimensions but the last."""
    low: Index
    high: Index
    """Its columns."""
    known: dict[Fold, tuple[Sequence[SSAValue], Index]]
    """Buffers of what is folded already, and the index in them of column 0."""


class _Columns(FoldRooms):
    def __init__(self, frame: Frame, plan: FoldPlan) -> None:
        super().__init__(frame.b, frame.lanes)
        self.frame, self.plan, self.lanes = frame, plan, frame.lanes
        self.width = plan.sizes[-1]
        self.arrays = prod(plan.sizes[d] for d in plan.kept[:-1])
        bytes_ = max(t.byte_size for f in plan.folds for t in f.reducer.work)
        vectors = max(_TILE_BYTES // bytes_ // self.lanes, 1)
        tiles = -(-self.width // (vectors * self.lanes))
        self.tile = -(-self.width // tiles // self.lanes) * self.lanes
        self.tiles = -(-self.width // self.tile)
        wanted = -(-_ENOUGH // (self.arrays * self.tiles))
        room = plan.row * self.arrays * self.width // _PIECE
        self.rows = plan.sizes[plan.folded[0]]
        self.pieces = max(min(wanted, room, self.rows // 4), 1)

    # One tile after the other, or all at once

    def in_tiles(self) -> None:
        """All rounds of a tile, then its results."""
        with self.b.parallel(self.arrays * self.tiles, work=self.frame.work) as number:
            tile = self.begin(number)
            for at in range(self.plan.rounds):
                folds = self.plan.folds_of(at)
                parts = {f: self.rooms(f.reducer.work, self.tile) for f in folds}
                start = self.b.sub(0, tile.low)
                self.clear(tile, folds, parts, start)
                self.round(tile, at, parts, start, 0, self.rows)
                totals = {f: self.rooms(f.reducer.elements, self.tile) for f in folds}
                for fold in folds:
                    found = partial(self.part, fold, parts[fold], start)
                    self.finish(tile, fold, totals[fold], start, found)
                    tile.known[fold] = (totals[fold], start)
            self.results(tile)

    def in_pieces(self) -> None:
        """Each round shares out pieces of all rows; then their results are put together."""
        b, plan, pieces = self.b, self.plan, self.pieces
        padded = self.tiles * self.tile
        memory = _Workspace(self)
        parts = {f: memory.rooms(f.reducer.work, self.arrays * pieces * padded) for f in plan.folds}
        totals = {f: memory.rooms(f.reducer.elements, self.arrays * padded) for f in plan.folds}
        memory.allocate()
        known: dict[Fold, tuple[Sequence[SSAValue], int]] = {}
        for at in range(plan.rounds):
            folds = plan.folds_of(at)
            work = self.frame.work / plan.rounds
            with b.parallel(self.arrays * self.tiles * pieces, work=work) as number:
                group, piece = b.div(number, pieces), b.rem(number, pieces)
                tile = self.begin(group, known)
                array = b.div(group, self.tiles)
                start = b.mul(b.add(b.mul(array, pieces), piece), padded)
                self.clear(tile, folds, parts, start)
                unit = self.unit(at)
                low, high = (
                    b.mul(b.div(b.mul(n, self.rows // unit), pieces), unit)
                    for n in (piece, b.add(piece, 1))
                )
                self.round(tile, at, parts, start, low, high)
            if not folds:
                continue
            with b.parallel(self.arrays * self.tiles, work=work / plan.row * pieces) as number:
                tile = self.begin(number, known)
                array = b.div(number, self.tiles)
                for fold in folds:
                    found = partial(self.put_together, fold, parts[fold], array, padded)
                    self.finish(tile, fold, totals[fold], b.mul(array, padded), found)
            known |= {fold: (totals[fold], padded) for fold in folds}
        with b.parallel(self.arrays * self.tiles, work=self.frame.work / plan.row) as number:
            self.results(self.begin(number, known))

    def finish(
        self,
        tile: _Tile,
        fold: Fold,
        rooms: Sequence[SSAValue],
        start: Index,
        total: Callable[[Elements, Coordinate], list[Value]],
    ) -> None:
        """Results of a fold out of what `total` finds for a column."""

        def body(e: Elements, c: Coordinate) -> None:
            done = fold.reducer.finished(e, total(e, c), fold.starts)
            self.keep(fold.reducer.elements, done, rooms, self.b.add(start, c.base))

        self.columns(tile, body)

    def part(
        self, fold: Fold, parts: Sequence[SSAValue], start: Index, e: Elements, c: Coordinate
    ) -> list[Value]:
        """What all rows gave a column."""
        del e
        return self.fetch(fold.reducer.work, parts, self.b.add(start, c.base))

    def put_together(
        self,
        fold: Fold,
        parts: Sequence[SSAValue],
        array: Index,
        padded: int,
        e: Elements,
        c: Coordinate,
    ) -> list[Value]:
        """What the pieces of a column gave, in their order."""
        b, reducer = self.b, fold.reducer
        first = b.add(b.mul(array, self.pieces * padded), c.base)
        total = self.fetch(reducer.work, parts, first)
        flat = [p for v in total for p in v]
        last = b.add(first, self.pieces * padded)
        with b.loop(b.add(first, padded), last, padded, flat) as loop:
            rest = iter(loop.carried)
            before = [tuple(next(rest) for _ in v) for v in total]
            more = reducer.joined(e.scope(), before, self.fetch(reducer.work, parts, loop.index))
            loop.carry(*[p for v in more for p in v])
        rest = iter(loop.results)
        return [tuple(next(rest) for _ in v) for v in total]

    def begin(
        self,
        number: Index,
        known: dict[Fold, tuple[Sequence[SSAValue], int]] | None = None,
    ) -> _Tile:
        """A tile, by its number among those of all arrays."""
        b, plan = self.b, self.plan
        array, tile = b.div(number, self.tiles), b.rem(number, self.tiles)
        places = Places(b, 0)
        sizes = [plan.sizes[d] for d in plan.kept[:-1]]
        place = tuple(places.unlinear(Coordinate(array), sizes))
        low = b.mul(tile, self.tile)
        high: Index = self.width
        if self.tiles > 1:
            high = b.minimum(b.add(low, self.tile), self.width)
        found = {f: (rooms, b.mul(array, size)) for f, (rooms, size) in (known or {}).items()}
        return _Tile(Elements(Places(b, self.lanes), self.frame.buffers), place, low, high, found)

    # Loops

    def columns(self, tile: _Tile, body: Callable[[Elements, Coordinate], None]) -> None:
        """Whole vectors of a tile's columns; behind the last one the rest under a mask."""
        b, lanes = self.b, self.lanes
        whole = self.width - self.width % lanes
        high = b.minimum(tile.high, whole) if self.tiles > 1 else whole
        if whole:
            with b.loop(tile.low, high, lanes) as c:
                body(tile.e.scope(), Coordinate(c, 1, None, lanes))
        if whole == self.width:
            return

        def rest() -> None:
            places = Places(b, lanes, b.mask(b.index(self.width - whole), lanes))
            body(tile.e.scope(places), Coordinate(whole, 1, None, lanes))

        if self.tiles == 1:
            rest()
        else:
            is_last = b.cmpi("eq", b.index(tile.high), b.index(self.width))
            with b.if_(is_last):
                rest()

    def clear(
        self, tile: _Tile, folds: Sequence[Fold], parts: dict[Fold, list[SSAValue]], start: Index
    ) -> None:
        """What folds start from."""

        def body(e: Elements, c: Coordinate) -> None:
            for fold in folds:
                values = fold.reducer.start(e, fold.starts)
                self.keep(fold.reducer.work, values, parts[fold], self.b.add(start, c.base))

        if folds:
            self.columns(tile, body)

    def far(self, at: int) -> Sequence[SSAValue]:
        """Operands that no cache holds, which the round reads row by row."""
        read = self.plan.last_read.items()
        return [v for v, last in read if last >= at and self.frame.is_far(v)]

    def at_once(self, at: int) -> int:
        """Rows that a round walks at once: more where they come from memory."""
        cost = self.plan.cost[at]
        rows = 4 if cost <= 8 else 2 if cost <= 16 else 1
        return 2 * rows if self.far(at) else rows

    def unit(self, at: int) -> int:
        """Rows that pieces are made of: as many as are walked at once, where that leaves none over."""
        at_once = self.at_once(at)
        return at_once if len(self.plan.folded) == 1 and self.rows % at_once == 0 else 1

    def round(
        self,
        tile: _Tile,
        at: int,
        parts: dict[Fold, list[SSAValue]],
        start: Index,
        low: Index,
        high: Index,
    ) -> None:
        """Rows `low` to `high` of the first folded dimension, the others whole."""
        b, plan = self.b, self.plan
        at_once, far = self.at_once(at), self.far(at)

        def nest(e: Elements, indices: Sequence[Coordinate]) -> None:
            depth = len(indices)
            first, last = (low, high) if depth == 0 else (0, plan.sizes[plan.folded[depth]])
            if depth < len(plan.folded) - 1:
                with b.loop(first, last) as r:
                    nest(e.scope(), [*indices, Coordinate(r)])
                return
            whole: Index = last
            if depth > 0 or self.unit(at) == 1:
                count = b.sub(last, first)
                whole = b.add(first, b.mul(b.div(count, at_once), at_once))
            parts_of_rows = [(first, whole, at_once)]
            if at_once > 1:
                parts_of_rows.append((whole, last, 1))
            for begin, end, step in parts_of_rows:
                if begin is end or begin == end:
                    continue
                with b.loop(begin, end, step) as r:
                    rows = [Coordinate(b.add(r, n)) for n in range(step)]
                    inner = _Tile(e.scope(), tile.place, tile.low, tile.high, tile.known)

                    def body(e: Elements, c: Coordinate, rows: Any = rows) -> None:
                        places = [[*indices, r] for r in rows]
                        self.ask_for(far, tile, places, c)
                        self.step(e, tile, at, parts, start, places, c)

                    self.columns(inner, body)

        nest(tile.e, [])

    def place(self, tile: _Tile, row: Sequence[Coordinate], c: Coordinate) -> list[Coordinate]:
        """Of all dimensions, in their order."""
        at_dims = dict(zip(self.plan.kept, [*tile.place, c], strict=True))
        at_dims |= dict(zip(self.plan.folded, row, strict=True))
        return [at_dims[d] for d in range(len(self.plan.sizes))]

    def ask_for(
        self,
        operands: Sequence[SSAValue],
        tile: _Tile,
        rows: Sequence[Sequence[Coordinate]],
        c: Coordinate,
    ) -> None:
        """As many rows of operands, below: a tile of them is more than the first cache holds."""
        for operand in operands:
            for *outer, row in rows:
                below = Coordinate(self.b.add(row.base, len(rows)))
                place = [p.base for p in self.place(tile, [*outer, below], c)]
                self.frame.prefetch(operand, place, locality=2)

    def step(
        self,
        e: Elements,
        tile: _Tile,
        at: int,
        parts: dict[Fold, list[SSAValue]],
        start: Index,
        rows: Sequence[Sequence[Coordinate]],
        c: Coordinate,
    ) -> None:
        """One vector of columns, of some rows: folds, and results of the whole's shape."""
        plan, frame = self.plan, self.frame
        self.know(e, tile, c)
        places = [self.place(tile, row, c) for row in rows]
        index = self.b.add(start, c.base)
        for fold in plan.folds_of(at):
            total = self.fetch(fold.reducer.work, parts[fold], index)
            for place in places:
                taken = fold.reducer.taken(self.b, [e.at(v, place) for v in fold.inputs])
                total = fold.reducer.combined(e, total, taken)
            self.keep(fold.reducer.work, total, parts[fold], index)
        for place in places:
            whole = [n for n, r in plan.whole if r == at]
            values = [e.at(frame.outputs[n], place) for n in whole]
            for n, value in zip(whole, values, strict=True):
                shape = arrays_in(frame.outputs[n])[0]
                bases = [p.base for p in place]
                store(self.b, frame.targets[n], bases, value, shape, self.lanes, e.places.mask)

    def results(self, tile: _Tile) -> None:
        """Results with one element a column."""
        frame = self.frame

        def body(e: Elements, c: Coordinate) -> None:
            self.know(e, tile, c)
            place = (*tile.place, c)
            values = [e.at(frame.outputs[n], place) for n in self.plan.of_rows]
            for n, value in zip(self.plan.of_rows, values, strict=True):
                shape = arrays_in(frame.outputs[n])[0]
                bases = [p.base for p in place]
                store(self.b, frame.targets[n], bases, value, shape, self.lanes, e.places.mask)

        if self.plan.of_rows:
            self.columns(tile, body)

    def know(self, e: Elements, tile: _Tile, c: Coordinate) -> None:
        """What was folded already, at a column."""
        place = (*tile.place, c)
        for fold, (rooms, start) in tile.known.items():
            values = self.fetch(fold.reducer.elements, rooms, self.b.add(start, c.base))
            if isinstance(shape_of(fold.op.output.type), TupleShape):
                e.know_parts(fold.op.output, place, values)
            else:
                e.know(fold.op.output, place, values[0])


class _Workspace:
    """Rooms in the memory of a call."""

    def __init__(self, columns: _Columns) -> None:
        self.b = columns.b
        self.size = 0
        self._wanted: list[tuple[list[SSAValue], int, Any]] = []

    def rooms(self, types: Sequence[PrimitiveType], count: int) -> list[SSAValue]:
        """Buffers, there once `allocate` was called."""
        found: list[SSAValue] = []
        for type_ in types:
            element = memory_type(type_)
            for _ in range(1 + type_.is_complex):
                self._wanted.append((found, self.size, MemRefType(element, [count])))
                self.size += -(-count * type_.real.byte_size // 64) * 64
        return found

    def allocate(self) -> None:
        """Asks for the workspace."""
        memory = self.b.workspace(max(self.size, 64))
        for found, offset, type_ in self._wanted:
            found.append(self.b.emit(memref.ViewOp, [memory, self.b.index(offset)], type_))
