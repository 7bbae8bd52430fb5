"""fft as loops of this compiler, in double precision.

One dimension after the other; what stands between them is f64. Long lines along the last dimension go
one by one, short ones and those along another one by vectors; they are shared out to threads. Real
transforms of even length are complex ones of half of it:

    z[j] = x[2j] + i x[2j+1],   X[k] = (Z[k] + Z[h-k]*) / 2 - i root(n)^-k (Z[k] - Z[h-k]*) / 2,   h = n / 2
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from math import log2, prod

from xdsl.dialects.builtin import f64
from xdsl.dialects.func import FuncOp

from mlirhlo.dialects.hlo.ops.linear_algebra import FftOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.fft_lines import Line, Memory, Pair, times
from mlirhlo.lowering.hlo_to_loops.fft_plans import LONGEST, Kind, Plan, plan, room
from mlirhlo.lowering.hlo_to_loops.fft_stages import Roots, is_cyclic, radices
from mlirhlo.lowering.hlo_to_loops.helpers import call_helpers
from mlirhlo.lowering.hlo_to_loops.transposes import turned
from mlirhlo.lowering.target import current

_ROOMS_BYTES = 1 << 26
"""Most memory of their rooms, where there is more than one."""
_SHORT = 64
"""Lines of fewer numbers go together."""
_NS = 0.3
"""Of an element and doubling of the length."""


def has_loops(op: FftOp) -> bool:
    """Whether there are loops for a transform: of lengths, and in an order in memory, that suit them."""
    shapes = [op.input_shapes[0], op.shape]
    ordered = all(
        isinstance(s, ArrayShape) and physical_order(s) == tuple(range(s.rank)) for s in shapes
    )
    return ordered and _room(op, _lanes()) is not None


def _lanes() -> int:
    return current().vector_bytes // 8


def _room(op: FftOp, lanes: int) -> int | None:
    """Numbers of each of the two rooms of a part; None where a length has no plan."""
    *others, last = op.fft_length
    half = op.fft_type in ("RFFT", "IRFFT") and last % 2 == 0
    rooms = [room(n, lanes, across=True) for n in others]
    rooms.append(room(last // 2 if half else last, lanes, across=False))
    if last < _SHORT or _has_large_primes(last):
        rooms.append(room(last, lanes, across=True))
    found = [n for n in rooms if n is not None]
    return max(*found, last + 2 * lanes) if len(found) == len(rooms) else None


def _has_large_primes(length: int, *, of_reals: bool = False) -> bool:
    """Whether a length has stages for lines side by side alone, which for real numbers are no convolutions."""
    stages = radices(length, across=True) if length <= LONGEST else None
    if stages is None or radices(length) is not None:
        return False
    return not (of_reals and any(map(is_cyclic, stages)))


def fft_loops(name: str, op: FftOp) -> FuncOp:
    """The kernel of a transform that has loops, of arrays with elements."""
    return _Transforms(name, op).build()


class _Transforms:
    def __init__(self, name: str, op: FftOp) -> None:
        self.k = ArrayKernel(name, op)
        self.b = self.k.b
        self.kind = op.fft_type
        self.lengths = list(op.fft_length)
        self.sign = -1 if self.kind in ("FFT", "RFFT") else 1
        (operand,), (result,) = self.k.operands, self.k.results
        first = operand.rank - len(self.lengths)
        self.batch = prod(operand.dimensions[:first])
        shape = result if self.kind == "RFFT" else operand
        self.sizes = list(shape.dimensions[first:])
        """Of the complex numbers between two dimensions."""
        self.lanes = _lanes()
        self.tables = Roots(self.b)
        flat = [self.k.flat(number) for number in (0, 1)]
        self.operand, self.result = (Memory(self.b, self.lanes, [v]) for v in flat)
        self.reals = [Memory(self.b, self.lanes, [v], is_real=True) for v in flat]
        found = _room(op, self.lanes)
        assert found is not None
        self.room = -(-found // 8) * 8
        """Numbers of a room of a line, with a vector too many on both sides of a line on its own."""
        self.most = max(1, min(current().parts, _ROOMS_BYTES // (32 * self.room)))
        if current().has_many_threads:
            self.most = min(self.most, self.batch * prod(self.sizes) // min(self.sizes))
        self.work = self.batch * prod(self.sizes) * log2(2 * prod(self.lengths)) * _NS

    def build(self) -> FuncOp:
        """Of one dimension the lines of all arrays; of more all dimensions of an array before the next.

        With many threads each dimension of all arrays before the next dimension.
        """
        b, last = self.b, len(self.sizes) - 1
        rooms = 32 * self.room
        if last == 0:
            self.parts = min(self.most, self.batch)
            self.memory = b.workspace(self.parts * rooms)
            self.lines(0, self.batch, (self.operand, 0), (self.result, 0), 0)
        else:
            is_at_once = current().has_many_threads
            arrays = self.batch if is_at_once else 1
            between = -(-16 * (arrays * prod(self.sizes) + self.lanes) // 64) * 64
            parts = self.most if self.batch >= self.most and not is_at_once else 1
            self.parts = self.most // parts
            self.memory = b.workspace(parts * between + self.most * rooms)
            order = [*range(last), last] if self.kind == "IRFFT" else [last, *range(last)]
            each = nullcontext((0, 0)) if is_at_once else self.shared(self.batch, parts)
            with each as (part, number):
                middle = self.planes(b.mul(part, between), between // 16)
                sources = [(self.operand, number), *[(middle, 0)] * last]
                targets = [*[(middle, 0)] * last, (self.result, number)]
                free = b.add(b.mul(part, rooms), parts * between)
                for dim, source, target in zip(order, sources, targets, strict=True):
                    self.lines(dim, arrays * prod(self.sizes[:dim]), source, target, free)
        function = self.k.finish()
        call_helpers(function, self.tables.builders)
        return function

    @contextmanager
    def shared(self, count: int, parts: int) -> Generator[tuple[Index, Index]]:
        """A loop over numbers below `count` that parts share; gives the part, and the number."""
        b, parts = self.b, min(count, parts)
        if parts == 1:
            with b.loop(0, count) as number:
                yield 0, number
            return
        each = -(-count // parts)
        with b.parallel(parts, work=self.work / len(self.sizes)) as part:
            first = b.mul(part, each)
            with b.loop(first, b.minimum(b.add(first, each), count)) as number:
                yield part, number

    def planes(self, offset: Index, count: int) -> Memory:
        """Complex numbers in the memory of the call."""
        views = [
            self.k.view(self.memory, self.b.add(offset, at), [count], f64) for at in (0, 8 * count)
        ]
        return Memory(self.b, self.lanes, views)

    def lines(
        self,
        dim: int,
        outer: int,
        source: tuple[Memory, Index],
        target: tuple[Memory, Index],
        free: Index,
    ) -> None:
        """All lines along a dimension of an array, of which there are `outer` times those side by side.

        `source` and `target`: in which memory, and which of the arrays there. `free`: where rooms begin.
        """
        b, lanes, length = self.b, self.lanes, self.lengths[dim]
        inner = prod(self.sizes[dim + 1 :])
        is_last = dim == len(self.sizes) - 1
        if is_last and self.goes_together(length, outer):
            self.together(length, outer, source, target, free)
            return
        blocks = 1 if is_last else -(-inner // lanes)
        with self.shared(outer * blocks, self.parts) as (part, number):
            at = b.add(free, b.mul(part, 32 * self.room))
            rooms = [self.planes(b.add(at, 16 * n * self.room), self.room) for n in (0, 1)]
            ends = [
                (memory, b.add(b.mul(item, outer), b.div(number, blocks)))
                for memory, item in (source, target)
            ]
            if not is_last:
                self.side_by_side(length, inner, b.mul(b.rem(number, blocks), lanes), rooms, ends)
                return
            alone = [Line(room, lanes) for room in rooms]
            match self.kind:
                case "RFFT":
                    self.real_to_complex(length, alone, ends[0][1], ends[1])
                case "IRFFT":
                    self.complex_to_real(length, alone, ends[0], ends[1][1])
                case _:
                    here, there = (Line(m, b.mul(n, length)) for m, n in ends)
                    self.stages(length).run(here, alone, there, self.scale(length))

    def side_by_side(
        self,
        length: int,
        inner: int,
        first: Index,
        rooms: Sequence[Memory],
        ends: Sequence[tuple[Memory, Index]],
    ) -> None:
        """As many lines as there are lanes, from the one that starts at `first` of `inner` on."""
        b, lanes = self.b, self.lanes
        here, there = (Line(m, b.add(b.mul(n, length * inner), first), inner) for m, n in ends)
        width = b.minimum(b.sub(inner, first), lanes) if inner % lanes else None
        between = [Line(room, 0, lanes) for room in rooms]
        self.stages(length, across=True).run(here, between, there, self.scale(length), width)

    def goes_together(self, length: int, count: int) -> bool:
        """Whether there are lines of the last dimension for all lanes, and they gain by it."""
        is_short = self.kind != "RFFT" and length < _SHORT
        gains = self.kind != "IRFFT" and (
            is_short or _has_large_primes(length, of_reals=self.kind == "RFFT")
        )
        return gains and count >= self.lanes > 1

    def together(
        self,
        length: int,
        count: int,
        source: tuple[Memory, Index],
        target: tuple[Memory, Index],
        free: Index,
    ) -> None:
        """Lines of the last dimension, as many at once as there are lanes: turned, and turned back.

        The last ones begin where as many are left: some are done twice.
        """
        b, lanes = self.b, self.lanes
        with self.shared(-(-count // lanes), self.parts) as (part, number):
            at = b.add(free, b.mul(part, 32 * self.room))
            rooms = [self.planes(b.add(at, 16 * n * self.room), self.room) for n in (0, 1)]
            between = [Line(room, 0, lanes) for room in rooms]
            entered = between[1]
            if self.kind == "RFFT":
                entered = Line(Memory(b, lanes, rooms[1].buffers[:1], is_real=True), 0, lanes)
            first = b.mul(number, lanes)
            if count % lanes:
                first = b.minimum(first, count - lanes)
            memory = self.reals[0] if self.kind == "RFFT" else source[0]
            made = length // 2 + 1 if self.kind == "RFFT" else length
            here, there = (
                [
                    Line(memory, b.mul(b.add(b.add(b.mul(item, count), first), n), size))
                    for n in range(lanes)
                ]
                for memory, item, size in (
                    (memory, source[1], length),
                    (target[0], target[1], made),
                )
            )

            def enter(j: Index, few: int | None) -> None:
                rows = [line.load(j, few) for line in here]
                self.turn(rows, few or lanes, lambda n, value: entered.store(b.add(j, n), value))

            def leave(j: Index, few: int | None) -> None:
                rows = [done.load(b.add(j, n)) for n in range(few or lanes)]
                self.turn(rows, lanes, lambda n, value: there[n].store(j, value, few))

            self.vectors(length, enter)
            done = self.stages(length, across=True).run(entered, between, None, self.scale(length))
            self.vectors(made, leave)

    def turn(self, rows: Sequence[Pair], count: int, store: Callable[[int, Pair], None]) -> None:
        """Stores as many columns of a square of complex numbers."""
        real, imaginary = (turned(self.b, [v[part] for v in rows], count) for part in (0, 1))
        for n, value in enumerate(zip(real, imaginary, strict=True)):
            store(n, value)

    def stages(self, length: int, results: int | None = None, *, across: bool = False) -> Plan:
        """A transform of this kernel; `results`: as of `plan`."""
        return plan(Kind(self.b, self.tables, self.lanes, self.sign, across), length, results)

    def scale(self, length: int) -> float:
        """Inverse transforms divide by the length."""
        return 1.0 / length if self.sign > 0 else 1.0

    # Real transforms of one line

    def real_to_complex(
        self, n: int, rooms: Sequence[Line], number: Index, end: tuple[Memory, Index]
    ) -> None:
        """The first half of the transform of line `number` of the operand, and the number after it."""
        b = self.b
        half = n // 2
        target = Line(end[0], b.mul(end[1], half + 1))
        if n % 2:
            source = Line(self.reals[0], b.mul(number, n))
            z = self.stages(n, half + 1).run(source, rooms, None, 1.0)
            self.vectors(half + 1, lambda k, count: target.store(k, z.load(k), count))
            return
        z = self.stages(half).run(Line(self.operand, b.mul(number, half)), rooms, None, 1.0)
        for buffer in z.memory.buffers:
            b.store(b.load(buffer, [z.at(0)]), buffer, [z.at(half)])

        self.mirrored(n, z, target, 0.5)

    def complex_to_real(
        self, n: int, rooms: Sequence[Line], end: tuple[Memory, Index], number: Index
    ) -> None:
        """From half a transform, and the number after it, to line `number` of the result."""
        b = self.b
        x, z = rooms
        half = n // 2
        source = Line(end[0], b.mul(end[1], half + 1))
        self.vectors(half + 1, lambda k, count: x.store(k, source.load(k, count)))
        for middle in (0,) if n % 2 else (0, half):
            b.store(b.constant(0.0, f64), x.memory.buffers[1], [x.at(middle)])
        scale = self.scale(n)
        if n % 2:
            with b.loop(0, half + 1) as k:
                for buffer, to in zip(x.memory.buffers, z.memory.buffers, strict=True):
                    b.store(b.load(buffer, [x.at(k)]), to, [z.at(k)])
            with b.loop(1, half + 1) as k:
                real, imaginary = (b.load(v, [x.at(k)]) for v in x.memory.buffers)
                for value, to in zip((real, b.negf(imaginary)), z.memory.buffers, strict=True):
                    b.store(value, to, [z.at(b.sub(n, k))])
            self.stages(n).run(z, rooms, Line(self.reals[1], b.mul(number, n)), scale)
            return

        self.mirrored(n, x, z, 1.0)
        self.stages(half).run(z, rooms, Line(self.result, b.mul(number, half)), scale)

    def mirrored(self, n: int, x: Line, y: Line, factor: float) -> None:
        """What makes a transform of n real numbers of one of half as many complex ones, or back.

        `y[k] = factor (x[k] + x[h-k]* + sign i root(n)^(sign k) (x[k] - x[h-k]*))` for k from 0 to h = n / 2:
        a vector of the first half and its mirror image out of the same sums.
        """
        b, lanes, half = self.b, self.lanes, n // 2

        def body(k: Index, count: int | None) -> None:
            here = x.load(k)
            back = x.load(b.sub(half - lanes + 1, k))
            re, im = (b.shuffle(v, v, range(lanes - 1, -1, -1)) for v in back)
            even = b.addf(here[0], re), b.subf(here[1], im)
            odd = b.subf(here[0], re), b.addf(here[1], im)
            if factor != 1.0:
                c = b.constant(factor, re.type)
                even, odd = ((b.mulf(v, c), b.mulf(w, c)) for v, w in (even, odd))
            turned = times(b, odd, self.tables.half(n, k, lanes, count), self.sign)
            add, sub = (b.addf, b.subf) if self.sign > 0 else (b.subf, b.addf)
            y.store(k, (sub(even[0], turned[1]), add(even[1], turned[0])), count)
            few = count or lanes
            order = [*range(few - 1, -1, -1), *range(few, lanes)]
            image = add(even[0], turned[1]), sub(even[1], turned[0])
            re, im = (b.shuffle(v, v, order) for v in (image[0], b.negf(image[1])))
            y.store(b.sub(half - few + 1, k), (re, im), count)

        self.vectors(half // 2 + 1, body)

    def vectors(self, count: int, body: Callable[[Index, int | None], object]) -> None:
        """Vectors of numbers, and how many there are in one that is not whole."""
        whole = count - count % self.lanes
        if whole:
            with self.b.loop(0, whole, self.lanes) as k:
                body(k, None)
        if count > whole:
            body(whole, count - whole)
