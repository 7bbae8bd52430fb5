"""Integers that order as elements do, and ordering rows by them. Every order is stable.

Keys of up to 32 bits stand above the element's number in a 64-bit word, so that words are all
different and moving a word moves both; wider keys have their numbers beside them. Short rows are ordered by
counting for each word those below it; longer ones by a radix sort from the lowest byte up, which
leaves out bytes that are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import F32, Kind, PrimitiveType
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, Loop, like, vector_of
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert

SHORT = 128
"""Rows up to this length are ordered by counting."""


def order_of(length: int) -> str:
    """The kind of ordering that suits rows of a length."""
    return "counting" if length <= SHORT else "radix"


_RADIX = 256
_MANY = 1 << 15
"""Rows of that length do not stay in the nearest cache."""


def key_bits(element: PrimitiveType) -> int:
    """Bits of the keys of an element type."""
    if element.is_float and element.bits < 16:
        return 32
    return max(element.bits, 8)


def ordered_key(
    b: FunctionBuilder, value: Value, element: PrimitiveType, *, total: bool, descending: bool
) -> SSAValue:
    """Unsigned integers in the order of elements.

    `total`: of floats IEEE's total order; else 0 equals -0, and there may be no NaN.
    """
    (x,) = value
    bits = key_bits(element)
    type_ = IntegerType(bits)
    if element.kind is Kind.PRED:
        key = b.cast(casts.ExtUIOp, x, type_)
    elif element.is_integer:
        if element.bits < bits:
            key = b.cast(casts.ExtSIOp if element.is_signed else casts.ExtUIOp, x, type_)
        else:
            key = x
        if element.is_signed:
            key = b.xori(key, b.constant(1 << (bits - 1), key.type))
    else:
        if element.bits < 16:
            (x,) = convert(b, value, element, F32)
        key = b.bitcast(x, type_)
        if not total:
            zero = b.constant(0, key.type)
            magnitude = b.andi(key, b.constant((1 << (bits - 1)) - 1, key.type))
            key = b.select(b.cmpi("eq", magnitude, zero), zero, key)
        signs = b.shrsi(key, b.constant(bits - 1, key.type))
        key = b.xori(key, b.ori(signs, b.constant(1 << (bits - 1), key.type)))
    return b.xori(key, b.constant(-1, key.type)) if descending else key


class KeyedRow:
    """A row of keys in memory, and its order."""

    def __init__(
        self, b: FunctionBuilder, length: int, bits: int, buffers: Sequence[SSAValue]
    ) -> None:
        """`buffers`: as `row_buffers` says."""
        self.b, self.length, self.bits = b, length, bits
        self.words, self.spare = buffers[0], buffers[1]
        self.numbers: SSAValue | None = buffers[2] if len(buffers) > 2 else None
        self.spare_numbers: SSAValue | None = buffers[3] if len(buffers) > 2 else None

    def put(self, at: Index, key: SSAValue, lanes: int, mask: SSAValue | None) -> None:
        """Stores the keys of neighbours."""
        b = self.b
        wide = like(key.type, i64)
        number = b.cast_index(_lane_numbers(b, at, lanes), i64)
        if self.numbers is None:
            key = key if self.bits == 64 else b.cast(casts.ExtUIOp, key, i64)
            key = b.ori(b.shli(key, b.constant(32, wide)), number)
        _store(b, key, self.words, at, lanes, mask)
        if self.numbers is not None:
            _store(b, b.cast(casts.TruncIOp, number, i32), self.numbers, at, lanes, mask)

    def order(self, kind: str) -> None:
        """Orders the row by `counting` or `radix`; then `number` gives elements' numbers by their new place."""
        if kind == "counting":
            self._by_counting()
        else:
            self._by_radix()

    def number(self, at: Index, lanes: int, mask: SSAValue | None) -> SSAValue:
        """Numbers (index) of the elements that come to `at` and after it."""
        b = self.b
        if self.numbers is not None:
            return b.cast_index(_load(b, self.numbers, at, lanes, mask), INDEX)
        word = _load(b, self.words, at, lanes, mask)
        low = b.andi(word, b.constant((1 << 32) - 1, word.type))
        return b.cast_index(low, INDEX)

    def _by_counting(self) -> None:
        b, lanes = self.b, 8
        type_ = vector_of(i64, lanes)
        whole = -(-self.length // lanes) * lanes
        with b.loop(0, self.length) as at:
            word = b.load(self.words, [at])
            here = b.broadcast(word, lanes)
            with b.loop(0, whole, lanes, [b.constant(0, type_)]) as loop:
                others = b.vector_load(self.words, [loop.index], lanes)
                before = b.cmpi("ult", others, here)
                number = _lane_numbers(b, loop.index, lanes)
                if self.numbers is not None:
                    earlier = b.cmpi("ult", number, b.broadcast(at, lanes))
                    before = b.ori(before, b.andi(b.cmpi("eq", others, here), earlier))
                if whole != self.length:
                    inside = b.cmpi("ult", number, b.constant(self.length, number.type))
                    before = b.andi(before, inside)
                loop.carry(b.addi(loop.carried[0], b.cast(casts.ExtUIOp, before, i64)))
            rank = b.cast_index(b.reduce("add", cast(Loop, loop).results[0]), INDEX)
            if self.numbers is None:
                b.store(word, self.spare, [rank])
            else:
                assert self.spare_numbers is not None
                b.store(b.cast_index(at, i32), self.spare_numbers, [rank])
        self.words, self.spare = self.spare, self.words
        self.numbers, self.spare_numbers = self.spare_numbers, self.numbers

    def _by_radix(self) -> None:
        b = self.b
        low = 32 if self.numbers is None else 0
        shifts = range(low, low + self.bits, 8)
        counts = [b.scratch([_RADIX], i32) for _ in shifts]
        zero = b.constant(0, vector_of(i32, 16))
        with b.loop(0, _RADIX, 16) as at:
            for table in counts:
                b.vector_store(zero, table, [at])
        one = b.constant(1, i32)
        with b.loop(0, self.length) as at:
            word = b.load(self.words, [at])
            for shift, table in zip(shifts, counts, strict=True):
                digit = self._digit(word, shift)
                b.store(b.addi(b.load(table, [digit]), one), table, [digit])
        state = [self.words, self.spare]
        if self.numbers is not None and self.spare_numbers is not None:
            state += [self.numbers, self.spare_numbers]
        first = b.load(self.words, [0])
        for shift, table in zip(shifts, counts, strict=True):
            same = b.load(table, [self._digit(first, shift)])
            differs = b.cmpi("ne", same, b.constant(self.length, i32))
            with b.otherwise(differs, state) as choice:
                self._pass(shift, table, state)
                choice.give(*(state[n ^ 1] for n in range(len(state))))
            state = list(choice.results)
        self.words = state[0]
        if self.numbers is not None:
            self.numbers = state[2]

    def _pass(self, shift: int, table: SSAValue, state: Sequence[SSAValue]) -> None:
        """Moves every word behind those with lower digits, and those with the same before it."""
        b = self.b
        with b.loop(0, _RADIX, 1, [b.constant(0, i32)]) as loop:
            count = b.load(table, [loop.index])
            b.store(loop.carried[0], table, [loop.index])
            loop.carry(b.addi(loop.carried[0], count))
        lines = [
            _Lines(b, table, source, target, self.length >= _MANY)
            for source, target in zip(state[0::2], state[1::2], strict=True)
        ]
        with b.loop(0, self.length) as at:
            digit = self._digit(b.load(state[0], [at]), shift)
            place = b.load(table, [digit])
            b.store(b.addi(place, b.constant(1, i32)), table, [digit])
            to = b.cast_index(place, INDEX)
            for line in lines:
                line.move(at, digit, to)
        for line in lines:
            line.finish()

    def _digit(self, word: SSAValue, shift: int) -> SSAValue:
        b = self.b
        digit = b.shrui(word, b.constant(shift, i64)) if shift else word
        return b.cast_index(b.andi(digit, b.constant(_RADIX - 1, i64)), INDEX)


class _Lines:
    """Moves elements to the ends of buckets.

    In long rows buckets lie powers of two apart and would throw each other out of the caches: there
    each has a line in a small buffer, which goes to memory when it is full.
    """

    def __init__(
        self, b: FunctionBuilder, ends: SSAValue, source: SSAValue, target: SSAValue, gathers: bool
    ) -> None:
        self.b, self.ends, self.source, self.target = b, ends, source, target
        self.element = element = cast(Any, source.type).element_type
        self.room = 64 // element.size
        self.lines: SSAValue | None = None
        if gathers:
            self.lines = b.scratch([_RADIX * self.room], element)
            self.starts = b.scratch([_RADIX], i32)
            with b.loop(0, _RADIX) as bucket:
                b.store(b.load(ends, [bucket]), self.starts, [bucket])

    def move(self, at: SSAValue, digit: SSAValue, to: SSAValue) -> None:
        """Moves the element at `at` to the place `to` of a bucket."""
        b, lines = self.b, self.lines
        value = b.load(self.source, [at])
        if lines is None:
            b.store(value, self.target, [to])
            return
        last = b.constant(self.room - 1, INDEX)
        slot = b.andi(to, last)
        line = b.mul(digit, self.room)
        b.store(value, lines, [b.add(line, slot)])
        with b.if_(b.cmpi("eq", slot, last)):
            first = b.subi(to, last)
            start = b.cast_index(b.load(self.starts, [digit]), INDEX)
            whole = b.cmpi("sge", first, start)
            with b.if_(whole):
                full = b.vector_load(lines, [line], self.room)
                b.vector_store(full, self.target, [first])
            with b.if_(b.xori(whole, b.constant(True, i1))):
                self._part(line, first, start, b.add(to, 1))

    def finish(self) -> None:
        """Moves what is left in lines."""
        b = self.b
        if self.lines is None:
            return
        with b.loop(0, _RADIX) as bucket:
            end = b.cast_index(b.load(self.ends, [bucket]), INDEX)
            start = b.cast_index(b.load(self.starts, [bucket]), INDEX)
            first = b.subi(end, b.andi(end, b.constant(self.room - 1, INDEX)))
            self._part(b.mul(bucket, self.room), first, start, end)

    def _part(self, line: Index, first: SSAValue, start: SSAValue, end: Index) -> None:
        """A line that begins at `first`, from the bucket's start on."""
        b = self.b
        assert self.lines is not None
        with b.loop(b.integer(arith.MaxSIOp, first, start), end) as at:
            b.store(b.load(self.lines, [b.add(line, b.sub(at, first))]), self.target, [at])


def row_buffers(length: int, bits: int) -> list[tuple[int, Attribute]]:
    """Lengths and element types of the memory a `KeyedRow` works in."""
    padded = -(-length // 16) * 16
    words: list[tuple[int, Attribute]] = [(padded, i64), (padded, i64)]
    return words if bits <= 32 else [*words, (padded, i32), (padded, i32)]


def _lane_numbers(b: FunctionBuilder, at: Index, lanes: int) -> SSAValue:
    first = b.index(at)
    return b.addi(b.broadcast(first, lanes), b.steps(lanes)) if lanes else first


def _store(
    b: FunctionBuilder, x: SSAValue, target: SSAValue, at: Index, lanes: int, mask: SSAValue | None
) -> None:
    if lanes:
        b.vector_store(x, target, [at], mask)
    else:
        b.store(x, target, [at])


def _load(
    b: FunctionBuilder, source: SSAValue, at: Index, lanes: int, mask: SSAValue | None
) -> SSAValue:
    return b.vector_load(source, [at], lanes, mask) if lanes else b.load(source, [at])
