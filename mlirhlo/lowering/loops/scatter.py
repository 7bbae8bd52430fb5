"""scatter: updates combined in, one after the other.

Updates of one element combine in row-major order of the updates, by any computation. A window is left out when it
does not lie inside the array as a whole.

    result = target
    for each start index:            # in order; in parallel over columns that no index moves
      if the window lies inside:
        for each element of the window:
          result[start + element] = combiner(result[start + element], update[…])

Kinds, in the schedule:
`windows` as above, windows in vectors of `lanes` along the last dimension, where there are some
`runs`    where start indices are said to be sorted, a small window stays in registers while the index is the same

`chunk` columns, elements of windows along the last dimension, are a part of the parallel loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import prod

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from mlirhlo.dialects.structured import ScatterOp
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.loop_kernels import lanes_for
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.loops.kernel import LoopKernel, array, inlined, is_minor, mapped
from mlirhlo.lowering.loops.lowering import OpLowering, lowers
from mlirhlo.lowering.loops.schedule import LoopSchedule

_UPDATE_NS = 1.5
"""Time an update takes, about."""
_COLUMNS = 64
"""Columns that a thread takes at least: whole cache lines."""
_MAX_PARTS = 64
_MAX_KEPT_VECTORS = 4
"""Vectors of a window that stays in registers."""
_MIN_REPEATS = 4
"""Updates of a row, on average, from which on a test for a new row costs less than waiting for memory."""


@lowers(ScatterOp)
class Scatter(OpLowering[ScatterOp]):
    """Window by window."""

    kinds = ("windows", "runs")

    def kind(self, op: ScatterOp) -> str:
        """Runs of equal indices where they are long and windows small."""
        if not _has_runs(op):
            return "windows"
        lanes = self.lanes(op, "runs")
        if self.chunk(op, LoopSchedule("runs", lanes)) < op.space[-1]:
            return "windows"
        scattered = prod(op.space[d] for d in _scattered(op))
        is_repeated = scattered >= _MIN_REPEATS * array(op.targets[0]).dimensions[op.indexed[0]]
        is_small = len(_kept_pieces(op, lanes)) * len(op.targets) <= _MAX_KEPT_VECTORS
        return "runs" if is_repeated and is_small and (lanes or not _windows(op)) else "windows"

    def lanes(self, op: ScatterOp, kind: str) -> int:
        """As many as a register holds; none where elements of windows are no neighbours."""
        del kind
        return lanes_for([array(v) for v in (*op.targets, *op.updates)]) if _is_in_lines(op) else 0

    def chunk(self, op: ScatterOp, schedule: LoopSchedule) -> int:
        """All columns but where no index moves them and each thread has enough."""
        columns = op.space[-1] if op.space else 1
        if not schedule.lanes or _windows(op)[len(op.space) - 1] in op.indexed:
            return max(columns, 1)
        most = min(columns // _COLUMNS, _MAX_PARTS)
        parts = next((n for n in range(most, 0, -1) if columns % n == 0), 1)
        return max(columns // parts, 1)

    def reason_against(self, op: ScatterOp, schedule: LoopSchedule) -> str:
        """Vectors need neighbours, parts columns that stay apart, runs sorted indices."""
        columns = max(op.space[-1], 1) if op.space else 1
        if schedule.lanes and not _is_in_lines(op):
            return "windows have no neighbours along the last dimension"
        if schedule.chunk < 1 or columns % schedule.chunk:
            return f"chunks are equal parts of {columns} columns"
        if schedule.chunk < columns and (
            not schedule.lanes or _windows(op)[len(op.space) - 1] in op.indexed
        ):
            return "parts need columns in vectors that no index moves"
        if schedule.kind == "runs" and (
            schedule.chunk < columns or not _has_runs(op) or (_windows(op) and not schedule.lanes)
        ):
            return "runs need one sorted index, windows along the last dimension, and one part"
        return ""

    def emit(self, k: LoopKernel, op: ScatterOp, schedule: LoopSchedule) -> None:
        """The targets with the updates."""
        for target, result in zip(op.targets, op.outputs, strict=True):
            k.start_as(target, result)
        if 0 not in op.space and 0 not in array(op.targets[0]).dimensions:
            _Scatter(k, op, schedule).build()


def _windows(op: ScatterOp) -> dict[int, int]:
    """Dimensions of the targets by the dimensions of windows in the updates, which no index map names."""
    named = {
        part.position
        for map_ in op.index_maps
        for result in map_.results
        for part in result.dfs()
        if isinstance(part, AffineDimExpr)
    }
    offsets: Sequence[AffineExpr] = op.offset_map.results
    return {
        expr.position: dim
        for dim, expr in enumerate(offsets)
        if isinstance(expr, AffineDimExpr) and expr.position not in named
    }


def _scattered(op: ScatterOp) -> list[int]:
    """Dimensions of the updates outside of windows."""
    windows = _windows(op)
    return [d for d in range(len(op.space)) if d not in windows]


def _is_in_lines(op: ScatterOp) -> bool:
    """Whether elements of windows along the last dimension are neighbours in all arrays."""
    last = len(op.space) - 1
    dim = _windows(op).get(last)
    if dim is None:
        return False
    arrays = (*op.targets, *op.outputs)
    return all(is_minor(v, dim) for v in arrays) and all(is_minor(v, last) for v in op.updates)


def _has_runs(op: ScatterOp) -> bool:
    """Whether equal start indices follow each other: one index alone moves windows along the last dimension."""
    if op.indices_are_sorted is None or len(op.indexed) != 1 or not _scattered(op):
        return False
    windows, last = _windows(op), len(op.space) - 1
    free = [d for d in range(len(array(op.targets[0]).dimensions)) if d != op.indexed[0]]
    constant = [d for d in free if d not in windows.values()]
    has_others = any(not _is_zero(op.offset_map.results[d]) for d in constant)
    return (
        list(windows) in ([], [last]) and op.indexed[0] not in windows.values() and not has_others
    )


def _is_zero(expr: AffineExpr) -> bool:
    return expr == AffineExpr.constant(0)


def _kept_pieces(op: ScatterOp, lanes: int) -> Sequence[tuple[int, int]]:
    return _pieces(op.space[-1], lanes) if _windows(op) else [(0, 0)]


class _Scatter:
    def __init__(self, k: LoopKernel, op: ScatterOp, schedule: LoopSchedule) -> None:
        self.k, self.b, self.op, self.schedule = k, k.b, op, schedule
        self.lanes, self.space = schedule.lanes, op.space
        self.scattered = _scattered(op)
        self.windows = _windows(op)

    def build(self) -> None:
        """All updates."""
        columns, chunk = self.space[-1] if self.space else 0, self.schedule.chunk
        if chunk >= columns:
            self.loops([], (0, columns))
            return
        work = array(self.op.updates[0]).element_count * _UPDATE_NS / (self.lanes or 1)
        with self.b.parallel(columns // chunk, work=work) as part:
            self.loops([], (self.b.mul(part, chunk), chunk))

    def loops(self, update: list[Coordinate], columns: tuple[Index, int]) -> None:
        """The loops from the dimension on that indices of an update have come to."""
        at = len(update)
        if at == (self.scattered[-1] + 1 if self.scattered else 0):
            starts, inside = self.starts(update)
            if inside is None:
                self.window(update, starts, columns)
            else:
                with self.b.if_(inside):
                    self.window(update, starts, columns)
            return
        if self.scattered and at == self.scattered[-1] and self.schedule.kind == "runs":
            self.runs(update)
            return
        with self.b.loop(0, self.space[at]) as i:
            self.loops([*update, Coordinate(i)], columns)

    def starts(self, update: Sequence[Coordinate]) -> tuple[dict[int, Index], SSAValue | None]:
        """Where the window of an index begins, by dimension, and whether it lies inside."""
        b, op, scalars = self.b, self.op, Places(self.b, 0)
        inside: SSAValue | None = None
        starts: dict[int, Index] = {}
        rows = zip(op.indices, op.index_maps, op.indexed, op.largest, strict=True)
        for indices, map_, dim, limit in rows:
            (number,) = self.k.read(indices, mapped(scalars, map_, update), scalars)
            start = b.cast_index(number, INDEX, signed=array(indices).element_type.is_signed)
            # Unsigned: what is below zero, or too big for a signed index, lies beyond.
            here = b.cmpi("ule", start, b.constant(limit, INDEX))
            inside = here if inside is None else b.andi(inside, here)
            starts[dim] = start
        return starts, inside

    def window(
        self, update: Sequence[Coordinate], starts: dict[int, Index], columns: tuple[Index, int]
    ) -> None:
        """The elements of one window, the last dimension in vectors where it can be."""
        b, lanes = self.b, self.lanes
        left = self.space[len(update) :]
        with ExitStack() as stack:
            outer = [*update]
            for size in left[:-1] if lanes else left:
                outer.append(Coordinate(stack.enter_context(b.loop(0, size))))
            if not lanes:
                self.update(outer, starts, Places(b, 0))
                return
            first, count = columns
            if count < lanes:
                for at, width in _pieces(count, lanes):
                    piece = _lanes_at(b.add(first, at), width)
                    self.update([*outer, piece], starts, Places(b, width))
                return
            whole = count - count % lanes
            if whole:
                with b.loop(0, whole, lanes) as i:
                    block = Coordinate(b.add(first, i), 1)
                    self.update([*outer, block], starts, Places(b, lanes))
            if whole != count:
                mask = b.mask(b.index(count - whole), lanes)
                rest = Coordinate(b.add(first, whole), 1)
                self.update([*outer, rest], starts, Places(b, lanes, mask))

    def update(
        self, update: Sequence[Coordinate], starts: dict[int, Index], places: Places
    ) -> None:
        """An element of a window, or neighbours."""
        offsets = mapped(places, self.op.offset_map, update)
        target = [
            places.shifted(c, starts[dim]) if dim in starts else c for dim, c in enumerate(offsets)
        ]
        old = [self.k.written(result, target, places) for result in self.op.outputs]
        self.write(target, self.combined(update, old, places), places)

    def combined(
        self, update: Sequence[Coordinate], old: Sequence[Value], places: Places
    ) -> Sequence[Value]:
        """Old values combined with those of the updates."""
        new = [self.k.read(value, update, places) for value in self.op.updates]
        return inlined(places, self.op.combiner, [*old, *new])

    def write(self, target: Sequence[Coordinate], values: Sequence[Value], places: Places) -> None:
        """Elements of all results."""
        for result, value in zip(self.op.outputs, values, strict=True):
            self.k.write(result, target, value, places.lanes, places.mask)

    # Runs of equal start indices

    def runs(self, outer: Sequence[Coordinate]) -> None:
        """The innermost loop over start indices: a window is loaded and stored where they change.

        Start -1 stands for windows that do not lie inside, which are not stored.
        """
        b, (dim,) = self.b, self.op.indexed
        outside = b.constant(-1, INDEX)
        initial = [outside, *self.load(0)]
        with b.loop(0, self.space[len(outer)], 1, initial) as loop:
            before, *kept = loop.carried
            update = [*outer, Coordinate(loop.index)]
            starts, inside = self.starts(update)
            assert inside is not None
            start = b.select(inside, b.index(starts[dim]), outside)
            with b.otherwise(b.cmpi("ne", start, before), kept) as choice:
                with b.if_(b.cmpi("ne", before, outside)):
                    self.store(before, kept)
                choice.give(*self.load(b.select(inside, start, b.constant(0, INDEX))))
            rest, combined = iter(choice.results), list[SSAValue]()
            for at, lanes in _kept_pieces(self.op, self.lanes):
                here = [*update, _lanes_at(at, lanes)] if self.windows else update
                old = [self.taken(rest, result) for result in self.op.outputs]
                for value in self.combined(here, old, Places(b, lanes)):
                    combined += value
            loop.carry(start, *combined)
        last, *kept = loop.results
        with b.if_(b.cmpi("ne", last, outside)):
            self.store(last, kept)

    def load(self, start: Index) -> list[SSAValue]:
        """The pieces of a window of the results."""
        pieces = [self.piece(at, n, start) for at, n in _kept_pieces(self.op, self.lanes)]
        results = self.op.outputs
        return [part for piece in pieces for v in results for part in self.k.written(v, *piece)]

    def store(self, start: SSAValue, parts: Sequence[SSAValue]) -> None:
        """The pieces, where they were loaded."""
        rest = iter(parts)
        for at, lanes in _kept_pieces(self.op, self.lanes):
            target, places = self.piece(at, lanes, start)
            self.write(target, [self.taken(rest, v) for v in self.op.outputs], places)

    def piece(self, at: int, lanes: int, start: Index) -> tuple[list[Coordinate], Places]:
        """Where a piece of a window is in the results."""
        target = [Coordinate(0)] * len(self.op.offset_map.results)
        for dim in self.windows.values():
            target[dim] = _lanes_at(at, lanes)
        target[self.op.indexed[0]] = Coordinate(start)
        return target, Places(self.b, lanes)

    def taken(self, parts: Iterator[SSAValue], result: SSAValue) -> Value:
        """The next value of an array: of complex numbers two parts."""
        return tuple(next(parts) for _ in range(2 if array(result).element_type.is_complex else 1))


def _pieces(count: int, lanes: int) -> list[tuple[int, int]]:
    """Starts and lanes of vectors of `lanes`, then of powers of two below, that cover a line; 0 for a scalar."""
    pieces, at = list[tuple[int, int]](), 0
    while at < count:
        width = min(lanes, 1 << ((count - at).bit_length() - 1))
        pieces.append((at, width if width > 1 else 0))
        at += width
    return pieces


def _lanes_at(first: Index, lanes: int) -> Coordinate:
    return Coordinate(first, 1 if lanes else 0)
