"""Blocks that follow one another in a line: each publishes what it folds, and looks back at those before it.

A block takes the next number when it starts, so that those it waits for have started. It publishes the fold of its own
elements, then walks back over its predecessors, folding theirs, up to one that knows the state after it; then it
publishes the state after itself. What is published stands in 64-bit words, 32 bits of a state and a mark of what they
are, each written and read at once: no fences are needed.
Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.lowering.builder import INDEX, Index, memref_of
from mlirhlo.lowering.gpu.elements import regrouped
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    memory_type,
    register_type,
    to_memory,
    to_register,
)

State = Sequence[Value]
_PAUSE = 64
"""Nanoseconds until words that are not there yet are read again."""
_OF_PART, _AFTER_PART = 1, 2
"""Marks of words: the fold of a part's elements; the state after a part."""


def _pieces(kinds: Sequence[PrimitiveType]) -> int:
    """Words of a state."""
    return sum((1 + kind.is_complex) * -(-kind.real.bits // 32) for kind in kinds)


def clear(plan: Plan, parts: int, kinds: Sequence[PrimitiveType]) -> int:
    """A workspace for the words of all parts, and a launch that clears it; behind the words is the next number."""
    count = parts * _pieces(kinds) + 1
    words = plan.workspace(memref_of(i64, count))
    b = plan.begin((), (), [words])

    def body(index: SSAValue) -> None:
        b.store(b.constant(0, i64), b.memory[words], [index])

    threads = min(THREADS, -(-count // 32) * 32)
    b.launch(b.each_thread(count, threads, body), threads)
    return words


class Chain:
    """The words of all parts, as a block uses them."""

    def __init__(self, b: LaunchBuilder, words: SSAValue, kinds: Sequence[PrimitiveType]) -> None:
        """Takes the block's number."""
        self.b, self.words, self.kinds = b, words, kinds
        self.count = _pieces(kinds)
        ticket = b.shared([1], i32)
        (size,) = cast(Any, words.type).get_shape()
        with b.if_(b.cmpi("eq", b.index(b.thread_id()), b.index(0))):
            taken = b.atomic("addi", b.constant(1, i64), words, [size - 1])
            b.store(b.cast(casts.TruncIOp, taken, i32), ticket, [0])
        b.barrier()
        self.number = b.cast_index(b.load(ticket, [0]), INDEX)
        self.shared = [
            [b.shared([1], memory_type(kind)) for _ in range(1 + kind.is_complex)] for kind in kinds
        ]

    def state_before(
        self,
        part: Index,
        lane: Index,
        initial: State,
        total: State,
        combine: Callable[[State, State], list[Value]],
    ) -> list[Value]:
        """The state before the block's part of a line, for all threads; `total`: what the part folds to."""
        b = self.b
        counts = [len(value) for value in total]
        with b.if_(b.cmpi("eq", b.index(lane), b.index(0))), b.e.scope():
            is_begin = b.cmpi("eq", b.index(part), b.index(0))
            own = b.muli(self.number, b.index(self.count))
            with b.if_(b.xori(is_begin, b.constant(True, i1))), b.e.scope():
                self._publish(own, total, _OF_PART)
            flat = [piece for value in initial for piece in value]
            start = [b.xori(is_begin, b.constant(True, i1)), own, is_begin, *flat]

            def look(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                _, at, has, *rest = values
                state = regrouped(rest, counts)
                before = b.subi(at, b.index(self.count))
                mark, found = self._read(before)
                is_there = b.cmpi("ne", mark, b.constant(0, i32))
                with b.if_(b.xori(is_there, b.constant(True, i1))):
                    b.sleep(_PAUSE)
                is_after = b.cmpi("eq", mark, b.constant(_AFTER_PART, i32))
                with b.e.scope():
                    joined = self._chosen(has, combine(found, state), found)
                kept = self._chosen(is_there, joined, state)
                at = b.select(b.andi(is_there, b.xori(is_after, b.constant(True, i1))), before, at)
                parts = [piece for value in kept for piece in value]
                return [b.xori(is_after, b.constant(True, i1)), at, b.ori(has, is_there), *parts]

            _, _, _, *rest = b.repeat_while(start, lambda values: values[0], look)
            state = regrouped(rest, counts)
            self._publish(own, combine(state, total), _AFTER_PART)
            for kind, buffers, value in zip(self.kinds, self.shared, state, strict=True):
                for buffer, piece in zip(buffers, value, strict=True):
                    b.store(to_memory(b, piece, kind), buffer, [0])
        b.barrier()
        return [
            tuple(to_register(b, b.load(buffer, [0]), kind) for buffer in buffers)
            for kind, buffers in zip(self.kinds, self.shared, strict=True)
        ]

    def _chosen(self, condition: SSAValue, x: State, y: State) -> list[Value]:
        return [
            tuple(self.b.select(condition, v, w) for v, w in zip(one, two, strict=True))
            for one, two in zip(x, y, strict=True)
        ]

    # Words

    def _publish(self, at: SSAValue, state: State, mark: int) -> None:
        b = self.b
        for number, piece in enumerate(self._split(state)):
            word = b.ori(b.cast(casts.ExtUIOp, piece, i64), b.constant(mark << 32, i64))
            b.atomic("assign", word, self.words, [b.add(at, number)])

    def _read(self, at: SSAValue) -> tuple[SSAValue, State]:
        """The mark that all words of a state have, 0 where they differ, and the state."""
        b = self.b
        shift = b.constant(32, i64)
        marks: list[SSAValue] = []
        pieces: list[SSAValue] = []
        for number in range(self.count):
            word = b.atomic("ori", b.constant(0, i64), self.words, [b.add(at, number)])
            pieces.append(b.cast(casts.TruncIOp, word, i32))
            marks.append(b.cast(casts.TruncIOp, b.shrui(word, shift), i32))
        mark = marks[0]
        for other in marks[1:]:
            mark = b.select(b.cmpi("eq", mark, other), mark, b.constant(0, i32))
        return mark, self._joined(pieces)

    def _split(self, state: State) -> Iterator[SSAValue]:
        """A state as numbers of 32 bits."""
        b = self.b
        for kind, value in zip(self.kinds, state, strict=True):
            for part in value:
                bits = cast(int, cast(Any, register_type(kind)).bitwidth)
                integer = IntegerType(bits)
                number = part if part.type == integer else b.bitcast(part, integer)
                if bits < 32:
                    yield b.cast(casts.ExtUIOp, number, i32)
                elif bits == 32:
                    yield number
                else:
                    yield b.cast(casts.TruncIOp, number, i32)
                    high = b.shrui(number, b.constant(32, i64))
                    yield b.cast(casts.TruncIOp, high, i32)

    def _joined(self, pieces: Sequence[SSAValue]) -> list[Value]:
        """The state that numbers of 32 bits are."""
        b, rest = self.b, iter(pieces)
        state: list[Value] = []
        for kind in self.kinds:
            parts: list[SSAValue] = []
            for _ in range(1 + kind.is_complex):
                type_ = register_type(kind)
                bits = cast(int, cast(Any, type_).bitwidth)
                integer, number = IntegerType(bits), next(rest)
                if bits < 32:
                    number = b.cast(casts.TruncIOp, number, integer)
                elif bits > 32:
                    low, high = (b.cast(casts.ExtUIOp, n, i64) for n in (number, next(rest)))
                    number = b.ori(low, b.shli(high, b.constant(32, i64)))
                parts.append(number if type_ == integer else b.bitcast(number, type_))
            state.append(tuple(parts))
        return state
