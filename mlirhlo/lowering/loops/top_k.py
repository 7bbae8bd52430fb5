"""top_k: the best of each row, by words that hold an element's key above its index (`sort_keys`).

Kinds, in the schedule:
`select`   the least word of a row, then the least one above it, and so on, all words in registers
`collect`  words below the worst of the best so far go to a buffer of `capacity` while the row goes by; when it is
           full, it is ordered, and the best of it stay
`order`    the row is ordered

Keys of more than 32 bits have their indices beside them, and their rows are ordered. `chunk` rows are a part of the
parallel loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32, i64
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.structured import TopKOp
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, vector_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort_keys import (
    SHORT,
    KeyedRow,
    key_bits,
    order_of,
    ordered_key,
    row_buffers,
)
from mlirhlo.lowering.loops.kernel import LoopKernel, array
from mlirhlo.lowering.loops.lowering import LANES, OpLowering, lowers
from mlirhlo.lowering.loops.rows import Rows, rows_in_chunk
from mlirhlo.lowering.loops.schedule import LoopSchedule

_NO_WORD = -1
"""Above all words: indices have 31 bits."""
_MAX_SELECTED = 4 * SHORT
"""Elements of a row whose words are in registers."""


@lowers(TopKOp)
class TopK(OpLowering[TopKOp]):
    """Rows one by one."""

    kinds = ("select", "collect", "order")

    def kind(self, op: TopKOp) -> str:
        """Short rows are looked through again and again, those with many more elements than wanted are collected."""
        shape = array(op.input)
        if key_bits(shape.element_type) > 32:
            return "order"
        length = shape.dimensions[-1]
        if length <= SHORT:
            return "select"
        return "collect" if length > self.capacity(op, "collect") else "order"

    def capacity(self, op: TopKOp, kind: str) -> int:
        """Four times the elements wanted."""
        return -(-max(4 * op.k, 64) // LANES) * LANES if kind == "collect" else 0

    def chunk(self, op: TopKOp, schedule: LoopSchedule) -> int:
        """Rows for each thread."""
        return rows_in_chunk(op.input, array(op.input).rank - 1, _buffers(op, schedule))

    def reason_against(self, op: TopKOp, schedule: LoopSchedule) -> str:
        """Words have 64 bits; vectors of collected words are whole."""
        kind, lanes = schedule.kind, schedule.lanes
        shape = array(op.input)
        if lanes < 2 or schedule.chunk < 1:
            return "rows are read in vectors, in chunks of one row and more"
        if kind != "order" and key_bits(shape.element_type) > 32:
            return "keys of more than 32 bits are ordered"
        if kind == "select" and shape.dimensions[-1] > _MAX_SELECTED:
            return f"registers hold the words of {_MAX_SELECTED} elements"
        if kind == "collect" and (schedule.capacity % lanes or schedule.capacity < op.k + lanes):
            return "the capacity is whole vectors, one more than the elements wanted"
        return ""

    def emit(self, k: LoopKernel, op: TopKOp, schedule: LoopSchedule) -> None:
        """Values and indices."""
        if 0 not in array(op.input).dimensions and op.k:
            _Top(k, op, schedule).build()


def _buffers(op: TopKOp, schedule: LoopSchedule) -> list[tuple[int, Any]]:
    """Memory of a part of the parallel loop."""
    shape = array(op.input)
    length = {"select": 0, "collect": schedule.capacity}.get(schedule.kind, shape.dimensions[-1])
    return row_buffers(length, key_bits(shape.element_type)) if length else []


class _Top:
    def __init__(self, k: LoopKernel, op: TopKOp, schedule: LoopSchedule) -> None:
        self.k, self.b, self.op, self.schedule = k, k.b, op, schedule
        self.k_best, self.lanes, self.largest = op.k, schedule.lanes, op.largest is not None
        self.element = array(op.input).element_type
        self.bits = key_bits(self.element)
        self.rows = Rows(k, op.input, array(op.input).rank - 1)
        self.length = self.rows.length

    def build(self) -> None:
        """All rows."""
        kind = self.schedule.kind
        buffers = _buffers(self.op, self.schedule)
        with self.rows.each(buffers, self.schedule.chunk) as (row, memory):
            if kind == "select":
                self.by_rounds(row)
            elif kind == "collect":
                self.by_collecting(row, memory, self.schedule.capacity)
            else:
                self.by_order(row, memory)

    def key(
        self, row: Sequence[Coordinate], at: Index, lanes: int, mask: SSAValue | None
    ) -> SSAValue:
        """Keys of neighbours."""
        place = self.rows.at(row, Coordinate(at, 1 if lanes else 0))
        value = self.k.read(self.op.input, place, Places(self.b, lanes, mask))
        return ordered_key(self.b, value, self.element, total=True, descending=self.largest)

    def words(self, row: Sequence[Coordinate], at: Index, mask: SSAValue | None) -> SSAValue:
        """Keys of a vector of neighbours, each above its number."""
        b, type_ = self.b, vector_of(i64, self.lanes)
        key = b.cast(casts.ExtUIOp, self.key(row, at, self.lanes, mask), i64)
        number = b.addi(b.broadcast(b.index(at), self.lanes), b.steps(self.lanes))
        word = b.ori(b.shli(key, b.constant(32, type_)), b.cast_index(number, i64))
        return word if mask is None else b.select(mask, word, b.constant(_NO_WORD, type_))

    def give(self, row: Sequence[Coordinate], at: Index, number: SSAValue) -> None:
        """The element of a number is the one at a place of the results."""
        k, b = self.k, self.b
        value = k.read(self.op.input, self.rows.at(row, Coordinate(number)), Places(b, 0))
        k.write(self.op.values, self.rows.at(row, Coordinate(at)), value)
        k.write(self.op.indices, self.rows.at(row, Coordinate(at)), (b.cast_index(number, i32),))

    def by_order(self, row: Sequence[Coordinate], memory: Sequence[SSAValue]) -> None:
        """Orders the row."""
        keys = KeyedRow(self.b, self.length, self.bits, memory)

        def put(at: Index, lanes: int, mask: SSAValue | None) -> None:
            keys.put(at, self.key(row, at, lanes, mask), lanes, mask)

        self.rows.vectors(self.length, put, lanes=self.lanes if self.length >= self.lanes else 0)
        keys.order(order_of(keys.length))
        self.give_ordered(row, keys)

    def give_ordered(self, row: Sequence[Coordinate], keys: KeyedRow) -> None:
        """Results are the first of ordered words."""
        with self.b.loop(0, self.k_best) as at:
            self.give(row, at, keys.number(at, 0, None))

    def by_rounds(self, row: Sequence[Coordinate]) -> None:
        """The least word, the least one above it, and so on."""
        b = self.b
        found: list[SSAValue] = []
        for at in range(0, self.length, self.lanes):
            left = self.length - at
            mask = b.mask(b.index(left), self.lanes) if left < self.lanes else None
            found.append(self.words(row, at, mask))
        self.least(found, lambda at, word: self.give(row, at, _number(b, word)))

    def least(self, words: Sequence[SSAValue], give: Callable[[SSAValue, SSAValue], None]) -> None:
        """Gives the place and the word of each of the best, out of vectors of words."""
        b = self.b
        none = b.constant(_NO_WORD, words[0].type)
        with b.loop(0, self.k_best, 1, [b.constant(0, i64)]) as loop:
            bound = b.broadcast(loop.carried[0], self.lanes)
            above = [b.select(b.cmpi("uge", v, bound), v, none) for v in words]
            while len(above) > 1:
                pairs = zip(above[0::2], above[1::2], strict=False)
                left = above[len(above) - len(above) % 2 :]
                above = [b.select(b.cmpi("ult", x, y), x, y) for x, y in pairs] + left
            word = b.reduce("minui", above[0])
            give(loop.index, word)
            loop.carry(b.addi(word, b.constant(1, i64)))

    def by_collecting(
        self, row: Sequence[Coordinate], memory: Sequence[SSAValue], capacity: int
    ) -> None:
        """Collects words below the worst of the best so far."""
        b, k_best, collected = self.b, self.k_best, memory[0]
        lanes = b.scratch([self.lanes], i64)
        bound = b.scratch([1], i64)
        b.store(b.constant(_NO_WORD, i64), bound, [0])
        count = b.scratch([1], i64)
        b.store(b.constant(0, i64), count, [0])
        with b.loop(0, self.length, self.lanes) as at:
            left = b.sub(self.length, at)
            mask = b.mask(b.index(left), self.lanes) if self.length % self.lanes else None
            word = self.words(row, at, mask)
            worst = b.load(bound, [0])
            better = b.cmpi("ult", word, b.broadcast(worst, self.lanes))
            some = b.cmpi(
                "ne", b.reduce("or", b.cast(casts.ExtUIOp, better, i8)), b.constant(0, i8)
            )
            with b.if_(some):
                b.vector_store(word, lanes, [0])
                with b.loop(0, self.lanes, 1, [b.load(count, [0])]) as lane:
                    (number,) = lane.carried
                    here = b.load(lanes, [lane.index])
                    b.store(here, collected, [b.cast_index(number, INDEX)])
                    lane.carry(
                        b.addi(number, b.cast(casts.ExtUIOp, b.cmpi("ult", here, worst), i64))
                    )
                b.store(lane.results[0], count, [0])
            full = b.cmpi("ugt", b.load(count, [0]), b.constant(capacity - self.lanes, i64))
            is_last = b.cmpi("sle", b.index(left), b.constant(self.lanes, INDEX))
            with b.if_(b.ori(full, is_last)):
                self.keep_best(memory, capacity, b.cast_index(b.load(count, [0]), INDEX))
                b.store(b.load(collected, [k_best - 1]), bound, [0])
                b.store(b.constant(k_best, i64), count, [0])
        with b.loop(0, k_best) as at:
            self.give(row, at, _number(b, b.load(collected, [at])))

    def keep_best(self, memory: Sequence[SSAValue], capacity: int, count: SSAValue) -> None:
        """Puts the best of the words that were collected in front, in order."""
        b, collected = self.b, memory[0]
        none = b.constant(_NO_WORD, vector_of(i64, self.lanes))

        def held(at: Index) -> SSAValue:
            left = b.integer(arith.MaxSIOp, b.subi(count, b.index(at)), b.constant(0, INDEX))
            return b.select(
                b.mask(left, self.lanes), b.vector_load(collected, [at], self.lanes), none
            )

        if capacity <= SHORT:
            words = [held(at) for at in range(0, capacity, self.lanes)]
            self.least(words, lambda at, word: b.store(word, collected, [at]))
            return
        with b.loop(0, capacity, self.lanes) as at:
            b.vector_store(held(at), collected, [at])
        keys = KeyedRow(b, capacity, self.bits, memory)
        keys.order(order_of(keys.length))
        with b.loop(0, self.k_best) as at:
            b.store(b.load(keys.words, [at]), collected, [at])


def _number(b: FunctionBuilder, word: SSAValue) -> SSAValue:
    return b.cast_index(b.andi(word, b.constant((1 << 32) - 1, i64)), INDEX)
