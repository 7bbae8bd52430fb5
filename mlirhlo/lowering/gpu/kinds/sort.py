"""Kinds `sort` and `top_k`: networks of registers for short lines, stable merge sort for others.

Short lines are sorted by warps (`networks.py`). Of longer ones, the first launch sorts tiles: runs of `RUN` elements by
such networks; then in shared memory, as each further launch does in global memory, it merges pairs of runs: an
element's index is its own in its run plus that at which it would stand in the other one, found by bisection. An
element of the left run comes before what is equal to it, so that the order is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import S32
from mlirhlo.dialects.hlo.ops import CompareOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.structured import SortOp, TopKOp, sizes_of
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.kinds.networks import Network
from mlirhlo.lowering.gpu.launches import (
    THREADS,
    LaunchBuilder,
    Plan,
    inputs_of,
    launches,
    stored_inputs,
)
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    buffer_type,
    memory_type,
    to_memory,
    to_register,
)
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort_keys import ordered_key
from mlirhlo.lowering.schedule.attributes import Schedule

WARP = 32
RUN = WARP
"""Elements of a tile that a warp sorts in registers."""
_TILE = 512
"""Elements that a block sorts, unless they are wide."""
_BLOCK = 128
"""Threads of a block of several short lines."""
_SHARED_BYTES = 40 << 10

Less: TypeAlias = "Callable[[LaunchBuilder, Sequence[Value], Sequence[Value]], SSAValue]"
"""Whether the elements of the first come before those of the second, one of each array."""
Read: TypeAlias = "Callable[[LaunchBuilder, tuple[Index, ...]], Sequence[Value]]"
"""An element of each array at an index."""
Line: TypeAlias = "Callable[[Index], Sequence[Value]]"
"""An element of each array by its index in a line."""


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
        inputs = inputs_of(plan, ops, ops)
        sorter = Sorter(plan, shapes, op.dim, inputs, read, less, is_distinct=_is_distinct(op))
        direct = {value for value in op.inputs if value in plan.numbers}
        computed = [value for value in op.inputs if value not in direct]
        sorter.in_place = direct.difference(stored_inputs(plan, computed))
        sorter.sort(targets)


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
        Sorter(plan, shapes, len(sizes) - 1, inputs_of(plan, ops, ops), read, less).sort(ordered)
        _first_of_rows(plan, op, shapes, ordered)


def _is_distinct(op: SortOp) -> bool:
    """Whether elements that stand neither before nor after each other are the same bits."""
    first = op.comparator.block.first_op
    if len(op.inputs) > 1 or not isinstance(first, CompareOp):
        return False
    element = array(op.inputs[0]).element_type
    is_plain = set(first.inputs) == set(op.comparator.block.args) and first.next_op is (
        op.comparator.block.last_op
    )
    is_total = not element.is_float or first.comparison_type == "TOTALORDER"
    return is_plain and is_total and first.direction in ("LT", "GT")


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


class Sorter:
    """Sorts arrays of one shape together along a dimension."""

    def __init__(
        self,
        plan: Plan,
        shapes: Sequence[ArrayShape],
        dim: int,
        inputs: Sequence[SSAValue],
        read: Read,
        less: Less,
        *,
        is_distinct: bool = False,
    ) -> None:
        self.plan, self.shapes, self.dim = plan, shapes, dim
        self.sizes = shapes[0].dimensions
        self.length = self.sizes[dim]
        self.inputs, self.first_read, self.less = inputs, read, less
        self.is_distinct = is_distinct
        """Whether elements that the comparator calls equal are the same."""
        self.in_place: Collection[SSAValue] = ()
        """Inputs of which a block reads no more than the tile that it writes."""

    @property
    def tile(self) -> int:
        """Elements that a block sorts together: a power of two."""
        bytes_ = sum(shape.element_type.byte_size for shape in self.shapes)
        tile = _TILE
        while tile > RUN and (2 * tile * bytes_ > _SHARED_BYTES or tile // 2 >= self.length):
            tile //= 2
        return tile

    def sort(self, targets: Sequence[int]) -> None:
        """Adds the launches; the result comes to buffers of these numbers."""
        if 0 in self.sizes:
            return
        if self.length <= WARP * self.held:
            self._sort_lines(targets)
            return
        run, passes = self.tile, 0
        while run < self.length:
            run, passes = 2 * run, passes + 1
        other = [self.plan.workspace(buffer_type(s)) for s in self.shapes] if passes else []
        first, second = (other, list(targets)) if passes % 2 else (list(targets), other)
        # Buffers alternate so that the last launch writes the results.
        self._sort_tiles(first)
        run = self.tile
        for _ in range(passes):
            self._merge(first, second, run)
            first, second, run = second, first, 2 * run

    # Short lines

    @property
    def held(self) -> int:
        """Elements of a line that a thread may hold in registers."""
        return 8 if len(self.shapes) == 1 else 4 if len(self.shapes) == 2 else 1

    def _sort_lines(self, targets: Sequence[int]) -> None:
        """Each line by the threads of a warp, or by fewer."""
        size = 1 << max(self.length - 1, 1).bit_length()
        lanes = min(size, WARP)
        held = size // lanes
        rest = (*self.sizes[: self.dim], *self.sizes[self.dim + 1 :])
        count = prod(rest)
        threads = min(_BLOCK, -(-count * lanes // WARP) * WARP)
        b = self.plan.begin(self.inputs, (), targets)
        b.read_in_place(self.in_place)
        thread = b.thread_id()
        number = b.index(b.add(b.mul(b.block_id(), threads // lanes), b.div(thread, lanes)))
        is_real = None
        if count % (threads // lanes):
            is_real = b.cmpi("ult", number, b.index(count))
            number = b.index(b.minimum(number, count - 1))
        line = b.e.unlinear(number, rest)
        lane = b.rem(thread, lanes)
        is_minor, is_open = self.dim == len(self.sizes) - 1, size > self.length

        def place(index: Index) -> tuple[Index, ...]:
            at = (*line[: self.dim], index, *line[self.dim :])
            if is_minor:
                b.e.know_linear(at, self.sizes, b.add(b.mul(number, self.length), index))
            return at

        together = min(held, 16 // max(s.element_type.byte_size for s in self.shapes))
        network = Network(
            b,
            lanes,
            max(together, 1),
            lambda x, y: self.less(b, x, y),
            lane=lane,
            is_distinct=self.is_distinct,
            length=self.length if is_open else None,
        )
        own = [b.index(network.index(k)) for k in range(held)]
        inside = [b.index(b.minimum(k, self.length - 1)) if is_open else k for k in own]
        elements = [list(self.first_read(b, place(k))) for k in inside]
        elements = network.sorted(elements)
        b.barrier()  # the result may be the operand's buffer
        for index, values in zip(own, elements, strict=True):
            guard = is_real
            if is_open:
                test = b.cmpi("ult", index, b.index(self.length))
                guard = test if guard is None else b.andi(guard, test)
            with nullcontext() if guard is None else b.if_(guard), b.e.scope():
                at = place(index)
                for buffer, shape, value in zip(targets, self.shapes, values, strict=True):
                    linear = b.e.linear_of(at, self.sizes)
                    if linear is not None and not shape.element_type.is_complex:
                        memory = b.flat(b.memory[buffer])
                        b.store(to_memory(b, value[0], shape.element_type), memory, [linear])
                    else:
                        store(b, b.memory[buffer], at, value, shape, 0, None)
        b.launch(-(-count * lanes // threads), threads)

    # Tiles of longer ones

    def _sort_tiles(self, targets: Sequence[int]) -> None:
        tile = self.tile
        b = self.plan.begin(self.inputs, (), targets)
        b.read_in_place(self.in_place)
        per_line = -(-self.length // tile)
        rest = (*self.sizes[: self.dim], *self.sizes[self.dim + 1 :])
        tiles = prod(rest) * per_line
        threads = max(tile, min(_BLOCK, tile * tiles))
        thread = b.thread_id()
        number = b.add(b.mul(b.block_id(), threads // tile), b.div(thread, tile))
        is_real: SSAValue | None = None
        if tiles % (threads // tile):
            is_real = b.cmpi("ult", b.index(number), b.index(tiles))
            number = b.minimum(number, tiles - 1)
        line = b.e.unlinear(b.index(b.div(number, per_line)), rest)
        start = b.mul(b.rem(number, per_line), tile)
        length = b.index(b.minimum(b.sub(self.length, start), tile))
        own = b.index(b.rem(thread, tile))
        # All threads of a block go through its barriers: those behind the end compute the last element again.
        is_inside = b.cmpi("ult", own, length)
        index = b.index(b.minimum(own, b.sub(length, 1)))
        base = b.sub(thread, own)
        buffers = [_Shared(b, self.shapes, threads, base) for _ in range(2)]
        at = (*line[: self.dim], b.add(start, index), *line[self.dim :])
        mine = self.first_read(b, at)
        last = self.length % tile and self.length % tile % RUN
        network = Network(
            b,
            RUN,
            1,
            lambda x, y: self.less(b, x, y),
            lane=b.rem(thread, RUN),
            is_distinct=self.is_distinct,
            length=b.sub(length, b.sub(own, b.rem(own, RUN))) if last else None,
        )
        (mine,) = network.sorted([mine])
        rank: Index = own
        run = RUN
        while run < tile:
            with b.if_(is_inside), b.e.scope():
                buffers[1].store(rank, mine)
            b.barrier()
            buffers.reverse()
            mine = buffers[0].load(index)
            rank = self._merged(b, index, run, length, mine, buffers[0].load)
            run *= 2
        if is_real is not None:
            is_inside = b.andi(is_inside, is_real)
        with b.if_(is_inside), b.e.scope():
            at = (*line[: self.dim], b.add(start, rank), *line[self.dim :])
            for buffer, shape, value in zip(targets, self.shapes, mine, strict=True):
                store(b, b.memory[buffer], at, value, shape, 0, None)
        b.launch(-(-tiles * tile // threads), threads)

    # Further ones

    def _merge(self, source: Sequence[int], target: Sequence[int], run: int) -> None:
        b = self.plan.begin((), (), target, source)

        def body(number: SSAValue) -> None:
            at = b.e.unlinear(number, self.sizes)

            def load(index: Index) -> list[Value]:
                here = [*at[: self.dim], index, *at[self.dim + 1 :]]
                coordinates = [Coordinate(i) for i in here]
                return [
                    Places(b, 0).load(b.memory[number], shape, coordinates)
                    for number, shape in zip(source, self.shapes, strict=True)
                ]

            index = b.index(at[self.dim])
            mine = load(index)
            to = self._merged(b, index, run, self.length, mine, load)
            there = [*at[: self.dim], to, *at[self.dim + 1 :]]
            for buffer, shape, value in zip(target, self.shapes, mine, strict=True):
                store(b, b.memory[buffer], there, value, shape, 0, None)

        count = prod(self.sizes)
        threads = min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)

    # Where an element goes

    def _before(
        self, b: LaunchBuilder, is_first: SSAValue, x: Sequence[Value], y: Sequence[Value]
    ) -> SSAValue:
        """Whether `y` comes before `x`; of equal ones, that which is not first."""
        lhs = [_select(b, is_first, v, w) for v, w in zip(y, x, strict=True)]
        rhs = [_select(b, is_first, v, w) for v, w in zip(x, y, strict=True)]
        found = self.less(b, lhs, rhs)
        return b.select(is_first, found, b.xori(found, b.constant(True, i1)))

    def _merged(
        self,
        b: LaunchBuilder,
        index: SSAValue,
        run: int,
        length: Index,
        mine: Sequence[Value],
        line: Line,
    ) -> SSAValue:
        """The index of an element when its pair of ordered runs is merged."""
        pair = b.mul(b.div(index, 2 * run), 2 * run)
        middle = b.index(b.minimum(b.add(pair, run), length))
        end = b.index(b.minimum(b.add(pair, 2 * run), length))
        is_left = b.cmpi("ult", index, middle)
        low = b.select(is_left, middle, b.index(pair))
        high = b.select(is_left, end, middle)
        shapes = [1, 1]
        one = b.constant(1, INDEX)
        with b.loop(0, run.bit_length(), 1, [low, high], nonempty=True) as loop, b.e.scope():
            (low,), (high,) = regrouped(loop.carried, shapes)
            between = b.index(b.div(b.add(low, high), 2))
            inside = b.minimum(between, b.sub(length, 1))
            before = self._before(b, is_left, mine, line(inside))
            is_open = b.cmpi("ult", low, high)
            up = b.andi(is_open, before)
            down = b.andi(is_open, b.xori(before, b.constant(True, i1)))
            loop.carry(b.select(up, b.addi(between, one), low), b.select(down, between, high))
        others = loop.results[0]
        # The left run's elements count those of the right one, from its start on.
        other_start = b.select(is_left, middle, b.index(pair))
        own_start = b.select(is_left, b.index(pair), middle)
        rank = b.addi(b.subi(index, own_start), b.subi(others, other_start))
        return b.addi(b.index(pair), rank)


class _Shared:
    """A line's elements of each array in shared memory; those of other lines of the block stand before and after."""

    def __init__(
        self, b: LaunchBuilder, shapes: Sequence[ArrayShape], count: int, base: Index
    ) -> None:
        self.b, self.base = b, base
        self.kinds = [shape.element_type for shape in shapes]
        self.buffers = [
            [b.shared([count], memory_type(kind)) for _ in range(1 + kind.is_complex)]
            for kind in self.kinds
        ]

    def load(self, index: Index) -> list[Value]:
        """The element of each array."""
        b, at = self.b, self.b.add(self.base, index)
        return [
            tuple(to_register(b, b.load(buffer, [at]), kind) for buffer in buffers)
            for kind, buffers in zip(self.kinds, self.buffers, strict=True)
        ]

    def store(self, index: Index, values: Sequence[Value]) -> None:
        """Stores an element of each array."""
        b, at = self.b, self.b.add(self.base, index)
        for kind, buffers, value in zip(self.kinds, self.buffers, values, strict=True):
            for buffer, part in zip(buffers, value, strict=True):
                b.store(to_memory(b, part, kind), buffer, [at])


def _select(b: LaunchBuilder, condition: SSAValue, x: Value, y: Value) -> Value:
    return tuple(b.select(condition, v, w) for v, w in zip(x, y, strict=True))
