"""Kernels that turn arrays: some operand is read along another dimension than results are written.

A square of as many elements a side as a vector has lanes is read in vectors along the one dimension,
turned in registers by shuffles, and used in vectors along the other; everything around is element by
element. Squares go in blocks that stay in the first cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.lowering.builder import FunctionBuilder, Index, element_of, lanes_of
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import to_register
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import element_type
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.merging import sizes_of
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.symbols import OTHER, Symbols, reads_of

_BLOCK = 4
"""Squares a side of a block."""
_FEWEST = 4
"""A side that is shorter is not worth turning."""


def turned_reads(
    outputs: Sequence[SSAValue], operands: Sequence[SSAValue]
) -> tuple[int, dict[tuple[SSAValue, Symbols], None]] | None:
    """The dimension along which operands are read across, and these reads; None without."""
    sizes = sizes_of(outputs[0])
    if len(sizes) < 2 or any(sizes_of(v) != sizes for v in outputs):
        return None
    last = len(sizes) - 1
    across: dict[int, dict[tuple[SSAValue, Symbols], None]] = {}
    for value, place in reads_of(outputs, operands):
        element = element_type(value)
        if last in place[:-1] and place[-1] not in (last, OTHER):
            if place[-1] < 0 or OTHER in place or element.is_complex:
                return None
            across.setdefault(place[-1], {})[value, place] = None
    if len(across) != 1:
        return None
    ((dimension, reads),) = across.items()
    if min(sizes[dimension], sizes[last]) < _FEWEST:
        return None
    return dimension, reads


def transpose_kernel(
    frame: Frame, dimension: int, reads: dict[tuple[SSAValue, Symbols], None]
) -> FuncOp:
    """The kernel that turns `reads`, whose last dimension is `dimension` of the results."""
    _Transpose(frame, dimension, list(reads)).build()
    return frame.b.finish()


class _Transpose:
    def __init__(
        self, frame: Frame, dimension: int, reads: Sequence[tuple[SSAValue, Symbols]]
    ) -> None:
        self.frame, self.b = frame, frame.b
        self.sizes = sizes_of(frame.outputs[0])
        self.across, self.along = dimension, len(self.sizes) - 1
        self.reads = reads
        self.lanes = min(frame.lanes, 16)
        self.streams: dict[int, SSAValue] = {}
        self.outer = [d for d in range(len(self.sizes)) if d not in (self.across, self.along)]

    def build(self) -> None:
        """Blocks of whole squares; then what is left along the one, the other, and both."""
        b, lanes, frame = self.b, self.lanes, self.frame
        outer = prod(self.sizes[d] for d in self.outer)
        down, right = (self.sizes[d] // lanes for d in (self.across, self.along))
        rest_down, rest_right = (self.sizes[d] % lanes for d in (self.across, self.along))
        blocks_down, blocks_right = (-(-n // _BLOCK) for n in (down, right))
        blocks = blocks_down * blocks_right
        work = frame.work
        if blocks:
            with b.parallel(outer * blocks, work=work) as number:
                self.streams = frame.streams(range(len(frame.outputs)))
                place = self.place(b.div(number, blocks))
                block = b.rem(number, blocks)
                first = b.mul(b.div(block, blocks_right), _BLOCK)
                second = b.mul(b.rem(block, blocks_right), _BLOCK)
                ends = [self.end(start, count) for start, count in ((first, down), (second, right))]
                with b.loop(first, ends[0]) as i, b.loop(second, ends[1]) as j:
                    self.square(place, b.mul(i, lanes), b.mul(j, lanes), lanes, lanes)
        self.streams = {}
        share = work * lanes / prod(self.sizes[-1:])
        if down and rest_right:
            with b.parallel(outer * down, work=share) as number:
                place = self.place(b.div(number, down))
                first = b.mul(b.rem(number, down), lanes)
                self.square(place, first, right * lanes, lanes, rest_right)
        if right and rest_down:
            with b.parallel(outer * right, work=share) as number:
                place = self.place(b.div(number, right))
                second = b.mul(b.rem(number, right), lanes)
                self.square(place, down * lanes, second, rest_down, lanes)
        if rest_down and rest_right:
            with b.parallel(outer, work=share) as number:
                self.square(self.place(number), down * lanes, right * lanes, rest_down, rest_right)

    def end(self, start: Index, count: int) -> Index:
        """The end of a block's squares."""
        if count % _BLOCK == 0:
            return self.b.add(start, _BLOCK)
        return self.b.minimum(self.b.add(start, _BLOCK), count)

    def place(self, number: Index) -> dict[int, Coordinate]:
        """Coordinates of the dimensions that are neither turned nor turned to."""
        sizes = [self.sizes[d] for d in self.outer]
        found = Places(self.b, 0).unlinear(Coordinate(number), sizes)
        return dict(zip(self.outer, found, strict=True))

    def square(
        self, outer: dict[int, Coordinate], first: Index, second: Index, down: int, right: int
    ) -> None:
        """`down` by `right` elements from `first`, `second` on."""
        b, lanes, frame = self.b, self.lanes, self.frame
        masks = [None if n == lanes else b.mask(b.index(n), lanes) for n in (down, right)]
        e = Elements(Places(b, lanes, masks[1]), frame.buffers)
        along = Coordinate(second, 1, None, lanes)
        rows = [Coordinate(b.add(first, n)) for n in range(down)]
        for value, symbols in self.reads:
            vectors: list[SSAValue] = []
            for n in range(right):
                here = {
                    **outer,
                    self.across: Coordinate(first),
                    self.along: Coordinate(b.add(second, n)),
                }
                bases = [here[s].base if s >= 0 else 0 for s in symbols]
                buffer = frame.buffers[value]
                vectors.append(b.vector_load(buffer, bases, lanes, masks[0]))
            for row, vector in zip(rows, turned(b, vectors, down), strict=True):
                here = {**outer, self.across: row, self.along: along}
                place = [here.get(s, Coordinate(0)) for s in symbols]
                e.know(value, place, (to_register(b, vector, element_type(value)),))
        for row in rows:
            here = {**outer, self.across: row, self.along: along}
            place = [here[d] for d in range(len(self.sizes))]
            values = [e.at(v, place) for v in frame.outputs]
            bases = [c.base for c in place]
            for number, value in enumerate(values):
                frame.store(number, bases, value, e.places, self.streams.get(number))


