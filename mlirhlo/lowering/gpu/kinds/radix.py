"""Stable sorts of lines by the digits of integer keys, from the lowest up.

One launch counts all digits of all keys. Each further one moves every element behind those with lower digits: a block
takes a tile, ranks its elements among those with the same digit, and learns how many of them the tiles before it have
by looking back, a thread a digit. Elements go through shared memory in their order, so that writes are of neighbours.
Source: Merrill and Grimshaw, "High Performance and Scalable Radix Sorting"; Adinets and Merrill, "Onesweep".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import TypeAlias, cast

from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import INDEX, Index, memref_of
from mlirhlo.lowering.gpu.kinds.lines import Elements, Lines, SharedElements
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan
from mlirhlo.lowering.hlo_to_loops.elements import buffer_type
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.sorts import DIGIT_BITS

_WARP = 32
_DIGITS = 1 << DIGIT_BITS
"""Values of a digit, and threads of a block: a thread for each."""
_WARPS = _DIGITS // _WARP
_SHARED_BYTES = 32 << 10
"""Of the elements of a tile."""
_COUNTED = 4
"""Tiles of which a block counts the digits."""
_PAUSE = 64
"""Nanoseconds until counts that are not there yet are read again."""
_OF_TILE, _UP_TO_TILE = 1 << 30, 2 << 30
"""Marks of counts: of a tile's elements; of those and all before them."""
_COUNT = (1 << 30) - 1

Key: TypeAlias = "Callable[[LaunchBuilder, Elements], SSAValue]"
"""The key of elements: an unsigned integer."""
Read: TypeAlias = "Callable[[LaunchBuilder, tuple[Index, ...]], Elements]"


