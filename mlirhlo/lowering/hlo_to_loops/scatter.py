"""scatter: updates combined in, one after the other.

Updates of one place combine in row-major order of the updates, by any computation. A window is left out
when it does not lie inside the array as a whole.

    result = operand
    for each start index:            # in order; in parallel over columns that no index moves
      if the window lies inside:
        for each element of the window:
          result[start + element] = to_apply(result[start + element], update[…])
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.data_movement import ScatterOp
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel, is_minor
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.folds import callee
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.loop_kernels import lanes_for
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_UPDATE_NS = 1.5
"""Time an update takes, about."""
_COLUMNS = 64
"""Columns that a thread takes at least: whole cache lines."""


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
        lanes = lanes_for([*arrays, *updates])
        return lanes if self.updates[-1] >= lanes else 0

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
            whole = count - count % self.lanes
            if whole:
                with b.loop(0, whole, self.lanes) as i:
                    at = Coordinate(b.add(first, i), 1)
                    self._update([*outer, at], starts, self.lanes, None)
            if whole != count:
                mask = b.mask(b.index(count - whole), self.lanes)
                at = Coordinate(b.add(first, whole), 1)
                self._update([*outer, at], starts, self.lanes, mask)

    def _update(
        self,
        place: Sequence[Coordinate],
        starts: Sequence[Index],
        lanes: int,
        mask: SSAValue | None,
    ) -> None:
        places = Places(self.b, lanes, mask)
        target = [Coordinate(s) for s in starts]
        for of, dim in self.dim_of.items():
            target[dim] = places.shifted(place[of], starts[dim])
        count, first_result = self.count, 2 * self.count + 1
        e = Elements(places, {})
        old = [self.k.read(first_result + n, target, places) for n in range(count)]
        new = [self.k.read(count + 1 + n, place, places) for n in range(count)]
        values = e.inline(self.combine, [*old, *new])
        for number, value in enumerate(values):
            self.k.write(first_result + number, target, value, lanes, mask)
