"""Kernels that turn arrays: some operand is read along another dimension than results are written.

A square of as many elements a side as a vector has lanes is read in vectors along the one dimension,
turned in registers by shuffles, and used in vectors along the other; everything around is element by
element. Squares go in strips that are read along their lines. Large results are written in whole lines,
past the caches: what is in front of the first line, where a buffer starts within one, goes on its own.
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

SIDE = 16
"""Most elements a side of a square: more vectors would not stay in registers."""
_STRIP = 64
"""Squares of a strip: it is read along its lines."""
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
        self.lanes = min(frame.lanes, SIDE)
        self.streams: dict[int, SSAValue] = {}
        self.outer = [d for d in range(len(self.sizes)) if d not in (self.across, self.along)]

    def build(self) -> None:
        """Strips of whole squares; then what is left along the one, the other, and both."""
        b, lanes, frame = self.b, self.lanes, self.frame
        outer = prod(self.sizes[d] for d in self.outer)
        down, rest_down = divmod(self.sizes[self.across], lanes)
        right, rest_right = divmod(self.sizes[self.along], lanes)
        is_led = len(frame.outputs) == 1 and frame.is_streamed(0) and right > 1
        squares = right - is_led
        strips = -(-down // _STRIP)
        if strips and squares:
            with b.parallel(outer * squares * strips, work=frame.work) as number:
                place = self.place(b.div(number, squares * strips))
                strip = b.rem(number, squares * strips)
                self.streams = frame.streams(range(len(frame.outputs)))
                lead: Index = 0
                if is_led:
                    lead, self.streams = frame.lead(0)
                first = b.mul(b.div(strip, squares), _STRIP)
                second = b.add(lead, b.mul(b.rem(strip, squares), lanes))
                last = (
                    b.minimum(b.add(first, _STRIP), down) if down % _STRIP else b.add(first, _STRIP)
                )
                with b.loop(first, last) as i:
                    self.square(place, b.mul(i, lanes), second, lanes, lanes)
        self.streams = {}
        heights = [(0, down, lanes)] if down else []
        heights += [(down * lanes, 1, rest_down)] if rest_down else []
        edges = 3 if is_led else int(rest_right > 0)
        share = frame.work / max(down, right, 1)
        for start, count, height in heights:
            if height < lanes and squares:
                with b.parallel(outer * squares, work=share) as number:
                    lead = frame.lead(0)[0] if is_led else 0
                    second = b.add(lead, b.mul(b.rem(number, squares), lanes))
                    self.square(self.place(b.div(number, squares)), start, second, height, lanes)
            if edges:
                with b.parallel(outer * count * edges, work=share) as number:
                    place = self.place(b.div(number, count * edges))
                    first = b.add(b.mul(b.rem(b.div(number, edges), count), lanes), start)
                    edge: tuple[Index, Index] = (right * lanes, rest_right)
                    if is_led:
                        edge = self.edge(b.index(b.rem(number, edges)), squares)
                    self.square(place, first, edge[0], height, edge[1])

    def edge(self, number: SSAValue, squares: int) -> tuple[Index, Index]:
        """Start and width of what is in front of the first line (0), and behind the squares (1, 2)."""
        b, size = self.b, self.sizes[self.along]
        lead = b.index(self.frame.lead(0)[0])
        is_front = b.cmpi("eq", number, b.index(0))
        behind = b.add(lead, b.mul(b.add(number, squares - 1), self.lanes))
        start = b.select(is_front, b.index(0), b.index(behind))
        return start, b.select(is_front, lead, b.index(b.sub(size, behind)))

    def place(self, number: Index) -> dict[int, Coordinate]:
        """Coordinates of the dimensions that are neither turned nor turned to."""
        sizes = [self.sizes[d] for d in self.outer]
        found = Places(self.b, 0).unlinear(Coordinate(number), sizes)
        return dict(zip(self.outer, found, strict=True))

    def square(
        self, outer: dict[int, Coordinate], first: Index, second: Index, down: int, right: Index
    ) -> None:
        """`down` by `right` elements from `first`, `second` on."""
        b, lanes, frame = self.b, self.lanes, self.frame
        height = None if down == lanes else b.mask(b.index(down), self.lanes)
        width = None if right == lanes else b.mask(b.index(right), lanes)
        e = Elements(Places(b, lanes, width), frame.buffers)
        along = Coordinate(second, 1, None, lanes)
        rows = [Coordinate(b.add(first, n)) for n in range(down)]
        for value, symbols in self.reads:
            vectors: list[SSAValue] = []
            for n in range(right if isinstance(right, int) else lanes):
                index = b.add(second, n)
                if not isinstance(right, int):
                    index = b.minimum(index, self.sizes[self.along] - 1)
                here = {**outer, self.across: Coordinate(first), self.along: Coordinate(index)}
                bases = [here[s].base if s >= 0 else 0 for s in symbols]
                vectors.append(b.vector_load(frame.buffers[value], bases, lanes, height))
            for row, vector in zip(rows, turned(b, vectors, down), strict=True):
                here = {**outer, self.across: row, self.along: along}
                place = [here.get(s, Coordinate(0)) for s in symbols]
                e.know(value, place, (to_register(b, vector, element_type(value)),))
        for row in rows:
            here = {**outer, self.across: row, self.along: along}
            place = [here[d] for d in range(len(self.sizes))]
            values = [e.at(v, place) for v in frame.outputs]
            bases = [c.base for c in place]
            for number, element in enumerate(values):
                frame.store(number, bases, element, e.places, self.streams.get(number))


def turned(b: FunctionBuilder, rows: Sequence[SSAValue], count: int) -> list[SSAValue]:
    """The first `count` columns of a square, of which `rows` are the first rows.

    Each stage swaps the off-diagonal parts of blocks of two rows.
    """
    lanes = lanes_of(rows[0].type)
    values = _shuffled_well(b, rows)
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
    return _as_before(b, values[:count], element_of(rows[0].type))


def columns_of(b: FunctionBuilder, vectors: Sequence[SSAValue]) -> list[SSAValue]:
    """The columns of a matrix that stands in as many vectors as it has columns, row after row.

    Of an even number what is even and what is odd, and again of those; else one lane after the other is picked.
    """
    lanes = lanes_of(vectors[0].type)

    def picked(values: Sequence[SSAValue], column: int) -> SSAValue:
        value, count = values[0], len(values)
        for at, vector in enumerate(values[1:], start=1):
            where = [divmod(row * count + column, lanes) for row in range(lanes)]
            order = [
                lanes + lane if source == at else lane if at == 1 else row
                for row, (source, lane) in enumerate(where)
            ]
            value = b.shuffle(value, vector, order)
        return value

    def apart(values: Sequence[SSAValue]) -> list[SSAValue]:
        if len(values) % 2:
            return [picked(values, column) for column in range(len(values))]
        columns = list(values)
        pairs = list(zip(values[::2], values[1::2], strict=True))
        for odd in (0, 1):
            order = range(odd, 2 * lanes, 2)
            columns[odd::2] = apart([b.shuffle(x, y, order) for x, y in pairs])
        return columns

    return _as_before(b, apart(_shuffled_well(b, vectors)), element_of(vectors[0].type))


def rows_of(b: FunctionBuilder, columns: Sequence[SSAValue]) -> list[SSAValue]:
    """The other way."""
    lanes = lanes_of(columns[0].type)

    def together(values: Sequence[SSAValue]) -> list[SSAValue]:
        if len(values) % 2:
            return side_by_side(b, values)
        order = [n // 2 + lanes * (n % 2) for n in range(2 * lanes)]
        return [
            b.shuffle(even, odd, half)
            for even, odd in zip(together(values[::2]), together(values[1::2]), strict=True)
            for half in (order[:lanes], order[lanes:])
        ]

    return _as_before(b, together(_shuffled_well(b, columns)), element_of(columns[0].type))


def side_by_side(b: FunctionBuilder, columns: Sequence[SSAValue]) -> list[SSAValue]:
    """The rows of a matrix one after the other in as many vectors as it has columns."""
    lanes, width = lanes_of(columns[0].type), len(columns)
    vectors: list[SSAValue] = []
    for first in range(0, width * lanes, lanes):
        vector = columns[0]
        for at, column in enumerate(columns[1:], start=1):
            picked: list[int] = []
            for lane in range(lanes):
                row, own = divmod(first + lane, width)
                picked.append(lanes + row if own == at else row if at == 1 else lane)
            vector = b.shuffle(vector, column, picked)
        vectors.append(vector)
    return vectors


def _shuffled_well(b: FunctionBuilder, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Elements of fewer than 32 bits in wider ones, as processors shuffle those best."""
    type_: Any = element_of(values[0].type)
    bits = cast(int, type_.bitwidth)
    if bits >= 32:
        return list(values)
    if not isinstance(type_, IntegerType):
        values = [b.bitcast(v, IntegerType(bits)) for v in values]
    return [b.cast(casts.ExtUIOp, v, IntegerType(32)) for v in values]


def _as_before(b: FunctionBuilder, values: list[SSAValue], type_: Any) -> list[SSAValue]:
    """What `_shuffled_well` made wider, in elements of its type again."""
    bits = cast(int, type_.bitwidth)
    if bits < 32:
        values = [b.cast(casts.TruncIOp, v, IntegerType(bits)) for v in values]
        if not isinstance(type_, IntegerType):
            values = [b.bitcast(v, type_) for v in values]
    return values
