"""Tiles of factors in shared memory, and how the threads of a block bring them there.

A tile stands as the factor does in memory: terms of a line beside each other, or lines of a term. Its rows are cut in
panels of 128 bytes, and the units of 16 bytes in a row are swizzled by the row's number, so that neither the threads
that store a row nor those that read a unit of eight rows ask one bank twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured import sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.element_ops import factor_inputs
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.hlo_to_loops.elements import Value, to_memory
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.folds import zero_element
from mlirhlo.lowering.schedule.factor_reads import FactorRead, plain_read
from mlirhlo.lowering.schedule.group_ranges import factors_of
from mlirhlo.lowering.schedule.matrix_products import inputs_of_factor

if TYPE_CHECKING:
    from mlirhlo.lowering.gpu.kinds.contraction import Block
    from mlirhlo.lowering.gpu.launches import LaunchBuilder

Point = tuple[Index, int]
"""An index as a part that is the thread's own and a constant, which have no bits in common."""
UNITS, PAIRS, FOURS = "units", "pairs", "fours"
"""Threads access units of eight rows that follow one another (and of every fourth row of 32, which `FOURS` adds), or
one element each of four rows."""
UNIT_BYTES = 16
PANEL_BYTES = 128
_PATCH = 4
"""Lines and terms of the bytes that a thread transposes at once."""
_PATCHES = (8, 4)
"""Patches of a warp, along lines and along terms."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a tile stand: `slow` rows of `fast` elements of so many bytes."""

    slow: int
    fast: int
    bytes: int
    swizzle: str = UNITS
    """What rows are swizzled for: `UNITS`, `PAIRS` or `FOURS`."""

    @property
    def panel(self) -> int:
        """Elements of a row that stand beside each other."""
        return min(PANEL_BYTES // self.bytes, self.fast)

    @property
    def unit(self) -> int:
        """Elements that are swizzled as a whole."""
        return UNIT_BYTES // self.bytes

    def combined(self, b: LaunchBuilder, row: Index) -> Index:
        """What the numbers of the units in a row are combined with, by exclusive or."""
        units = self.panel // self.unit
        group = b.div(row, PANEL_BYTES // UNIT_BYTES // units)
        if self.swizzle == PAIRS:
            return b.mul(b.rem(group, units // 2), 2)
        combined = b.rem(group, units)
        return b.xor(combined, b.rem(b.div(row, 8), units)) if self.swizzle == FOURS else combined

    def offset(self, b: LaunchBuilder, slow: Point, fast: Point) -> Index:
        """The number of an element in the tile."""
        (row, more_rows), (column, more_columns) = slow, fast
        per_panel = self.slow * self.panel
        constant = more_columns // self.panel * per_panel + more_rows * self.panel
        unit = b.xor(b.div(b.rem(column, self.panel), self.unit), self.combined(b, row))
        fixed = b.xor(more_columns % self.panel // self.unit, self.combined(b, more_rows))
        parts = (
            b.mul(b.div(column, self.panel), per_panel),
            b.mul(row, self.panel),
            b.mul(b.xor(unit, fixed), self.unit),
            b.rem(column, self.unit),
            more_columns % self.unit,
            constant,
        )
        total: Index = 0
        for part in parts:
            total = b.add(total, part)
        return total


@dataclass(frozen=True, slots=True)
class Order:
    """How the tiles of a factor are ordered, and brought."""

    across: bool
    """Whether terms of a line stand beside each other, else lines of a term."""
    swizzle: str
    read: FactorRead | None
    width: int


def order_of(
    block: Block, side: int, element: PrimitiveType, *, across: bool, swizzle: str = UNITS
) -> Order:
    """The order, with the read for copies of a factor that stands in memory in the type it is multiplied in."""
    dims = block.product.terms if across else block.product.lines(side)
    read, width = plain_read(block.op, side), 0
    if read is not None and dims and array(read.source).element_type is element:
        width = read.width(block.op.space, dims[-1])
    return Order(across, swizzle, read if width else None, width)


class FactorTile:
    """The tiles of one factor, a buffer for each stage."""

    def __init__(self, block: Block, side: int, element: PrimitiveType, order: Order) -> None:
        self.block, self.side, self.element, self.across = block, side, element, order.across
        lines, terms = block.sides[side], block.depth
        slow, fast = (lines, terms) if self.across else (terms, lines)
        self.layout = Layout(slow, fast, element.byte_size, order.swizzle)
        self.read, self.width = order.read, order.width
        """How copies that threads do not wait for bring it, if they can, and how many elements each."""
        self.buffer = block.shared([block.stages, slow * fast], element)

    def load(self, stage: Index, slow: Point, fast: Point) -> tuple[SSAValue, Sequence[Index]]:
        """The buffer and the indices of an element."""
        return self.buffer, (stage, self.layout.offset(self.block.b, slow, fast))

    # What a thread brings

    def _pieces(self, width: int) -> Iterator[tuple[Point, Point]]:
        """Rows and columns of the pieces of `width` elements that a thread brings."""
        b, threads = self.block.b, self.block.threads
        along = self.layout.fast // width
        pieces = self.layout.slow * along
        thread = self.block.thread
        if pieces < threads:
            thread = b.index(b.rem(thread, pieces))
        for part in range(-(-pieces // threads)):
            if threads % along == 0:
                row, column = (b.div(thread, along), part * threads // along), b.rem(thread, along)
            else:
                number = b.add(thread, part * threads)
                row, column = (b.div(number, along), 0), b.rem(number, along)
            yield row, (b.mul(column, width), 0)

    def _bringing(self, width: int) -> Any:
        """A branch for the threads that bring pieces, where not all do."""
        b = self.block.b
        pieces = self.layout.slow * self.layout.fast // width
        assert pieces < self.block.threads or pieces % self.block.threads == 0
        if pieces >= self.block.threads:
            return nullcontext()
        return b.if_(b.cmpi("ult", b.index(self.block.thread), b.index(pieces)))

    def _at(self, first_term: Index, row: Point, column: Point) -> tuple[Index, Index]:
        """The line and the term of a piece."""
        b = self.block.b
        slow, fast = b.add(*row), b.add(*column)
        line, term = (slow, fast) if self.across else (fast, slow)
        return b.add(self.block.first[self.side], line), b.add(first_term, term)

    # Copies that threads do not wait for

    def copy(self, first_term: Index, stage: Index) -> None:
        """Begins the copies of a tile, of a factor that has them."""
        assert self.read is not None
        b = self.block.b
        with self._bringing(self.width), b.e.scope():
            for row, column in self._pieces(self.width):
                line, term = self._at(first_term, row, column)
                source, is_inside = self._source(line, term)
                read = None
                if is_inside is not None:
                    whole, nothing = b.index(self.width), b.index(0)
                    read = b.select(is_inside, whole, nothing)
                target = self.load(stage, row, column)
                b.copy_async(target, (b.e.buffers[self.read.source], source), self.width, read)

    def _source(self, line: Index, term: Index) -> tuple[list[Index], SSAValue | None]:
        """Indices of an element in memory, and whether it is one that counts; lines beyond the last are the last."""
        block, read = self.block, self.read
        assert read is not None
        b, limit = block.b, block.limits[self.side]
        step = 1 if self.across else self.width
        if limit % block.sides[self.side]:
            line = b.minimum(line, limit - step)
        tests = [(term, block.terms)] if block.has_partial_terms else []
        dims = block.indices((line, 0) if self.side == 0 else (0, line), term)
        mapped = b.e.mapped(read.map, dims, block.op.space)
        indices = [b.sub(i, start) for i, start in zip(mapped, read.offsets, strict=True)]
        tests += [(indices[dim], sizes_of(read.source)[dim]) for dim in read.padded]
        is_inside: SSAValue | None = None
        for index, size in tests:
            test = b.cmpi("ult", b.index(index), b.index(size))
            is_inside = test if is_inside is None else b.andi(is_inside, test)
        return indices, is_inside

    # Elements that threads compute

    @property
    def _is_transposed(self) -> bool:
        """Whether threads transpose bytes: what is a row of the tile is across the rows of memory."""
        aligned = self.block.limits[self.side] % _PATCH == 0
        return self.layout.swizzle == FOURS and aligned and self.layout.slow >= _PATCH * _PATCHES[0]

    @property
    def _width(self) -> int:
        """Neighbours that a thread computes: a unit, or one where they do not start at multiples of that."""
        width, block = self.layout.unit, self.block
        if self.layout.swizzle == FOURS:
            width = _PATCH  # what is brought across the rows of memory is stored by so many
        count = block.terms if self.across else block.limits[self.side]
        return 1 if count % width else width

    def _patches(self) -> Iterator[tuple[Index, Index]]:
        """Lines and terms at which the square patches begin that a thread transposes.

        Eight threads have patches beside each other in memory, and four such groups those of one unit of the tile.
        """
        b, (down, across) = self.block.b, _PATCHES
        groups = self.layout.slow // (_PATCH * down)
        count = groups * self.layout.fast // (_PATCH * across)
        warps = self.block.threads // (down * across)
        lane, warp = (
            b.rem(self.block.thread, down * across),
            b.div(self.block.thread, down * across),
        )
        for part in range(0, count, warps):
            number = b.rem(b.add(warp, part), count)
            line = b.add(b.rem(lane, down), b.mul(b.rem(number, groups), down))
            term = b.add(b.div(lane, down), b.mul(b.div(number, groups), across))
            yield b.mul(line, _PATCH), b.mul(term, _PATCH)

    def fetch(self, first_term: Index) -> list[Value]:
        """The elements of a tile that the thread brings."""
        b, first = self.block.b, self.block.first[self.side]
        if self._is_transposed:
            return [
                value
                for line, term in self._patches()
                for more in range(_PATCH)
                for value in self._factors(
                    b.add(first, line), b.add(first_term, b.add(term, more)), _PATCH, across=False
                )
            ]
        return [
            value
            for row, column in self._pieces(self._width)
            for value in self._factors(
                *self._at(first_term, row, column), self._width, across=self.across
            )
        ]

    def store(self, values: Sequence[Value], stage: Index) -> None:
        """Stores fetched elements."""
        rest = iter(values)
        if self._is_transposed:
            for line, term in self._patches():
                patch = [next(rest) for _ in range(_PATCH * _PATCH)]
                for more in range(_PATCH):
                    self._store_row(patch[more::_PATCH], stage, (line, more), (term, 0))
            return
        with self._bringing(self._width):
            for row, column in self._pieces(self._width):
                self._store_row([next(rest) for _ in range(self._width)], stage, row, column)

    def _store_row(self, values: Sequence[Value], stage: Index, row: Point, column: Point) -> None:
        b = self.block.b
        buffer, (at, first) = self.load(stage, row, column)
        for lane, (value,) in enumerate(values):
            b.store(to_memory(b, value, self.element), buffer, (at, b.add(first, lane)))

    def zeros(self) -> list[Value]:
        """As many zeros as a thread fetches elements."""
        if self._is_transposed:
            count = len(list(self._patches())) * _PATCH * _PATCH
        else:
            count = len(list(self._pieces(self._width))) * self._width
        return [zero_element(self.block.b.e.elements(), self.element)] * count

    def _factors(self, line: Index, term: Index, count: int, *, across: bool) -> list[Value]:
        """Elements that follow one another, along terms or lines, as those of the last ones beyond them; beyond the
        last term zeros count."""
        block, side = self.block, self.side
        b, e, op = block.b, block.b.e, block.op
        result = factors_of(op)[side]
        terms, lines = (count, 1) if across else (1, count)
        test = None
        if block.has_partial_terms:
            test = b.cmpi("ult", b.index(term), b.index(block.terms))
            term = b.minimum(term, block.terms - terms)
        if block.limits[side] % block.sides[side]:
            line = b.minimum(line, block.limits[side] - lines)
        values: list[Value] = []
        for lane in range(count):
            at = (line, b.add(term, lane)) if across else (b.add(line, lane), term)
            # The other factor's line says nothing here.
            dims = block.indices((at[0], 0) if side == 0 else (0, at[0]), at[1])
            inputs = factor_inputs(e, op, dims, inputs_of_factor(op, side))
            (value,) = e.values(op.body, inputs, dims, [result])
            values.append(convert(b, value, array(result).element_type, self.element))
        if test is None:
            return values
        zero = zero_element(e.elements(), self.element)
        return [
            tuple(b.select(test, v, w) for v, w in zip(value, zero, strict=True))
            for value in values
        ]
