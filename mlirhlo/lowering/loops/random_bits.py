"""random_bits: Threefry-2x32 and Philox-4x32-10, bit for bit as the interpreter.

A block is what one value of the counter gives: two words of 32 bits of Threefry, four of Philox. Which elements of
the result they are is told by `interp/ops/random_bits.py`.

    parallel for chunks of blocks:
      for vectors of blocks:  words = rounds(key, counter + block);  bits[elements of the blocks] = words
    next state = key, counter + number of blocks

Schedule: `lanes` blocks in a vector, `chunk` blocks in a part of the parallel loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured import RandomBitsOp
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, like
from mlirhlo.lowering.hlo_to_loops.elements import Value, register_type, to_memory
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.loops.kernel import LoopKernel, array, no_loops
from mlirhlo.lowering.loops.lowering import LANES, OpLowering, lowers
from mlirhlo.lowering.loops.schedule import LoopSchedule
from mlirhlo.lowering.target import current

_CHUNK = 4096
_FEWEST_LANES = 4
"""Fewer blocks of Philox are not four vectors of the result."""
_BLOCK_NS = {"threefry": 3.0, "philox": 5.0}
"""Time that a block takes, about."""
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_PHILOX = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


@lowers(RandomBitsOp)
class RandomBits(OpLowering[RandomBitsOp]):
    """Blocks in vectors; the last few, and all of them where there are no lanes, one by one."""

    kinds = ("blocks",)

    def lanes(self, op: RandomBitsOp, kind: str) -> int:
        """None where a block is for a thread."""
        del op, kind
        return 0 if current().has_many_threads else LANES

    def chunk(self, op: RandomBitsOp, schedule: LoopSchedule) -> int:
        """As many blocks as are worth a thread's while; one where threads are many."""
        del op, schedule
        return 1 if current().has_many_threads else _CHUNK

    def reason_against(self, op: RandomBitsOp, schedule: LoopSchedule) -> str:
        """Vectors start at multiples of their lanes."""
        del op
        if 0 < schedule.lanes < _FEWEST_LANES:
            return f"lanes are 0, or {_FEWEST_LANES} and more"
        if schedule.chunk <= 0 or schedule.chunk % max(schedule.lanes, 1):
            return "a chunk holds whole vectors"
        return ""

    def emit(self, k: LoopKernel, op: RandomBitsOp, schedule: LoopSchedule) -> None:
        """The bits and the next state."""
        is_threefry = op.algorithm.data.lower() == "rng_three_fry"
        state = array(op.state)
        fits = state.element_type.name == "u64" and state.dimensions in ((2,), (3,))
        if not fits or (is_threefry and state.dimensions != (2,)):
            raise no_loops(op, f"the state is {state}")
        (_Threefry if is_threefry else _Philox)(k, op, schedule).build()


class _Generator:
    """What both have in common: the state, and blocks in vectors."""

    name: str

    def __init__(self, k: LoopKernel, op: RandomBitsOp, schedule: LoopSchedule) -> None:
        self.k, self.b, self.op, self.schedule = k, k.b, op, schedule
        self.shape = array(op.bits)
        self.is_wide = self.shape.element_type.bits == 64
        (size,) = array(op.state).dimensions
        scalars = Places(k.b, 0)
        self.state = [k.read(op.state, [Coordinate(n)], scalars)[0] for n in range(size)]
        self.key = [self._word(self.state[0], high) for high in (False, True)]
        self.memory = k.row_major(op.bits)
        """The bits in the order of memory, where that is their own."""

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
        """`body(first, lanes)` for all blocks: chunks of vectors in parallel, then those left one by one."""
        b, lanes, chunk = self.b, self.schedule.lanes, self.schedule.chunk
        whole = count - count % (lanes or 1)
        if whole:
            work = None if current().has_many_threads else count * _BLOCK_NS[self.name]
            with b.parallel(-(-whole // chunk), work=work) as number:
                first = b.mul(number, chunk)
                if chunk == (lanes or 1):
                    body(first, lanes)
                else:
                    end = b.minimum(b.add(first, chunk), whole)
                    with b.loop(first, end, lanes or 1) as at:
                        body(at, lanes)
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

    def store_blocks(self, first: Index, elements: Sequence[SSAValue], lanes: int) -> None:
        """Stores all elements of blocks, which stand in a row in logical order."""
        b = self.b
        start = b.mul(first, len(elements))
        if lanes and self.memory is not None:
            for number, row in enumerate(_alternating(b, elements, lanes)):
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
        self.k.write(self.op.bits, place, (element,))

    def finish(self, *state: SSAValue) -> None:
        """Stores the next state."""
        for number, value in enumerate(state):
            self.k.write(self.op.next_state, [Coordinate(number)], (value,))


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

    def build(self) -> None:
        """All blocks."""
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
        self.finish(self.state[0], following)

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
            if lanes and inner == 1 and size % 2 == 0 and self.memory is not None:
                self.store_blocks(first, elements, lanes)
                return
            in_rows = lanes and inner % lanes == 0 and self.memory is not None
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

    def build(self) -> None:
        """All blocks."""
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
        self.finish(*state[: len(self.state)])

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


def _alternating(b: FunctionBuilder, vectors: Sequence[SSAValue], lanes: int) -> list[SSAValue]:
    """First lanes of all vectors, then second ones, and so on; of one, two or four vectors."""
    if len(vectors) == 1:
        return [*vectors]
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
