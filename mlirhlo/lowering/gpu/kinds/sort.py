"""Kinds `sort` and `top_k`: stable merge sort, a thread an element.

The first launch orders runs of `RUN` elements by counting, for each element, those that come before it. Each further
launch merges pairs of runs: an element's index is its own in its run plus that at which it would stand in the other
one, found by bisection. An element of the left run comes before what is equal to it, so that the order is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import S32
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.structured import SortOp, TopKOp, sizes_of
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, inputs_of, launches
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort_keys import ordered_key
from mlirhlo.lowering.schedule.attributes import Schedule

RUN = 32
"""Elements that the first launch orders."""

Less: TypeAlias = "Callable[[LaunchBuilder, Sequence[Value], Sequence[Value]], SSAValue]"
"""Whether the elements of the first come before those of the second, one of each array."""
Read: TypeAlias = "Callable[[LaunchBuilder, tuple[Index, ...]], Sequence[Value]]"
"""An element of each array at an index."""


@launches("sort")
def sort(plan: Plan, ops: Sequence[SortOp], schedule: Schedule) -> None:
    """A launch for short runs, then one for each doubling."""
    del schedule
    for op in ops:

        def less(
            b: LaunchBuilder, x: Sequence[Value], y: Sequence[Value], op: SortOp = op
        ) -> SSAValue:
            pairs = [v for pair in zip(x, y, strict=True) for v in pair]
            return b.e.body(op.comparator, pairs)[0][0]

        def read(b: LaunchBuilder, at: tuple[Index, ...], op: SortOp = op) -> Sequence[Value]:
            return [b.e.at(value, at) for value in op.inputs]

        shapes = [array(value) for value in op.outputs]
        targets = [plan.numbers[value] for value in op.outputs]
        _Sorter(plan, shapes, op.dim, inputs_of(plan, ops, ops), read, less).sort(targets)


@launches("top_k")
def top_k(plan: Plan, ops: Sequence[TopKOp], schedule: Schedule) -> None:
    """Values and their numbers, ordered; then the first ones of each row."""
    del schedule
    for op in ops:
        shape = array(op.input)
        sizes = shape.dimensions

        def less(
            b: LaunchBuilder, x: Sequence[Value], y: Sequence[Value], op: TopKOp = op
        ) -> SSAValue:
            keys = [
                ordered_key(
                    b,
                    v[0],
                    array(op.input).element_type,
                    total=True,
                    descending=op.largest is not None,
                )
                for v in (x, y)
            ]
            return b.cmpi("ult", *keys)

        def read(b: LaunchBuilder, at: tuple[Index, ...], op: TopKOp = op) -> Sequence[Value]:
            assert S32.mlir is not None
            return [b.e.at(op.input, at), (b.cast_index(b.index(at[-1]), S32.mlir),)]

        shapes = [shape, ArrayShape(S32, sizes)]
        ordered = [plan.workspace(buffer_type(s)) for s in shapes]
        _Sorter(plan, shapes, len(sizes) - 1, inputs_of(plan, ops, ops), read, less).sort(ordered)
        _first_of_rows(plan, op, shapes, ordered)


def _first_of_rows(
    plan: Plan, op: TopKOp, shapes: Sequence[ArrayShape], ordered: Sequence[int]
) -> None:
    results, kept = (op.values, op.indices), sizes_of(op.values)
    b = plan.begin((), results, (), ordered)

    def body(index: SSAValue) -> None:
        at = b.e.unlinear(index, kept)
        places = [Coordinate(i) for i in at]
        for value, number, shape in zip(results, ordered, shapes, strict=True):
            b.write(value, at, Places(b, 0).load(b.memory[number], shape, places))

    count = prod(kept)
    if count:
        threads = min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)


class _Sorter:
    """Sorts arrays of one shape together along a dimension."""

    def __init__(
        self,
        plan: Plan,
        shapes: Sequence[ArrayShape],
        dim: int,
        inputs: Sequence[SSAValue],
        read: Read,
        less: Less,
    ) -> None:
        self.plan, self.shapes, self.dim = plan, shapes, dim
        self.sizes = shapes[0].dimensions
        self.length = self.sizes[dim]
        self.inputs, self.first_read, self.less = inputs, read, less

    def sort(self, targets: Sequence[int]) -> None:
        """Adds the launches; the result comes to buffers of these numbers."""
        if 0 in self.sizes:
            return
        run, passes = RUN, 0
        while run < self.length:
            run, passes = 2 * run, passes + 1
        other = [self.plan.workspace(buffer_type(s)) for s in self.shapes] if passes else []
        source, target = (other, targets) if passes % 2 else (list(targets), other)
        # Buffers alternate so that the last launch writes the results.
        self._launch(self.inputs, (), source, self._counted)
        run = RUN
        for _ in range(passes):
            self._launch(
                (),
                source,
                target,
                lambda b, at, run=run, source=source: self._merged(b, at, run, source),
            )
            source, target, run = target, source, 2 * run

    def _launch(
        self,
        reads: Sequence[SSAValue],
        from_buffers: Sequence[int],
        to_buffers: Sequence[int],
        place: Callable[[LaunchBuilder, tuple[Index, ...]], tuple[Index, Sequence[Value]]],
    ) -> None:
        """Each thread stores its elements at the index that `place` says."""
        b = self.plan.begin(reads, (), to_buffers, from_buffers)

        def body(index: SSAValue) -> None:
            at = b.e.unlinear(index, self.sizes)
            to, values = place(b, at)
            target = [*at]
            target[self.dim] = to
            for number, shape, value in zip(to_buffers, self.shapes, values, strict=True):
                store(b, b.memory[number], target, value, shape, 0, None)

        count = prod(self.sizes)
        threads = min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)

    def _moved(self, at: tuple[Index, ...], to: Index) -> tuple[Index, ...]:
        return (*at[: self.dim], to, *at[self.dim + 1 :])

    def _before(
        self, b: LaunchBuilder, is_first: SSAValue, x: Sequence[Value], y: Sequence[Value]
    ) -> SSAValue:
        """Whether `y` comes before `x`; of equal ones, that which is not first."""
        lhs = [_select(b, is_first, v, w) for v, w in zip(y, x, strict=True)]
        rhs = [_select(b, is_first, v, w) for v, w in zip(x, y, strict=True)]
        found = self.less(b, lhs, rhs)
        return b.select(is_first, found, b.xori(found, b.constant(True, i1)))

    def _counted(self, b: LaunchBuilder, at: tuple[Index, ...]) -> tuple[Index, Sequence[Value]]:
        mine = self.first_read(b, at)
        index = b.index(at[self.dim])
        start = b.mul(b.div(index, RUN), RUN)
        end = b.minimum(b.add(start, RUN), self.length)
        one = b.constant(1, INDEX)
        with b.loop(start, end, 1, [b.index(start)], nonempty=True) as loop, b.e.scope():
            theirs = self.first_read(b, self._moved(at, loop.index))
            is_first = b.cmpi("ult", index, loop.index)
            before = self._before(b, is_first, mine, theirs)
            before = b.andi(before, b.cmpi("ne", index, loop.index))
            (rank,) = loop.carried
            loop.carry(b.select(before, b.addi(rank, one), rank))
        return loop.results[0], mine

    def _merged(
        self, b: LaunchBuilder, at: tuple[Index, ...], run: int, source: Sequence[int]
    ) -> tuple[Index, Sequence[Value]]:
        def read(place: tuple[Index, ...]) -> list[Value]:
            coordinates = [Coordinate(i) for i in place]
            return [
                Places(b, 0).load(b.memory[number], shape, coordinates)
                for number, shape in zip(source, self.shapes, strict=True)
            ]

        index = b.index(at[self.dim])
        pair = b.mul(b.div(index, 2 * run), 2 * run)
        middle = b.index(b.minimum(b.add(pair, run), self.length))
        end = b.index(b.minimum(b.add(pair, 2 * run), self.length))
        is_left = b.cmpi("ult", index, middle)
        mine = read(at)
        low = b.select(is_left, middle, b.index(pair))
        high = b.select(is_left, end, middle)
        shapes = [1, 1]
        one = b.constant(1, INDEX)
        with b.loop(0, run.bit_length(), 1, [low, high], nonempty=True) as loop, b.e.scope():
            (low,), (high,) = regrouped(loop.carried, shapes)
            between = b.index(b.div(b.add(low, high), 2))
            inside = b.minimum(between, self.length - 1)
            before = self._before(b, is_left, mine, read(self._moved(at, inside)))
            is_open = b.cmpi("ult", low, high)
            up = b.andi(is_open, before)
            down = b.andi(is_open, b.xori(before, b.constant(True, i1)))
            loop.carry(b.select(up, b.addi(between, one), low), b.select(down, between, high))
        others = loop.results[0]
        # The left run's elements count those of the right one, from its start on.
        other_start = b.select(is_left, middle, b.index(pair))
        own_start = b.select(is_left, b.index(pair), middle)
        rank = b.addi(b.subi(index, own_start), b.subi(others, other_start))
        return b.addi(b.index(pair), rank), mine


def _select(b: LaunchBuilder, condition: SSAValue, x: Value, y: Value) -> Value:
    return tuple(b.select(condition, v, w) for v, w in zip(x, y, strict=True))
