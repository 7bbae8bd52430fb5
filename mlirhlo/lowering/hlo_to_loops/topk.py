"""topk: the best of each row, by words that hold an element's key above its number (`sort_keys`).

Of a short row the least word is looked for again and again, among those above the last one, all in
registers. Of a long row that has many more than are wanted, words below the worst of the best so far are
collected while it goes by; when their memory is full, it is ordered, and the best of it stay.
All other rows are ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, vector_of
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.sort import Rows
from mlirhlo.lowering.hlo_to_loops.sort_keys import (
    SHORT,
    KeyedRow,
    key_bits,
    ordered_key,
    row_buffers,
)

_LANES = 16
_NO_WORD = -1
"""Above all words: numbers of elements have 31 bits."""


@builds("topk")
def topk(name: str, op: Any) -> FuncOp:
    """The kernel of a top-k instruction."""
    return top_kernel(name, op, op.k, largest=op.largest)


def top_kernel(name: str, op: Instruction, k_best: int, *, largest: bool) -> FuncOp:
    """The `k_best` best of the last dimension and their s32 indices; earlier ones first of equals."""
    k = ArrayKernel(name, op)
    (operand,) = k.operands
    if 0 not in operand.dimensions and k_best:
        _Top(k, k_best, largest=largest).build()
    return k.finish()


class _Top:
    def __init__(self, k: ArrayKernel, k_best: int, *, largest: bool) -> None:
        self.k, self.b, self.k_best, self.largest = k, k.b, k_best, largest
        self.element = k.operands[0].element_type
        self.bits = key_bits(self.element)
        self.rows = Rows(k, k.operands[0].rank - 1)
        self.length = self.rows.length

    def build(self) -> None:
        """All rows in the way that suits them."""
        room = -(-max(4 * self.k_best, 64) // _LANES) * _LANES
        if self.bits <= 32 and self.length <= SHORT:
            with self.rows.each([]) as (row, _):
                self.by_rounds(row)
        elif self.bits <= 32 and self.length > room:
            with self.rows.each(row_buffers(room, self.bits)) as (row, memory):
                self.by_room(row, memory, room)
        else:
            with self.rows.each(row_buffers(self.length, self.bits)) as (row, memory):
                self.by_order(row, memory)

    def key(
        self, row: Sequence[Coordinate], at: Index, lanes: int, mask: SSAValue | None
    ) -> SSAValue:
        """Keys of neighbours."""
        place = self.rows.at(row, Coordinate(at, 1 if lanes else 0))
        value = self.k.read(0, place, Places(self.b, lanes, mask))
        return ordered_key(self.b, value, self.element, total=True, descending=self.largest)

    def words(self, row: Sequence[Coordinate], at: Index, mask: SSAValue | None) -> SSAValue:
        """Keys of a vector of neighbours, each above its number."""
        b, type_ = self.b, vector_of(i64, _LANES)
        key = b.cast(casts.ExtUIOp, self.key(row, at, _LANES, mask), i64)
        number = b.addi(b.broadcast(b.index(at), _LANES), b.steps(_LANES))
        word = b.ori(b.shli(key, b.constant(32, type_)), b.cast_index(number, i64))
        return word if mask is None else b.select(mask, word, b.constant(_NO_WORD, type_))

    def give(self, row: Sequence[Coordinate], at: Index, number: SSAValue) -> None:
        """The element of a number is the one at a place of the results."""
        k, b = self.k, self.b
        value = k.read(0, self.rows.at(row, Coordinate(number)), Places(b, 0))
        k.write(1, self.rows.at(row, Coordinate(at)), value)
        k.write(2, self.rows.at(row, Coordinate(at)), (b.cast_index(number, i32),))

    def by_order(self, row: Sequence[Coordinate], memory: Sequence[SSAValue]) -> None:
        """Orders the row."""
        keys = KeyedRow(self.b, self.length, self.bits, memory)

        def put(at: Index, lanes: int, mask: SSAValue | None) -> None:
            keys.put(at, self.key(row, at, lanes, mask), lanes, mask)

        self.rows.vectors(self.length, put, lanes=_LANES if self.length >= _LANES else 0)
        keys.order()
        self.give_ordered(row, keys)

    def give_ordered(self, row: Sequence[Coordinate], keys: KeyedRow) -> None:
        """Results are the first of ordered words."""
        with self.b.loop(0, self.k_best) as at:
            self.give(row, at, keys.number(at, 0, None))

    def by_rounds(self, row: Sequence[Coordinate]) -> None:
        """The least word, the least one above it, and so on."""
        b = self.b
        found: list[SSAValue] = []
        for at in range(0, self.length, _LANES):
            left = self.length - at
            mask = b.mask(b.index(left), _LANES) if left < _LANES else None
            found.append(self.words(row, at, mask))
        self.least(found, lambda at, word: self.give(row, at, _number(b, word)))

    def least(self, words: Sequence[SSAValue], give: Callable[[SSAValue, SSAValue], None]) -> None:
        """Gives the place and the word of each of the best, out of vectors of words."""
        b = self.b
        none = b.constant(_NO_WORD, words[0].type)
        with b.loop(0, self.k_best, 1, [b.constant(0, i64)]) as loop:
            bound = b.broadcast(loop.carried[0], _LANES)
            above = [b.select(b.cmpi("uge", v, bound), v, none) for v in words]
            while len(above) > 1:
                pairs = zip(above[0::2], above[1::2], strict=False)
                left = above[len(above) - len(above) % 2 :]
                above = [b.select(b.cmpi("ult", x, y), x, y) for x, y in pairs] + left
            word = b.reduce("minui", above[0])
            give(loop.index, word)
            loop.carry(b.addi(word, b.constant(1, i64)))

    def by_room(self, row: Sequence[Coordinate], memory: Sequence[SSAValue], room: int) -> None:
        """Collects words below the worst of the best so far; `room` is what there is memory for."""
        b, k_best, collected = self.b, self.k_best, memory[0]
        lanes = b.scratch([_LANES], i64)
        bound = b.scratch([1], i64)
        b.store(b.constant(_NO_WORD, i64), bound, [0])
        count = b.scratch([1], i64)
        b.store(b.constant(0, i64), count, [0])
        with b.loop(0, self.length, _LANES) as at:
            left = b.sub(self.length, at)
            mask = b.mask(b.index(left), _LANES) if self.length % _LANES else None
            word = self.words(row, at, mask)
            worst = b.load(bound, [0])
            better = b.cmpi("ult", word, b.broadcast(worst, _LANES))
            some = b.cmpi(
                "ne", b.reduce("or", b.cast(casts.ExtUIOp, better, i8)), b.constant(0, i8)
            )
            with b.if_(some):
                b.vector_store(word, lanes, [0])
                with b.loop(0, _LANES, 1, [b.load(count, [0])]) as lane:
                    (number,) = lane.carried
                    here = b.load(lanes, [lane.index])
                    b.store(here, collected, [b.cast_index(number, INDEX)])
                    lane.carry(
                        b.addi(number, b.cast(casts.ExtUIOp, b.cmpi("ult", here, worst), i64))
                    )
                b.store(lane.results[0], count, [0])
            full = b.cmpi("ugt", b.load(count, [0]), b.constant(room - _LANES, i64))
            is_last = b.cmpi("sle", b.index(left), b.constant(_LANES, INDEX))
            with b.if_(b.ori(full, is_last)):
                self.keep_best(memory, room, b.cast_index(b.load(count, [0]), INDEX))
                b.store(b.load(collected, [k_best - 1]), bound, [0])
                b.store(b.constant(k_best, i64), count, [0])
        with b.loop(0, k_best) as at:
            self.give(row, at, _number(b, b.load(collected, [at])))

    def keep_best(self, memory: Sequence[SSAValue], room: int, count: SSAValue) -> None:
        """Puts the best of the words that were collected in front, in order."""
        b, collected = self.b, memory[0]
        none = b.constant(_NO_WORD, vector_of(i64, _LANES))

        def held(at: Index) -> SSAValue:
            left = b.integer(arith.MaxSIOp, b.subi(count, b.index(at)), b.constant(0, INDEX))
            return b.select(b.mask(left, _LANES), b.vector_load(collected, [at], _LANES), none)

        if room <= SHORT:
            words = [held(at) for at in range(0, room, _LANES)]
            self.least(words, lambda at, word: b.store(word, collected, [at]))
            return
        with b.loop(0, room, _LANES) as at:
            b.vector_store(held(at), collected, [at])
        keys = KeyedRow(b, room, self.bits, memory)
        keys.order()
        with b.loop(0, self.k_best) as at:
            b.store(b.load(keys.words, [at]), collected, [at])


def _number(b: FunctionBuilder, word: SSAValue) -> SSAValue:
    return b.cast_index(b.andi(word, b.constant((1 << 32) - 1, i64)), INDEX)
