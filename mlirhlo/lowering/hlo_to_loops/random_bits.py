"""rng-bit-generator: Threefry-2x32 and Philox-4x32-10, bit for bit as the interpreter.

Counters go in vectors. A block of Threefry gives two words, one of Philox four; how they come to their
places in the result is told by `interp/random_bits.py`.

    for blocks in vectors:   words = rounds(key, counter + block);   result[places of block] = words
    state = key, counter + blocks
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops.random import RngBitGeneratorOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, like
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    physical_order,
    register_type,
    to_memory,
)
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.target import current

_LANES = 16
_CHUNK = 4096
"""Blocks that a round of the parallel loop makes."""
_BLOCK_NS = {"threefry": 3.0, "philox": 5.0}
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_PHILOX = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


@builds("rng-bit-generator")
def rng_bit_generator(name: str, op: Any) -> FuncOp:
    """The kernel of a generator: results are the new state and the bits."""
    assert isinstance(op, RngBitGeneratorOp)
    k = ArrayKernel(name, op)
    is_threefry = op.algorithm.lower() == "rng_three_fry"
    (state,) = k.operands
    bits = k.results[1]
    fits = state.element_type.name == "u64" and state.dimensions in ((2,), (3,))
    if not fits or (is_threefry and state.dimensions != (2,)):
        raise error("HLO0432", f"a state of {state} has no lowering to loops")
    return (_Threefry if is_threefry else _Philox)(k, bits).build()


class _Generator:
    """What both have in common: the state, and blocks in vectors."""

    name: str

    def __init__(self, k: ArrayKernel, shape: ArrayShape) -> None:
        self.k, self.b, self.shape = k, k.b, shape
        self.is_wide = shape.element_type.bits == 64
        self.state = [k.b.load(k.arguments[0], [n]) for n in range(k.operands[0].dimensions[0])]
        self.key = [self._word(self.state[0], high) for high in (False, True)]
        self.in_order = physical_order(shape) == tuple(range(shape.rank))
        """Whether memory is in logical order."""
        self.memory = k.flat(2) if self.in_order else None

    def _word(self, x: SSAValue, high: bool) -> SSAValue:
        """Half of a 64-bit number."""
        b = self.b
        if high:
            x = b.shrui(x, b.constant(32, x.type))
        return b.cast(casts.TruncIOp, x, i32)

    def splat(self, x: SSAValue, lanes: int) -> SSAValue:
        return self.b.broadcast(x, lanes) if lanes else x

    def numbers(self, first: Index, lanes: int) -> SSAValue:
        """Numbers of blocks, 64 bits."""
        b = self.b
        x: SSAValue = b.index(first)
        if lanes:
            x = b.addi(b.broadcast(x, lanes), b.steps(lanes))
        return b.cast_index(x, i64)

    def each(self, count: int, body: Callable[[Index, int], None]) -> None:
        """`body(first, lanes)` for all blocks: vectors in parallel, then those left one by one.

        With many threads a block is for a thread.
        """
        b = self.b
        if current().has_many_threads:
            with b.parallel(count) as at:
                body(at, 0)
            return
        whole = count - count % _LANES
        if whole:
            chunks = -(-whole // _CHUNK)
            with b.parallel(chunks, work=count * _BLOCK_NS[self.name]) as chunk:
                first = b.mul(chunk, _CHUNK)
                end = b.integer(
                    arith.MinSIOp, b.index(b.add(first, _CHUNK)), b.constant(whole, INDEX)
                )
                with b.loop(first, end, _LANES) as at:
                    body(at, _LANES)
        if whole != count:
            with b.loop(whole, count) as at:
                body(at, 0)

    def element(self, words: Sequence[SSAValue]) -> Value:
        """An element of the result from a word, or from the low and high one of a wide element."""
        b, element = self.b, self.shape.element_type
        if self.is_wide:
            low, high = (b.cast(casts.ExtUIOp, w, i64) for w in words)
            x = b.ori(low, b.shli(high, b.constant(32, high.type)))
        else:
            x = narrowed(b, words[0], element)
        return (as_element(b, x, element),)

    def store_blocks(self, first: Index, elements: Sequence[SSAValue], lanes: int = _LANES) -> None:
        """Stores all elements of blocks, which stand in a row in logical order."""
        b = self.b
        start = b.mul(first, len(elements))
        if lanes and self.memory is not None:
            for number, row in enumerate(_alternating(b, elements)):
                self.store_row(b.add(start, number * lanes), row)
            return
        for lane in range(lanes or 1):
            for number, element in enumerate(elements):
                one = b.extract(element, lane) if lanes else element
                self.store_one(b.add(start, lane * len(elements) + number), one)

    def store_row(self, at: Index, elements: SSAValue) -> None:
        """Stores neighbours from a number in logical order on."""
        assert self.memory is not None
        memory = to_memory(self.b, elements, self.shape.element_type)
        self.b.vector_store(memory, self.memory, [at])

    def store_one(self, at: Index, element: SSAValue) -> None:
        """Stores an element by its number in logical order."""
        place = Places(self.b, 0).unlinear(Coordinate(at), self.shape.dimensions)
        self.k.write(2, place, (element,))

    def finish(self, *state: SSAValue) -> FuncOp:
        for number, value in enumerate(state):
            self.b.store(value, self.k.arguments[1], [number])
        return self.k.finish()


def narrowed(b: FunctionBuilder, word: SSAValue, element: PrimitiveType) -> SSAValue:
    """The low bits of a word, as many as the element has."""
    return word if element.bits == 32 else b.cast(casts.TruncIOp, word, IntegerType(element.bits))


def as_element(b: FunctionBuilder, x: SSAValue, element: PrimitiveType) -> SSAValue:
    """Bits as a register holds an element."""
    type_: Attribute = register_type(element)
    if type_ == i1:
        return b.cmpi("ne", x, b.constant(0, x.type))
    return x if like(x.type, type_) == x.type else b.bitcast(x, type_)


class _Threefry(_Generator):
    name = "threefry"

    def build(self) -> FuncOp:
        b, sizes = self.b, self.shape.dimensions
        if self.is_wide:
            count = prod(sizes)
            self.each(
                count,
                lambda at, lanes: self.store_blocks(at, self.element(self.words(at, lanes)), lanes),
            )
        elif not sizes:
            count = 1
            self.store_one(0, self.element(self.words(0, 0)[:1])[0])
        else:
            count = self.halves()
        following = b.addi(self.state[1], b.constant(count, i64))
        return self.finish(self.state[0], following)

    def words(self, first: Index, lanes: int) -> tuple[SSAValue, SSAValue]:
        """Both words of blocks."""
        b = self.b
        counter = b.addi(self.splat(self.state[1], lanes), self.numbers(first, lanes))
        x, y = self._word(counter, False), self._word(counter, True)
        low, high = (self.splat(w, lanes) for w in self.key)
        keys = (low, high, b.xori(b.xori(low, high), b.constant(_PARITY, low.type)))
        x, y = b.addi(x, keys[0]), b.addi(y, keys[1])
        for block in range(5):
            for rotation in _ROTATIONS[block % 2]:
                x = b.addi(x, y)
                left = b.shli(y, b.constant(rotation, y.type))
                right = b.shrui(y, b.constant(32 - rotation, y.type))
                y = b.xori(b.ori(left, right), x)
            x = b.addi(x, keys[(block + 1) % 3])
            more = b.addi(keys[(block + 2) % 3], b.constant(block + 1, y.type))
            y = b.addi(y, more)
        return x, y

    def halves(self) -> int:
        """Both words of a block alternate along a dimension; the number of blocks.

        The first dimension of an even size, else the first of the largest, of which the last word is
        left out then.
        """
        b, sizes = self.b, self.shape.dimensions
        dim = next((d for d, n in enumerate(sizes) if n % 2 == 0), sizes.index(max(sizes)))
        size, inner = sizes[dim], prod(sizes[dim + 1 :])
        half = (size + 1) // 2
        count = prod(sizes[:dim]) * half * inner

        def body(first: Index, lanes: int) -> None:
            elements = [self.element([w])[0] for w in self.words(first, lanes)]
            if lanes and inner == 1 and size % 2 == 0 and self.in_order:
                self.store_blocks(first, elements)
                return
            in_rows = lanes and inner % lanes == 0 and self.in_order
            for lane in range(1 if in_rows else lanes or 1):
                row, rest = (
                    Places(b, 0).divided(Coordinate(b.add(first, lane)), inner)
                    if inner > 1
                    else (Coordinate(b.add(first, lane)), Coordinate(0))
                )
                outer, at = Places(b, 0).divided(row, half)
                for number, element in enumerate(elements):
                    along = b.add(b.mul(at.base, 2), number)
                    to = b.add(b.mul(b.add(b.mul(outer.base, size), along), inner), rest.base)
                    if in_rows:
                        self.store_row(to, element)
                        continue
                    one = b.extract(element, lane) if lanes else element
                    if number and size % 2:
                        with b.if_(b.cmpi("ult", b.index(along), b.constant(size, INDEX))):
                            self.store_one(to, one)
                    else:
                        self.store_one(to, one)

        self.each(count, body)
        return count


class _Philox(_Generator):
    name = "philox"

    def build(self) -> FuncOp:
        b, size = self.b, self.shape.element_count
        per_block = 2 if self.is_wide else 4
        count = -(-size // per_block)
        low = self.state[1]
        high = self.state[2] if len(self.state) > 2 else self.state[0]
        whole = size // per_block

        def elements(first: Index, lanes: int) -> list[SSAValue]:
            words = self.words(low, high, first, lanes)
            groups = [words[:2], words[2:]] if self.is_wide else [[w] for w in words]
            return [self.element(g)[0] for g in groups]

        self.each(
            whole, lambda first, lanes: self.store_blocks(first, elements(first, lanes), lanes)
        )
        if count != whole:
            last = elements(whole, 0)[: size - whole * per_block]
            for number, element in enumerate(last):
                self.store_one(whole * per_block + number, element)
        moved = b.addi(low, b.constant(count, i64))
        carry = b.cast(casts.ExtUIOp, b.cmpi("ult", moved, low), i64)
        state = [self.state[0], moved, b.addi(high, carry)]
        return self.finish(*state[: len(self.state)])

    def words(self, low: SSAValue, high: SSAValue, first: Index, lanes: int) -> list[SSAValue]:
        """The four words of blocks."""
        b = self.b
        start = self.splat(low, lanes)
        lows = b.addi(start, self.numbers(first, lanes))
        # The sum carries into the high half where the low one wraps around.
        carry = b.cast(casts.ExtUIOp, b.cmpi("ult", lows, start), i64)
        highs = b.addi(self.splat(high, lanes), carry)
        a, c = (self._wide_word(x, False) for x in (lows, highs))
        second, fourth = (self._wide_word(x, True) for x in (lows, highs))
        keys = [self.splat(b.cast(casts.ExtUIOp, w, i64), lanes) for w in self.key]
        mask = b.constant((1 << 32) - 1, a.type)
        shift = b.constant(32, a.type)
        for round_ in range(10):
            if round_:
                keys = [
                    b.andi(b.addi(x, b.constant(w, x.type)), mask)
                    for x, w in zip(keys, _WEYL, strict=True)
                ]
            product = b.muli(a, b.constant(_PHILOX[0], a.type))
            other = b.muli(c, b.constant(_PHILOX[1], a.type))
            a = b.xori(b.xori(b.shrui(other, shift), second), keys[0])
            second = b.andi(other, mask)
            c = b.xori(b.xori(b.shrui(product, shift), fourth), keys[1])
            fourth = b.andi(product, mask)
        return [b.cast(casts.TruncIOp, w, i32) for w in (a, second, c, fourth)]

    def _wide_word(self, x: SSAValue, high: bool) -> SSAValue:
        b = self.b
        if high:
            return b.shrui(x, b.constant(32, x.type))
        return b.andi(x, b.constant((1 << 32) - 1, x.type))


def _alternating(b: FunctionBuilder, vectors: Sequence[SSAValue]) -> list[SSAValue]:
    """First lanes of all vectors, then second ones, and so on; of one, two or four vectors."""
    if len(vectors) == 1:
        return [*vectors]
    lanes = _LANES
    halves = (range(lanes // 2), range(lanes // 2, lanes))
    pairs = [
        [b.shuffle(x, y, [n for lane in half for n in (lane, lanes + lane)]) for half in halves]
        for x, y in zip(vectors[0::2], vectors[1::2], strict=True)
    ]
    if len(pairs) == 1:
        return pairs[0]
    blocks = [
        [
            n
            for block in half
            for n in (2 * block, 2 * block + 1, lanes + 2 * block, lanes + 2 * block + 1)
        ]
        for half in (range(lanes // 4), range(lanes // 4, lanes // 2))
    ]
    return [b.shuffle(x, y, block) for x, y in zip(*pairs, strict=True) for block in blocks]
