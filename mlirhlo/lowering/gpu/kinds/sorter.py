"""Stable sorts of lines: networks in registers, then merges of runs, of which each thread takes a part of its own.

Lines that a warp holds in registers are sorted there (`networks.py`). Of longer ones, the first launch sorts tiles:
each warp a run, then the block merges pairs of runs in shared memory. Each further launch merges pairs of longer runs,
a block a tile of the result, which it has in shared memory before it writes it. Where a part of the result begins in
the two runs is found by bisection along its diagonal. An element of the left run comes before what is equal to it.
Source: Green, McColl and Bader, "GPU Merge Path".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.kinds.lines import Elements, Lines, SharedElements
from mlirhlo.lowering.gpu.kinds.neighbours import read_neighbours
from mlirhlo.lowering.gpu.kinds.networks import Network
from mlirhlo.lowering.gpu.launches import LaunchBuilder, Plan
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    buffer_type,
)
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

WARP = 32
_BLOCK = 256
"""Threads that sort a tile, at most."""
_WHOLE_BLOCK = 1024
"""Threads that sort a line, at most, if it is one tile then."""
_LINES_BLOCK = 128
"""Threads of a block of several short lines."""
_SHARED_BYTES = 40 << 10

Less: TypeAlias = "Callable[[LaunchBuilder, Elements, Elements], SSAValue]"
"""Whether the elements of the first come before those of the second."""
Read: TypeAlias = "Callable[[LaunchBuilder, tuple[Index, ...]], Elements]"
"""The elements at an index."""
Line: TypeAlias = "Callable[[Index], Elements]"
"""The elements by their index in a line."""


class Sorter(Lines):
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
        stored: Sequence[int] = (),
        sources: Sequence[SSAValue] = (),
        in_place: Collection[SSAValue] = (),
        is_distinct: bool = False,
    ) -> None:
        """`inputs`, `stored`: values in memory, and buffers by number, that `read` reads. `sources`: values that it
        gives elements of. `in_place`: inputs of which an element is read for the element of the same index only.
        `is_distinct`: whether elements that the comparator calls equal are the same."""
        super().__init__(plan, shapes, dim)
        self.inputs, self.stored, self.read, self.less = inputs, stored, read, less
        self.sources, self.in_place, self.is_distinct = sources, in_place, is_distinct
        self.held = {1: 8, 2: 4}.get(len(shapes), 2)
        """Elements of a line that a thread holds in registers."""
        if self.length < WARP * self.held:
            self.held = max((1 << max(self.length - 1, 1).bit_length()) // WARP, 1)
        bytes_ = sum(shape.element_type.byte_size for shape in shapes)
        self.threads = WARP
        most = _WHOLE_BLOCK if _WHOLE_BLOCK * self.held >= self.length else _BLOCK
        while self.threads < most and self.threads * self.held < self.length:
            if 2 * self.threads * self.held * bytes_ > _SHARED_BYTES:
                break
            self.threads *= 2
        size = 1 << max(self.length - 1, 1).bit_length()
        self.tile = min(self.threads * self.held, size)
        """Elements that a block sorts together."""

    def sort(self, targets: Sequence[int]) -> None:
        """Adds the launches; the result comes to buffers of these numbers."""
        if 0 in self.sizes:
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
            self._merge_tiles(first, second, run)
            first, second, run = second, first, 2 * run

    def select(self, targets: Sequence[int], kept: int) -> None:
        """Adds the launches that find the first ones of each line alone, for buffers of lines of `kept`.

        The first ones of each tile, side by side, are the lines of a next round, as long as there are several.
        """
        tiles = -(-self.length // self.tile)
        if tiles == 1:
            self._sort_tiles(targets, kept)
            return
        sizes = (*self.rest, self._kept(kept))
        shapes = [ArrayShape(shape.element_type, sizes) for shape in self.shapes]
        stored = [self.plan.workspace(buffer_type(shape)) for shape in shapes]
        self._sort_tiles(stored, kept)

        def read(b: LaunchBuilder, at: tuple[Index, ...]) -> Elements:
            indices = [Coordinate(i) for i in at]
            return [
                Places(b, 0).load(b.memory[number], shape, indices)
                for number, shape in zip(stored, shapes, strict=True)
            ]

        Sorter(
            self.plan,
            shapes,
            self.dim,
            (),
            read,
            self.less,
            stored=stored,
            is_distinct=self.is_distinct,
        ).select(targets, kept)

    def _kept(self, kept: int) -> int:
        """Elements of a line of which the first ones of each tile are kept."""
        others = -(-self.length // self.tile) - 1
        return others * kept + min(kept, self.length - others * self.tile)

    # The first launch

    def _sort_tiles(self, targets: Sequence[int], kept: int = 0) -> None:
        lanes = min(1 << max(self.length - 1, 1).bit_length(), self.threads)
        per_line = -(-self.length // self.tile)
        tiles = prod(self.rest) * per_line
        threads = self.threads
        if threads == WARP:
            threads = min(_LINES_BLOCK, -(-tiles * lanes // WARP) * WARP)
        b = self.plan.begin(self.inputs, (), targets, self.stored)
        b.read_in_place(() if kept else self.in_place)
        thread = b.thread_id()
        number = b.index(b.add(b.mul(b.block_id(), threads // lanes), b.div(thread, lanes)))
        is_real: SSAValue | None = None
        if tiles % (threads // lanes):
            is_real = b.cmpi("ult", number, b.index(tiles))
            number = b.index(b.minimum(number, tiles - 1))
        row = b.index(b.div(number, per_line))
        line = b.e.unlinear(row, self.rest)
        start = b.mul(b.rem(number, per_line), self.tile)
        rows = self._sorted_runs(b, (row, line, start), b.rem(thread, lanes), min(lanes, WARP))
        if self.threads == WARP:
            b.barrier()  # the result may be the operand's buffer
            own, elements = rows
        else:
            own, elements = self._merged_runs(b, start, *rows)
        if kept:
            first = b.mul(b.rem(number, per_line), kept)
            sizes = (*self.rest, self._kept(kept))
            together = 1 if kept % self.together or sizes[-1] % self.together else self.together
            for group in range(0, self.held, together):
                guard = self._guard(b, is_real, b.add(start, own[group]))
                is_kept = b.cmpi("ult", b.index(own[group]), b.index(kept))
                guard = is_kept if guard is None else b.andi(guard, is_kept)
                with b.if_(guard), b.e.scope():
                    for lane in range(together):
                        at = (*line, b.add(b.add(first, own[group]), lane))
                        b.e.know_linear(at, sizes, b.add(b.mul(row, sizes[-1]), at[-1]))
                        self.store(b, targets, at, elements[group + lane], sizes)
            b.launch(-(-tiles * lanes // threads), threads)
            return
        for group in range(0, self.held, self.together):
            guard = self._guard(b, is_real, b.add(start, own[group]))
            with nullcontext() if guard is None else b.if_(guard), b.e.scope():
                for index, values in list(zip(own, elements, strict=True))[
                    group : group + self.together
                ]:
                    at = self.place(b, row, line, b.add(start, index))
                    self.store(b, targets, at, values, self.sizes)
        b.launch(-(-tiles * lanes // threads), threads)

    @property
    def together(self) -> int:
        """Neighbours that a thread reads and writes at once, all of them in a line or none."""
        widest = max(shape.element_type.byte_size for shape in self.shapes)
        count = max(min(self.held, 16 // widest), 1)
        is_minor = self.dim == len(self.sizes) - 1
        while (not is_minor and count > 1) or self.length % count:
            count //= 2
        return count

    def _guard(self, b: LaunchBuilder, guard: SSAValue | None, index: Index) -> SSAValue | None:
        """Whether an index is in the line, too."""
        if self.length % self.tile == 0:
            return guard
        inside = b.cmpi("ult", b.index(index), b.index(self.length))
        return inside if guard is None else b.andi(guard, inside)

    def _sorted_runs(
        self,
        b: LaunchBuilder,
        where: tuple[Index, Sequence[Index], Index],
        thread: Index,
        lanes: int,
    ) -> tuple[list[Index], list[Elements]]:
        """The runs of warps: a thread's indices in the tile, and its elements."""
        row, line, start = where
        lane = b.rem(thread, lanes)
        run = b.mul(b.div(thread, lanes), lanes * self.held)
        is_open = self.length % self.tile > 0
        first = b.add(start, run)
        network = Network(
            b,
            lanes,
            self.together,
            lambda x, y: self.less(b, x, y),
            lane=lane,
            is_distinct=self.is_distinct,
            length=b.sub(self.length, first) if is_open else None,
        )
        indices = [b.add(run, network.index(k)) for k in range(self.held)]
        found: list[Elements] = []
        for group in range(0, self.held, self.together):
            index = b.index(b.add(start, indices[group]))
            if is_open:
                inside = b.cmpi("ult", index, b.index(self.length))
                # No other block writes the line's last elements, whose buffer may be the result's.
                index = b.select(inside, index, b.index(self.length - self.together))
            places = [self.place(b, row, line, b.add(index, k)) for k in range(self.together)]
            for value in self.sources:
                read_neighbours(b, value, places)
            found += [list(self.read(b, at)) for at in places]
        return indices, network.sorted(found)

    def _merged_runs(
        self, b: LaunchBuilder, start: Index, own: Sequence[Index], elements: Sequence[Elements]
    ) -> tuple[list[Index], list[Elements]]:
        """The tile's elements when the runs of its warps are merged, and their indices."""
        held, thread = self.held, b.thread_id()
        shared = SharedElements(b, self.shapes, self.tile)
        whole = b.index(b.minimum(b.sub(self.length, start), self.tile))
        run = WARP * held
        while run < self.tile:
            for index, values in zip(own, elements, strict=True):
                shared.store(index, values)
            b.barrier()
            first = b.mul(thread, held)
            pair = b.mul(b.div(first, 2 * run), 2 * run)
            middle, end = (b.index(b.minimum(b.add(pair, n * run), whole)) for n in (1, 2))
            begin = b.index(b.minimum(pair, whole))
            diagonal = b.index(b.minimum(b.sub(first, pair), b.sub(end, begin)))
            bounds = begin, middle, end
            split = self._split(b, shared.load, bounds, diagonal)
            elements = self._merged(b, shared.load, bounds, split, diagonal, held)
            own = [b.add(first, k) for k in range(held)]
            b.barrier()
            run *= 2
        for index, values in zip(own, elements, strict=True):
            shared.store(index, values)
        b.barrier()
        size = self.threads * self.together
        own = [
            b.add(b.add(b.mul(thread, self.together), group * size), k)
            for group in range(held // self.together)
            for k in range(self.together)
        ]
        return list(own), [shared.load(index) for index in own]

    # Further ones

    def _merge_tiles(self, source: Sequence[int], target: Sequence[int], run: int) -> None:
        held, tile, threads = self.held, self.tile, self.threads
        per_line = -(-self.length // tile)
        b = self.plan.begin((), (), target, source)
        thread, number = b.thread_id(), b.index(b.block_id())
        row = b.index(b.div(number, per_line))
        line = b.e.unlinear(row, self.rest)
        start = b.mul(b.rem(number, per_line), tile)

        def load(index: Index) -> list[Value]:
            at = [Coordinate(i) for i in self.place(b, row, line, index)]
            return [
                Places(b, 0).load(b.memory[n], shape, at)
                for n, shape in zip(source, self.shapes, strict=True)
            ]

        pair = b.mul(b.div(start, 2 * run), 2 * run)
        begin, middle, end = (
            b.index(b.minimum(b.add(pair, n * run), self.length)) for n in range(3)
        )
        bounds = begin, middle, end
        # Two threads find where the tile begins and ends in the two runs.
        splits = b.shared([2], i32)
        first = b.sub(start, pair)
        with b.if_(b.cmpi("ult", b.index(thread), b.index(2))), b.e.scope():
            diagonal = b.index(b.minimum(b.add(first, b.mul(thread, tile)), b.sub(end, begin)))
            split = self._split(b, load, bounds, diagonal)
            b.store(b.cast_index(split, i32), splits, [thread])
        b.barrier()
        low, high = (b.cast_index(b.load(splits, [k]), INDEX) for k in (0, 1))
        last = b.index(b.minimum(b.add(first, tile), b.sub(end, begin)))
        count = b.subi(last, b.index(first))
        lefts = b.subi(high, low)
        shared = SharedElements(b, self.shapes, tile)
        from_left = b.addi(begin, low)
        from_right = b.addi(middle, b.subi(b.subi(b.index(first), low), lefts))
        own = [b.index(b.add(thread, k * threads)) for k in range(held)]
        for index in own:
            with b.if_(b.cmpi("ult", index, count)), b.e.scope():
                is_left = b.cmpi("ult", index, lefts)
                shared.store(index, load(b.addi(index, b.select(is_left, from_left, from_right))))
        b.barrier()
        mine = b.index(b.minimum(b.mul(thread, held), count))
        zero = b.constant(0, INDEX)
        inner = zero, lefts, count
        split = self._split(b, shared.load, inner, mine)
        elements = self._merged(b, shared.load, inner, split, mine, held)
        b.barrier()
        for k, values in enumerate(elements):
            shared.store(b.add(b.mul(thread, held), k), values)
        b.barrier()
        for index in own:
            with b.if_(b.cmpi("ult", index, count)), b.e.scope():
                at = self.place(b, row, line, b.add(start, index))
                self.store(b, target, at, shared.load(index), self.sizes)
        b.launch(prod(self.rest) * per_line, threads)

    # Merges

    def _split(
        self,
        b: LaunchBuilder,
        line: Line,
        bounds: tuple[SSAValue, SSAValue, SSAValue],
        diagonal: SSAValue,
    ) -> SSAValue:
        """How many of the first `diagonal` elements of two merged runs are of the left one.

        The runs are from the first bound to the second, and from there to the third.
        """
        begin, middle, end = bounds
        left, right = b.subi(middle, begin), b.subi(end, middle)
        zero, one = b.constant(0, INDEX), b.constant(1, INDEX)
        is_beyond = b.cmpi("ult", right, diagonal)
        low = b.select(is_beyond, b.subi(diagonal, right), zero)
        high = b.index(b.minimum(diagonal, left))

        def halve(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            low, high = values
            with b.e.scope():
                between = b.index(b.div(b.addi(low, high), 2))
                back = b.subi(b.subi(diagonal, one), between)
                is_after = self.less(b, line(b.addi(middle, back)), line(b.addi(begin, between)))
            return (
                b.select(is_after, low, b.addi(between, one)),
                b.select(is_after, between, high),
            )

        found = b.repeat_while([low, high], lambda v: b.cmpi("ult", v[0], v[1]), halve)
        return found[0]

    def _merged(
        self,
        b: LaunchBuilder,
        line: Line,
        bounds: tuple[SSAValue, SSAValue, SSAValue],
        split: SSAValue,
        diagonal: SSAValue,
        count: int,
    ) -> list[Elements]:
        """Elements of two merged runs from `diagonal` on; behind the end of any value."""
        begin, middle, end = bounds
        one = b.constant(1, INDEX)
        last = b.select(b.cmpi("ult", begin, end), b.subi(end, one), begin)
        x, y = b.addi(begin, split), b.addi(middle, b.subi(diagonal, split))
        left, right = line(b.minimum(x, last)), line(b.minimum(y, last))
        found: list[Elements] = []
        for number in range(count):
            is_left, is_right = b.cmpi("ult", x, middle), b.cmpi("ult", y, end)
            none = b.xori(is_left, b.constant(True, i1))
            takes = b.andi(is_right, b.ori(none, self.less(b, right, left)))
            found.append(_select(b, takes, right, left))
            if number < count - 1:
                x = b.select(takes, x, b.addi(x, one))
                y = b.select(takes, b.addi(y, one), y)
                following = line(b.minimum(b.select(takes, y, x), last))
                left, right = (
                    _select(b, takes, left, following),
                    _select(b, takes, following, right),
                )
        return found


def _select(b: LaunchBuilder, condition: SSAValue, x: Elements, y: Elements) -> Elements:
    return [
        tuple(b.select(condition, v, w) for v, w in zip(one, two, strict=True))
        for one, two in zip(x, y, strict=True)
    ]
