"""Kernels whose results' elements are computed each on its own, in the order of memory.

The last dimension goes in vectors, its rest under a mask; what does not change in a loop is computed in
front of it. The first dimensions, or pieces of the only one, run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import gcd, prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.hlo_to_loops.asking import GatheredLines
from mlirhlo.lowering.hlo_to_loops.cuts import Region, regions
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.kernel_frame import LINE_BYTES, Frame
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in, sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.symbols import Symbols, reads_of

_FEWEST = 4
"""A shorter last dimension is not worth a vector."""
_LEAST_LED = 32
"""Vectors of a line of results that is worth a start at a line of the caches."""
_ROUNDS = 64
"""Rounds that are enough to give every thread its share."""
_SMALL_BYTES = 1 << 18
"""Results that stay in the caches in any order."""
_BLOCK_BYTES = 1 << 11
"""Of lines that are written one after the other where an operand's lines are elsewhere."""
_PIECE_BYTES = 1 << 16
"""Of a piece of an array of one dimension."""
_LINE_BYTES = 64
"""Of the caches."""
_LINES_AHEAD = 8
"""Lines of the cache that are asked for of a line of an operand: what follows, the processor finds."""


def pointwise_kernel(frame: Frame, piece: int = 0) -> FuncOp:
    """A kernel of loops over the elements of results, those of one shape together; `piece` elements of the only
    dimension a part, where that is said."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, output in enumerate(frame.outputs):
        groups.setdefault(sizes_of(output), []).append(number)
    if len(groups) == 1:
        share_places(frame)
    for numbers in groups.values():
        outputs = [frame.outputs[n] for n in numbers]
        found = regions(outputs, frame.operands, frame.lanes)
        reads = reads_of(outputs, frame.operands)
        piece = piece or piece_of(frame.outputs, frame.operands, frame.lanes)
        for region in found:
            share = prod(high - low for low, high in region) / prod(sizes_of(outputs[0]))
            _Pointwise(frame, region, numbers, reads, frame.work * share, piece).build()
    return frame.b.finish()


def share_places(frame: Frame) -> None:
    """A result may be written over an operand that is read at its own places alone."""
    outside: set[SSAValue] = set()
    whole = tuple(range(len(sizes_of(frame.outputs[0]))))
    for value, place in reads_of(frame.outputs, frame.operands):
        if place != whole:
            outside.add(value)
    for at, operand in enumerate(frame.operands):
        for number, output in enumerate(frame.outputs):
            same = frame.sizes_and_bytes(operand) == frame.sizes_and_bytes(output)
            if same and operand not in outside:
                frame.b.may_share(at, len(frame.operands) + number)


def piece_of(outputs: Sequence[SSAValue], operands: Sequence[SSAValue], lanes: int) -> int:
    """Elements of the only dimension that one part of a parallel loop takes."""
    bytes_ = max(arrays_in(v)[0].element_type.byte_size for v in (*outputs, *operands))
    return max(_PIECE_BYTES // bytes_, 4 * lanes)


class _Pointwise:
    """A region of results of one shape."""

    def __init__(
        self,
        frame: Frame,
        region: Region,
        numbers: Sequence[int],
        reads: Sequence[tuple[SSAValue, Symbols]],
        work: float,
        piece: int,
    ) -> None:
        self.reads, self.work, self.piece = reads, work, piece
        self.frame, self.b, self.region, self.numbers = frame, frame.b, region, numbers
        self.lanes = frame.lanes
        if (
            region
            and frame.lanes
            and _FEWEST <= (width := region[-1][1] - region[-1][0]) < frame.lanes
        ):
            # Without a mask, what is stored is found by a load that follows.
            self.lanes = width if width.bit_count() == 1 else frame.lanes
        self.streams: dict[int, SSAValue] = {}
        self.far = self.far_operands()
        self.is_led = self._is_led()

    def _is_led(self) -> bool:
        """Whether the only result is one that no cache holds, whose lines begin anywhere in those of the
        caches."""
        frame, (number, *others) = self.frame, self.numbers
        output = frame.outputs[number]
        return (
            not others
            and len(self.region) > 1
            and frame.is_far(output)
            and not frame.is_streamed(number)
            and self.lanes * frame.byte_size(output) == LINE_BYTES
            and not arrays_in(output)[0].element_type.is_complex
        )

    def far_operands(self) -> Sequence[tuple[SSAValue, int]]:
        """Operands read at the results' own places, too big for the caches, and how many elements ahead
        they are asked for."""
        frame, whole = self.frame, tuple(range(len(self.region)))
        return frame.far_ahead(v for v, place in self.reads if place == whole)

    def build(self) -> None:
        """The loops."""
        b, frame = self.b, self.frame
        if not self.region:
            self.element(Elements(Places(b, 0), frame.buffers), [])
            return
        *outer, (low, high) = self.region
        if not outer and high - low >= 2 * max(self.lanes, 1):
            self.pieces(low, high)
            return
        across = self.read_across()
        if across is not None and high - low >= _FEWEST:
            self.in_blocks(across)
            return
        sizes = [end - begin for begin, end in outer]
        depth = next((n for n in range(1, len(outer)) if prod(sizes[:n]) >= _ROUNDS), len(outer))
        with ExitStack() as stack:
            place: list[Coordinate] = []
            if outer:
                number = stack.enter_context(b.parallel(prod(sizes[:depth]), work=self.work))
                found = Places(b, 0).unlinear(Coordinate(number), sizes[:depth])
                place = [self.moved(c, r) for c, r in zip(found, outer[:depth], strict=True)]
            self.streams = frame.streams(self.numbers, low)
            lanes = self.lanes if high - low >= _FEWEST else 0
            e = Elements(Places(b, lanes), frame.buffers)
            for begin, end in outer[depth:]:
                index = stack.enter_context(b.loop(begin, end))
                place.append(Coordinate(index, 0, None, 1, (begin, end)))
                e = e.scope()
            self.last(e, place, low, high)

    def read_across(self) -> int | None:
        """The dimension that lines of operands follow each other along in memory, where that is
        another one than the results' and both are long."""
        frame, rank = self.frame, len(self.region)
        outputs = [frame.outputs[n] for n in self.numbers]
        found = {
            place[-2]
            for _, place in self.reads
            if len(place) >= 2 and place[-1] == rank - 1 and place[-2] >= 0
        } - {rank - 2}
        if len(found) != 1:
            return None
        (across,) = found
        sizes = [high - low for low, high in self.region]
        bytes_ = max(frame.byte_size(v) for v in outputs)
        is_small = prod(sizes) * bytes_ < _SMALL_BYTES
        return None if is_small or min(sizes[across], sizes[-2]) < _FEWEST else across

    def in_blocks(self, across: int) -> None:
        """Some lines of the results at a time, so that those of the operand are read while they are near.

        Of the dimension before the last a block, then all of `across`, then the block's lines.
        """
        b, frame = self.b, self.frame
        low, high = self.region[-1]
        down = len(self.region) - 2
        others = [d for d in range(down) if d != across]
        begin, end = self.region[down]
        line = (high - low) * max(frame.byte_size(frame.outputs[n]) for n in self.numbers)
        block = max(_FEWEST, min(end - begin, _BLOCK_BYTES // line))
        blocks = -(-(end - begin) // block)
        sizes = [self.region[d][1] - self.region[d][0] for d in others]
        with b.parallel(prod(sizes) * blocks, work=self.work) as number:
            self.streams = frame.streams(self.numbers, low)
            found = Places(b, 0).unlinear(Coordinate(b.div(number, blocks)), sizes)
            fixed = {d: self.moved(c, self.region[d]) for d, c in zip(others, found, strict=True)}
            first = b.add(b.mul(b.rem(number, blocks), block), begin)
            last: Index = b.add(first, block)
            if (end - begin) % block:
                last = b.minimum(last, end)
            e = Elements(Places(b, self.lanes), frame.buffers)
            with b.loop(*self.region[across]) as i:
                fixed[across] = Coordinate(i, 0, None, 1, self.region[across])
                e = e.scope()
                with b.loop(first, last) as j:
                    fixed[down] = Coordinate(j, 0, None, 1, self.region[down])
                    place = [fixed[d] for d in range(down + 1)]
                    self.ask_for_lines(across, [*place[:-1], Coordinate(b.add(j, block))])
                    self.line(e.scope(), place, low, high)

    def ask_for_lines(self, across: int, place: Sequence[Coordinate]) -> None:
        """Of far operands that stand in another order, a line that a later block of the results reads."""
        frame, rank = self.frame, len(self.region)
        low, high = self.region[-1]
        for value, symbols in self.reads:
            if not frame.is_far(value) or symbols[-2:] != (across, rank - 1):
                continue
            step = _LINE_BYTES // frame.byte_size(value)
            for at in range(low, min(high, low + _LINES_AHEAD * step), step):
                bases = [0 if s < 0 else at if s == rank - 1 else place[s].base for s in symbols]
                frame.prefetch(value, bases)

    def line(self, e: Elements, place: Sequence[Coordinate], low: int, high: int) -> None:
        """The last dimension; of a short one all vectors together."""
        count, rest = divmod(high - low, max(self.lanes, 1))
        if count > _LINES_AHEAD or rest or not self.lanes:
            self.last(e, place, low, high)
            return
        with self.frame.stores_together():
            for n in range(count):
                self.element(e.scope(), [*place, self.along(low + n * self.lanes)])

    def moved(self, c: Coordinate, range_: tuple[int, int]) -> Coordinate:
        """An index counted from the beginning of its range."""
        return Coordinate(self.b.add(c.base, range_[0]), 0, None, 1, range_)

    def along(self, index: Index) -> Coordinate:
        """Neighbours along the last dimension."""
        low = self.region[-1][0]
        return Coordinate(index, 1, None, gcd(low, self.lanes), self.region[-1])

    def anywhere(self, index: Index) -> Coordinate:
        """Neighbours along the last dimension, from any index on."""
        return Coordinate(index, 1, None, 1, self.region[-1])

    def pieces(self, first: int, last: int) -> None:
        """The only dimension."""
        b, frame = self.b, self.frame
        piece = self.piece
        size = last - first
        whole = size - size % max(self.lanes, 1)
        with b.parallel(-(-whole // piece), work=self.work) as number:
            self.streams = frame.streams(self.numbers, first)
            low = b.add(b.mul(number, piece), first)
            high: Index = b.add(low, piece)
            if whole % piece:
                high = b.minimum(high, first + whole)
            e = Elements(Places(b, self.lanes), frame.buffers)
            (self.vectors if self.lanes else self.singles)(e, [], low, high)
        self.streams = {}
        self.rest(Elements(Places(b, self.lanes), frame.buffers), [], first + whole, last)

    def last(self, e: Elements, place: Sequence[Coordinate], low: int, high: int) -> None:
        """The last dimension, in vectors if there are lanes."""
        if not e.lanes:
            self.singles(e, place, low, high)
            return
        if self.is_led and high - low >= _LEAST_LED * self.lanes:
            self.led(e, place, low, high)
            return
        whole = high - (high - low) % self.lanes
        if low < whole:
            self.vectors(e, place, low, whole)
        self.rest(e, place, whole, high)

    def singles(self, e: Elements, place: Sequence[Coordinate], low: Index, high: Index) -> None:
        """Elements one by one."""
        with self.b.loop(low, high) as i:
            self.element(e.scope(), [*place, Coordinate(i, 0, None, 1, self.region[-1])])

    def led(self, e: Elements, place: Sequence[Coordinate], low: int, high: int) -> None:
        """The last dimension where it begins anywhere in a line of the caches: whole ones go past them,
        what is in front of the first and behind the last does not."""
        b, (number,), lanes = self.b, self.numbers, self.lanes
        before, streams = self.frame.lead(number)
        at: Index = low
        sizes = sizes_of(self.frame.outputs[number])
        for d, c in enumerate(place):
            at = b.add(at, b.mul(c.base, prod(sizes[d + 1 :])))
        lead = b.andi(b.index(b.sub(before, at)), b.constant(lanes - 1, INDEX))
        first = b.add(low, lead)
        rest = b.rem(b.sub(high, first), lanes)
        self.part(e, [*place, self.anywhere(low)], lead)
        self.streams = streams
        self.vectors(e, place, first, b.sub(high, rest), self.anywhere)
        self.streams = {}
        self.part(e, [*place, self.anywhere(b.sub(high, rest))], rest)

    def vectors(
        self,
        e: Elements,
        place: Sequence[Coordinate],
        low: Index,
        high: Index,
        along: Callable[[Index], Coordinate] | None = None,
    ) -> None:
        """Whole vectors."""
        gathered = GatheredLines.of(self.frame, self.numbers, place, self.region)
        with self.b.loop(low, high, self.lanes) as i:
            here = (along or self.along)(i)
            for value, distance in self.far:
                ahead = self.b.add(i, distance)
                self.frame.prefetch(value, [*[c.base for c in place], ahead])
            if gathered is not None:
                gathered.ask_for(here)
            self.element(e.scope(), [*place, here])

    def rest(self, e: Elements, place: Sequence[Coordinate], low: int, high: int) -> None:
        """Less than a vector."""
        if low < high:
            self.part(e, [*place, self.along(low)], high - low)

    def part(self, e: Elements, place: Sequence[Coordinate], count: Index) -> None:
        """The first elements of a vector."""
        mask = self.b.mask(self.b.index(count), self.lanes)
        self.element(e.scope(Places(self.b, self.lanes, mask)), place)

    def element(self, e: Elements, place: Sequence[Coordinate]) -> None:
        """An element of each result, or a vector of them; all are computed before any is stored."""
        values = [e.at(self.frame.outputs[n], place) for n in self.numbers]
        for number, value in zip(self.numbers, values, strict=True):
            indices = [c.base for c in place]
            stream = self.streams.get(number)
            self.frame.store(number, indices, value, e.places, stream)
