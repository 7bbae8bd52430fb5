"""scatter: updates combined in, one after the other.

Updates of one place combine in row-major order of the updates, by any computation. A window is left out
when it does not lie inside the array as a whole.

    result = operand
    for each start index:            # in order; in parallel over columns that no index moves
      if the window lies inside:
        for each element of the window:
          result[start + element] = to_apply(result[start + element], update[…])

Where start indices are said to be sorted, a small window stays in registers while the start index is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.data_movement import ScatterOp
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel, is_minor
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.folds import callee
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.loop_kernels import lanes_for
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_UPDATE_NS = 1.5
"""Time an update takes, about."""
_COLUMNS = 64
"""Columns that a thread takes at least: whole cache lines."""
_MAX_KEPT_VECTORS = 4
"""Vectors of a window that stays in registers."""
_MIN_REPEATS = 4
"""Updates of a row, on average, from which on a test for a new row costs less than waiting for memory."""


@builds("scatter")
def scatter(name: str, op: Any) -> FuncOp:
    """The kernel of a scatter of any number of arrays."""
    return _Scatter(name, op).build()


class _Scatter:
    def __init__(self, name: str, op: ScatterOp) -> None:
        self.op = op
        self.k = ArrayKernel(name, op)
        self.b = self.k.b
        self.count = len(op.inputs) // 2
        self.sizes = self.k.operands[0].dimensions
        self.updates = self.k.operands[self.count + 1].dimensions
        self.window = list(op.update_window_dims)
        self.scattered = [d for d in range(len(self.updates)) if d not in self.window]
        skipped = {*op.inserted_window_dims, *op.input_batching_dims}
        kept = [d for d in range(len(self.sizes)) if d not in skipped]
        self.dim_of = dict(zip(self.window, kept, strict=True))
        """Dimension of the array by dimension of the window in the updates."""
        self.combine = callee(op, op.to_apply)
        self.results = range(2 * self.count + 1, 3 * self.count + 1)
        """Numbers of the results among the kernel's arguments."""
        self.lanes = self._lanes()

    def build(self) -> FuncOp:
        for number in range(self.count):
            self.k.start_as(number, number)
        if 0 in self.updates or 0 in self.sizes:
            return self.k.finish()
        parts = self._parts()
        if parts > 1:
            columns = self.updates[-1] // parts
            work = self.k.operands[self.count + 1].element_count * _UPDATE_NS / (self.lanes or 1)
            with self.b.parallel(parts, work=work) as part:
                first = self.b.mul(part, columns)
                self._loops([], (first, columns))
        else:
            self._loops([], (0, self.updates[-1] if self.updates else 0))
        return self.k.finish()

    def _lanes(self) -> int:
        """Lanes along the last dimension of the updates; 0 when its elements are no neighbours."""
        if not self.updates:
            return 0
        last = len(self.updates) - 1
        if last not in self.dim_of:
            return 0
        shapes = [*self.k.operands, *self.k.results]
        arrays, updates = shapes[: self.count], shapes[self.count + 1 : 2 * self.count + 1]
        results = shapes[2 * self.count + 1 :]
        dim = self.dim_of[last]
        neighbours = all(is_minor(s, dim) for s in (*arrays, *results))
        if not neighbours or not all(is_minor(s, last) for s in updates):
            return 0
        return lanes_for([*arrays, *updates])

    def _parts(self) -> int:
        """How many ranges of columns can be worked on at the same time: no index may move them."""
        if not self.lanes:
            return 1
        if self.dim_of[len(self.updates) - 1] in self.op.scatter_dims_to_operand_dims:
            return 1
        most = self.updates[-1] // _COLUMNS
        return next((n for n in range(min(most, 64), 0, -1) if self.updates[-1] % n == 0), 1)

    def _loops(self, place: list[Coordinate], columns: tuple[Index, int]) -> None:
        """The loops from the dimension on that `place` has come to."""
        at = len(place)
        if at == (self.scattered[-1] + 1 if self.scattered else 0):
            starts, inside = self._starts(place)
            if inside is None:
                self._windows(place, starts, columns)
            else:
                with self.b.if_(inside):
                    self._windows(place, starts, columns)
            return
        if self.scattered and at == self.scattered[-1] and self._is_kept():
            self._sorted_windows(place)
            return
        with self.b.loop(0, self.updates[at]) as i:
            self._loops([*place, Coordinate(i)], columns)

    def _starts(self, place: Sequence[Coordinate]) -> tuple[list[Index], SSAValue | None]:
        """Where the window of an index begins, by dimension, and whether it lies inside."""
        b, op = self.b, self.op
        places = Places(b, 0)
        indices = self.k.operands[self.count]
        base = [place[d] for d in self.scattered]
        vector_dim = op.index_vector_dim
        inside: SSAValue | None = None
        starts: list[Index] = [0] * len(self.sizes)
        widths = {dim: self.updates[of] for of, dim in self.dim_of.items()}
        for component, dim in enumerate(op.scatter_dims_to_operand_dims):
            at = base
            if vector_dim < indices.rank:
                at = [*base[:vector_dim], Coordinate(component), *base[vector_dim:]]
            (number,) = self.k.read(self.count, at, places)
            start = b.cast_index(number, INDEX, signed=indices.element_type.is_signed)
            # Unsigned: what is below zero, or too big for a signed index, lies beyond.
            most = b.constant(self.sizes[dim] - widths.get(dim, 1), INDEX)
            here = b.cmpi("ule", start, most)
            if self.sizes[dim] < widths.get(dim, 1):
                here = b.constant(False, here.type)
            inside = here if inside is None else b.andi(inside, here)
            starts[dim] = start
        pairs = zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True)
        for dim, of_indices in pairs:
            starts[dim] = base[of_indices - (vector_dim < of_indices)].base
        return starts, inside

    def _windows(
        self, place: Sequence[Coordinate], starts: Sequence[Index], columns: tuple[Index, int]
    ) -> None:
        """The elements of one window, the last dimension in vectors where it can be."""
        b = self.b
        left = self.updates[len(place) :]
        with ExitStack() as stack:
            outer = [*place]
            for size in left[:-1] if self.lanes else left:
                outer.append(Coordinate(stack.enter_context(b.loop(0, size))))
            if not self.lanes:
                self._update(outer, starts, 0, None)
                return
            first, count = columns
            if count < self.lanes:
                for at, lanes in _pieces(count, self.lanes):
                    self._update([*outer, _lanes_at(at, lanes)], starts, lanes, None)
                return
            whole = count - count % self.lanes
            if whole:
                with b.loop(0, whole, self.lanes) as i:
                    block = Coordinate(b.add(first, i), 1)
                    self._update([*outer, block], starts, self.lanes, None)
            if whole != count:
                mask = b.mask(b.index(count - whole), self.lanes)
                rest = Coordinate(b.add(first, whole), 1)
                self._update([*outer, rest], starts, self.lanes, mask)

    def _update(
        self,
        place: Sequence[Coordinate],
        starts: Sequence[Index],
        lanes: int,
        mask: SSAValue | None,
    ) -> None:
        places = Places(self.b, lanes, mask)
        target = self._target(place, starts, places)
        old = [self.k.read(n, target, places) for n in self.results]
        self._write(target, self._combined(place, old, places), places)

    def _target(
        self, place: Sequence[Coordinate], starts: Sequence[Index], places: Places
    ) -> list[Coordinate]:
        """Indices in the arrays of an element of the updates."""
        target = [Coordinate(s) for s in starts]
        for of, dim in self.dim_of.items():
            target[dim] = places.shifted(place[of], starts[dim])
        return target

    def _combined(
        self, place: Sequence[Coordinate], old: Sequence[Value], places: Places
    ) -> Sequence[Value]:
        """Old values combined with those of the updates."""
        new = [self.k.read(self.count + 1 + n, place, places) for n in range(self.count)]
        return Elements(places, {}).inline(self.combine, [*old, *new])

    def _write(self, target: Sequence[Coordinate], values: Sequence[Value], places: Places) -> None:
        for number, value in zip(self.results, values, strict=True):
            self.k.write(number, target, value, places.lanes, places.mask)

    # Sorted start indices

    def _is_kept(self) -> bool:
        """Whether a window stays in registers: it is small, along one dimension, and one index moves it."""
        op = self.op
        if not op.indices_are_sorted or len(op.scatter_dims_to_operand_dims) != 1:
            return False
        (dim,) = op.scatter_dims_to_operand_dims
        last = len(self.updates) - 1
        if op.input_batching_dims or dim in self.dim_of.values() or self.window not in ([], [last]):
            return False
        if (self.window and not self.lanes) or self._parts() > 1:
            return False
        if prod(self.updates[d] for d in self.scattered) < _MIN_REPEATS * self.sizes[dim]:
            return False
        return len(self._kept_pieces()) * self.count <= _MAX_KEPT_VECTORS

    def _kept_pieces(self) -> Sequence[tuple[int, int]]:
        return _pieces(self.updates[-1], self.lanes) if self.window else [(0, 0)]

    def _sorted_windows(self, outer: Sequence[Coordinate]) -> None:
        """The innermost loop over start indices: a window is loaded and stored where they change.

        Start -1 stands for windows that do not lie inside, which are not stored.
        """
        b = self.b
        (dim,) = self.op.scatter_dims_to_operand_dims
        outside = b.constant(-1, INDEX)
        initial = [outside, *self._load(0)]
        with b.loop(0, self.updates[len(outer)], 1, initial) as loop:
            before, *kept = loop.carried
            place = [*outer, Coordinate(loop.index)]
            starts, inside = self._starts(place)
            assert inside is not None
            start = b.select(inside, b.index(starts[dim]), outside)
            with b.otherwise(b.cmpi("ne", start, before), kept) as choice:
                with b.if_(b.cmpi("ne", before, outside)):
                    self._store(before, kept)
                choice.give(*self._load(b.select(inside, start, b.constant(0, INDEX))))
            rest, combined = iter(choice.results), list[SSAValue]()
            for at, lanes in self._kept_pieces():
                here = [*place, _lanes_at(at, lanes)] if self.window else place
                old = [self._taken(rest, n) for n in self.results]
                for value in self._combined(here, old, Places(b, lanes)):
                    combined += value
            loop.carry(start, *combined)
        last, *kept = loop.results
        with b.if_(b.cmpi("ne", last, outside)):
            self._store(last, kept)

    def _load(self, start: Index) -> list[SSAValue]:
        """The pieces of a window of the results."""
        pieces = [self._kept(at, lanes, start) for at, lanes in self._kept_pieces()]
        return [part for piece in pieces for n in self.results for part in self.k.read(n, *piece)]

    def _store(self, start: SSAValue, parts: Sequence[SSAValue]) -> None:
        rest = iter(parts)
        for at, lanes in self._kept_pieces():
            target, places = self._kept(at, lanes, start)
            self._write(target, [self._taken(rest, n) for n in self.results], places)

    def _kept(self, at: int, lanes: int, start: Index) -> tuple[list[Coordinate], Places]:
        """Where a piece of a window is in the arrays."""
        (dim,) = self.op.scatter_dims_to_operand_dims
        target = [Coordinate(0)] * len(self.sizes)
        for inner in self.dim_of.values():
            target[inner] = _lanes_at(at, lanes)
        target[dim] = Coordinate(start)
        return target, Places(self.b, lanes)

    def _taken(self, parts: Iterator[SSAValue], number: int) -> Value:
        """The next value of an array: of complex numbers two parts."""
        complex_ = self.k.shape(number).element_type.is_complex
        return tuple(next(parts) for _ in range(2 if complex_ else 1))


def _pieces(count: int, lanes: int) -> list[tuple[int, int]]:
    """Starts and lanes of vectors of `lanes`, then of powers of two below, that cover a line; 0 for a scalar."""
    found, at = list[tuple[int, int]](), 0
    while at < count:
        width = min(lanes, 1 << ((count - at).bit_length() - 1))
        found.append((at, width if width > 1 else 0))
        at += width
    return found


def _lanes_at(first: int, lanes: int) -> Coordinate:
    return Coordinate(first, 1 if lanes else 0)