def turned(b: FunctionBuilder, rows: Sequence[SSAValue], count: int) -> list[SSAValue]:
    """The first `count` columns of a square, of which `rows` are the first rows.

    Each stage swaps the off-diagonal parts of blocks of two rows; elements of fewer than 32 bits
    are wider meanwhile, as processors shuffle those best.
    """
    type_: Any = element_of(rows[0].type)
    lanes = lanes_of(rows[0].type)
    bits = cast(int, type_.bitwidth)
    narrow = bits < 32
    values = list(rows)
    if narrow:
        if not isinstance(type_, IntegerType):
            values = [b.bitcast(v, IntegerType(bits)) for v in values]
        values = [b.cast(casts.ExtUIOp, v, IntegerType(32)) for v in values]
    values += [values[-1]] * (lanes - len(values))
    distance = 1
    while distance < lanes:
        low = [n if not n & distance else lanes + n - distance for n in range(lanes)]
        high = [n + distance if not n & distance else lanes + n for n in range(lanes)]
        after = list(values)
        for n in range(lanes):
            if not n & distance:
                pair = values[n], values[n + distance]
                after[n] = b.shuffle(*pair, low)
                after[n + distance] = b.shuffle(*pair, high)
        values = after
        distance *= 2
    values = values[:count]
    if narrow:
        values = [b.cast(casts.TruncIOp, v, IntegerType(bits)) for v in values]
        if not isinstance(type_, IntegerType):
            values = [b.bitcast(v, type_) for v in values]
    return values