class RadixSorter(Lines):
    """Sorts arrays of one shape together along a dimension, by a key."""

    def __init__(
        self,
        plan: Plan,
        shapes: Sequence[ArrayShape],
        dim: int,
        inputs: Sequence[SSAValue],
        read: Read,
        key: tuple[Key, int],
    ) -> None:
        """`inputs`: values in memory that `read` reads. `key`: what computes keys, and their bits."""
        super().__init__(plan, shapes, dim)
        self.inputs, self.read = inputs, read
        self.key, bits = key
        self.passes = bits // DIGIT_BITS
        bytes_ = sum(shape.element_type.byte_size for shape in shapes)
        self.held = max(min(8, _SHARED_BYTES // (_DIGITS * bytes_)), 1)
        """Elements of a thread."""
        self.tile = _DIGITS * self.held
        self.per_line = -(-self.length // self.tile)
        self.tiles = prod(self.rest) * self.per_line
        self.is_open = self.length % self.tile > 0
        # Numbers of 32 bits: counts of digits, a number of blocks for each pass, counts of tiles of two passes.
        self.tickets = prod(self.rest) * self.passes * _DIGITS
        self.states = self.tickets + self.passes

    def sort(self, targets: Sequence[int], kept: int = 0) -> None:
        """Adds the launches; the result, or the first `kept` elements of each line, comes to these buffers."""
        if 0 in self.sizes:
            return
        two = [
            [self.plan.workspace(buffer_type(shape)) for shape in self.shapes]
            for _ in range(min(self.passes - 1, 2))
        ]
        counts = self.plan.workspace(memref_of(i32, self.states + 2 * self.tiles * _DIGITS))
        self._clear(counts)
        self._count(counts)
        source: list[int] = []
        for number in range(self.passes):
            is_last = number == self.passes - 1
            target = list(targets) if is_last else two[number % 2]
            self._move(number, source, target, counts, kept if is_last else 0)
            source = target

    def _clear(self, counts: int) -> None:
        size = self.states + self.tiles * _DIGITS
        b = self.plan.begin((), (), [counts])

        def body(index: SSAValue) -> None:
            b.store(b.constant(0, i32), b.memory[counts], [index])

        b.launch(b.each_thread(size, THREADS, body), THREADS)

    # Elements and their digits

    def _elements(
        self, b: LaunchBuilder, source: Sequence[int], row: Index, line: Sequence[Index], at: Index
    ) -> Elements:
        place = self.place(b, row, line, at)
        if not source:
            return self.read(b, place)
        indices = [Coordinate(i) for i in place]
        return [
            Places(b, 0).load(b.memory[n], shape, indices)
            for n, shape in zip(source, self.shapes, strict=True)
        ]

    def _digit(self, b: LaunchBuilder, key: SSAValue, number: int) -> SSAValue:
        """A digit of a key, as i32."""
        shifted = b.shrui(key, b.constant(DIGIT_BITS * number, key.type)) if number else key
        low = b.andi(shifted, b.constant(_DIGITS - 1, key.type))
        bits = cast("IntegerType", key.type).width.data
        if bits == 32:
            return low
        return b.cast(casts.ExtUIOp if bits < 32 else casts.TruncIOp, low, i32)

    def _histogram(self, b: LaunchBuilder, row: Index, number: int, digit: Index) -> Index:
        """Where the count of a digit of a line is."""
        first = b.mul(b.add(b.mul(row, self.passes), number), _DIGITS)
        return b.add(first, digit)

    def _count(self, counts: int) -> None:
        """Counts the digits of the keys of each line."""
        b = self.plan.begin(self.inputs, (), [counts])
        thread, block = b.thread_id(), b.block_id()
        per_line = -(-self.per_line // _COUNTED)
        row = b.index(b.div(block, per_line))
        line = b.e.unlinear(row, self.rest)
        start = b.index(b.mul(b.rem(block, per_line), _COUNTED * self.tile))
        table = b.shared([self.passes * _DIGITS], i32)
        one = b.constant(1, i32)
        for number in range(self.passes):
            b.store(b.constant(0, i32), table, [b.add(thread, number * _DIGITS)])
        b.barrier()
        with b.loop(0, _COUNTED * self.held) as group, b.e.scope():
            at = b.index(b.add(b.add(start, thread), b.mul(group, _DIGITS)))
            with b.if_(b.cmpi("ult", at, b.index(self.length))), b.e.scope():
                key = self.key(b, self._elements(b, (), row, line, at))
                for number in range(self.passes):
                    digit = b.cast_index(self._digit(b, key, number), INDEX)
                    b.atomic("addi", one, table, [b.add(digit, number * _DIGITS)])
        b.barrier()
        for number in range(self.passes):
            found = b.load(table, [b.add(thread, number * _DIGITS)])
            with b.if_(b.cmpi("ne", found, b.constant(0, i32))):
                total = self._histogram(b, row, number, thread)
                b.atomic("addi", found, b.memory[counts], [total])
        b.launch(prod(self.rest) * per_line, _DIGITS)

    # A pass

    def _move(
        self, number: int, source: Sequence[int], target: Sequence[int], counts: int, kept: int
    ) -> None:
        """Moves elements to where those with lower digits, and those with the same before them, end."""
        read = () if source else self.inputs
        b = self.plan.begin(read, (), [*target, counts], source)
        thread, memory = b.index(b.thread_id()), b.memory[counts]
        block = self._ticket(b, memory, number)
        row, part = b.index(b.div(block, self.per_line)), b.index(b.rem(block, self.per_line))
        line = b.e.unlinear(row, self.rest)
        start = b.index(b.mul(part, self.tile))
        if number < self.passes - 1:
            b.store(b.constant(0, i32), memory, [self._state(b, number + 1, block, thread)])
        table = b.shared([_WARPS * _DIGITS], i32)
        elements, digits, ranks = self._ranked(b, number, table, (source, row, line, start))
        b.barrier()
        slots = [b.add(thread, warp * _DIGITS) for warp in range(_WARPS)]
        found = [b.load(table, [slot]) for slot in slots]
        total = found[0]
        for count in found[1:]:
            total = b.addi(total, count)
        first = self._before(b, total)
        running = first
        for slot, count in zip(slots, found, strict=True):
            b.store(running, table, [slot])
            running = b.addi(running, count)
        here = b.load(memory, [self._histogram(b, row, number, thread)])
        begin = b.addi(
            self._before(b, here), self._look_back(b, memory, number, block, part, total)
        )
        starts = b.shared([_DIGITS], i32)
        b.store(b.subi(begin, first), starts, [thread])
        b.barrier()
        shared = SharedElements(b, self.shapes, self.tile)
        warp = b.mul(b.div(thread, _WARP), _DIGITS)
        for values, digit, rank in zip(elements, digits, ranks, strict=True):
            base = b.load(table, [b.add(warp, b.cast_index(digit, INDEX))])
            shared.store(b.cast_index(b.addi(base, rank), INDEX), values)
        b.barrier()
        for group in range(self.held):
            own = b.index(b.add(thread, group * _DIGITS))
            inside = b.cmpi("ult", b.addi(start, own), b.index(self.length))
            with b.if_(inside) if self.is_open else nullcontext(), b.e.scope():
                values = shared.load(own)
                digit = b.cast_index(self._digit(b, self.key(b, values), number), INDEX)
                to = b.addi(own, b.cast_index(b.load(starts, [digit]), INDEX))
                is_kept = b.cmpi("ult", to, b.index(kept or self.length))
                with b.if_(is_kept) if kept else nullcontext(), b.e.scope():
                    sizes = (*self.rest, kept) if kept else self.sizes
                    at = (*line, to) if kept else self.place(b, row, line, to)
                    self.store(b, target, at, values, sizes)
        b.launch(self.tiles, _DIGITS)

    def _ticket(self, b: LaunchBuilder, memory: SSAValue, number: int) -> SSAValue:
        """The block's number, in the order in which blocks start: those before it have started."""
        ticket = b.shared([1], i32)
        with b.if_(b.cmpi("eq", b.index(b.thread_id()), b.index(0))):
            taken = b.atomic("addi", b.constant(1, i32), memory, [self.tickets + number])
            b.store(taken, ticket, [0])
        b.barrier()
        return b.cast_index(b.load(ticket, [0]), INDEX)

    def _ranked(
        self,
        b: LaunchBuilder,
        number: int,
        table: SSAValue,
        where: tuple[Sequence[int], Index, Sequence[Index], Index],
    ) -> tuple[list[Elements], list[SSAValue], list[SSAValue]]:
        """A thread's elements, their digits, and how many of the same digit are before each in its warp's part.

        Then `table` has the counts of the warps. Elements behind the end of the line count as of the last digit.
        """
        source, row, line, start = where
        thread = b.index(b.thread_id())
        lane = b.cast_index(b.index(b.rem(thread, _WARP)), i32)
        warp = b.div(thread, _WARP)
        one = b.constant(1, i32)
        lower = b.subi(b.shli(one, lane), one)
        for n in range(_WARPS):
            b.store(b.constant(0, i32), table, [b.add(thread, n * _DIGITS)])
        b.barrier()
        first = b.add(b.add(start, b.mul(warp, _WARP * self.held)), b.rem(thread, _WARP))
        elements: list[Elements] = []
        digits: list[SSAValue] = []
        ranks: list[SSAValue] = []
        for n in range(self.held):
            at = b.index(b.add(first, n * _WARP))
            inside = b.cmpi("ult", at, b.index(self.length))
            if self.is_open:
                at = b.select(inside, at, b.index(0))
            elements.append(self._elements(b, source, row, line, at))
            digit = self._digit(b, self.key(b, elements[-1]), number)
            if self.is_open:
                digit = b.select(inside, digit, b.constant(_DIGITS - 1, i32))
            digits.append(digit)
        for digit in digits:
            same = b.match_any(digit)
            before = b.one(math.CtPopOp, b.andi(same, lower))
            slot = b.index(b.add(b.mul(warp, _DIGITS), b.cast_index(digit, INDEX)))
            count = b.load(table, [slot])
            b.sync_warp()
            with b.if_(b.cmpi("eq", before, b.constant(0, i32))):
                b.store(b.addi(count, b.one(math.CtPopOp, same)), table, [slot])
            b.sync_warp()
            ranks.append(b.addi(count, before))
        return elements, digits, ranks

    def _before(self, b: LaunchBuilder, count: SSAValue) -> SSAValue:
        """The sum of the counts of the threads before this one in the block."""
        thread = b.index(b.thread_id())
        lane = b.index(b.rem(thread, _WARP))
        total, offset = count, 1
        while offset < _WARP:
            other = b.warp_shuffle("up", total, offset)
            reaches = b.cmpi("uge", lane, b.index(offset))
            total = b.select(reaches, b.addi(total, other), total)
            offset *= 2
        warps = b.shared([_WARPS], i32)
        warp = b.index(b.div(thread, _WARP))
        with b.if_(b.cmpi("eq", lane, b.index(_WARP - 1))):
            b.store(total, warps, [warp])
        b.barrier()
        total = b.subi(total, count)
        for number in range(_WARPS - 1):
            is_before = b.cmpi("ult", b.index(number), warp)
            other = b.select(is_before, b.load(warps, [number]), b.constant(0, i32))
            total = b.addi(total, other)
        return total

    # What the tiles before have

    def _state(self, b: LaunchBuilder, number: int, block: Index, digit: Index) -> Index:
        first = self.states + number % 2 * self.tiles * _DIGITS
        return b.add(b.add(b.mul(block, _DIGITS), digit), first)

    def _look_back(
        self,
        b: LaunchBuilder,
        memory: SSAValue,
        number: int,
        block: SSAValue,
        part: SSAValue,
        total: SSAValue,
    ) -> SSAValue:
        """How many elements of the thread's digit the tiles before this one of the line have."""
        thread = b.index(b.thread_id())
        own = b.index(self._state(b, number, block, thread))
        is_first = b.cmpi("eq", part, b.index(0))
        mark = b.select(
            is_first, b.constant(_UP_TO_TILE - (1 << 32), i32), b.constant(_OF_TILE, i32)
        )
        b.atomic("assign", b.ori(total, mark), memory, [own])
        zero, step = b.constant(0, i32), b.index(_DIGITS)
        is_open = b.xori(is_first, b.constant(True, i1))

        def look(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            _, at, sum_ = values
            word = b.atomic("ori", zero, memory, [at])
            is_there = b.cmpi("ne", word, zero)
            with b.if_(b.cmpi("eq", word, zero)):
                b.sleep(_PAUSE)
            sum_ = b.addi(sum_, b.andi(word, b.constant(_COUNT, i32)))
            # The greater mark is the sign.
            return [b.cmpi("sge", word, zero), b.select(is_there, b.subi(at, step), at), sum_]

        start = [is_open, b.subi(own, step), zero]
        _, _, before = b.repeat_while(start, lambda values: values[0], look)
        with b.if_(is_open):
            word = b.ori(b.addi(before, total), b.constant(_UP_TO_TILE - (1 << 32), i32))
            b.atomic("assign", word, memory, [own])
        return before
