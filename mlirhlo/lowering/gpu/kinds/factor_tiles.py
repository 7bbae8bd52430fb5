"""Tiles of factors in shared memory, and how the threads of a block bring them there.

A tile stands as the factor does in memory: terms of a line beside each other, or lines of a term. Its rows are cut in
panels of 128 bytes, and the units of 16 bytes in a row are swizzled by the row's number, so that neither the threads
that store a row nor those that read a unit of eight rows ask one bank twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.structured import sizes_of
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array, factor_inputs
from mlirhlo.lowering.hlo_to_loops.elements import Value, to_memory
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.folds import zero_element
from mlirhlo.lowering.schedule.factor_reads import plain_read
from mlirhlo.lowering.schedule.matrix_products import inputs_of_factor

if TYPE_CHECKING:
    from mlirhlo.lowering.gpu.kinds.contraction import Block
    from mlirhlo.lowering.gpu.launches import LaunchBuilder

Point = tuple[Index, int]
"""An index as a part that is the thread's own and a constant, which have no bits in common."""
UNIT_BYTES = 16
PANEL_BYTES = 128


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a tile stand: `slow` rows of `fast` elements of so many bytes."""

    slow: int
    fast: int
    bytes: int
    is_paired: bool = False
    """Whether rows are swizzled by pairs of units, for threads that read one element of four rows each."""

    @property
    def panel(self) -> int:
        """Elements of a row that stand beside each other."""
        return min(PANEL_BYTES // self.bytes, self.fast)

    @property
    def unit(self) -> int:
        """Elements that are swizzled as a whole."""
        return UNIT_BYTES // self.bytes

    def swizzle(self, b: LaunchBuilder, row: Index) -> Index:
        """What the numbers of the units in a row are combined with, by exclusive or."""
        units = self.panel // self.unit
        if self.is_paired:
            return b.mul(b.rem(row, units // 2), 2)
        return b.rem(b.div(row, PANEL_BYTES // UNIT_BYTES // units), units)

    def offset(self, b: LaunchBuilder, slow: Point, fast: Point) -> Index:
        """The number of an element in the tile."""
        (row, more_rows), (column, more_columns) = slow, fast
        per_panel = self.slow * self.panel
        constant = more_columns // self.panel * per_panel + more_rows * self.panel
        unit = b.xor(b.div(b.rem(column, self.panel), self.unit), self.swizzle(b, row))
        fixed = b.xor(more_columns % self.panel // self.unit, self.swizzle(b, more_rows))
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


class FactorTile:
    """The tiles of one factor, a buffer for each stage."""

    def __init__(
        self, block: Block, side: int, element: PrimitiveType, *, across: bool, is_paired: bool
    ) -> None:
        """`across`: whether terms of a line stand beside each other, else lines of a term."""
        self.block, self.side, self.element, self.across = block, side, element, across
        lines, terms = block.sides[side], block.depth
        slow, fast = (lines, terms) if across else (terms, lines)
        self.layout = Layout(slow, fast, element.byte_size, is_paired)
        dims = block.product.terms if across else block.product.lines(side)
        read = plain_read(block.op, side)
        if read is not None and (
            read.source not in block.b.e.buffers or array(read.source).element_type is not element
        ):
            read = None
        space = block.op.space
        self.width = 0 if read is None or not dims else read.width(space, dims[-1])
        self.read = read if self.width else None
        """How copies that threads do not wait for bring it, if they can."""
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
    def _fetched(self) -> int:
        """Neighbours that a thread computes: a unit, or one where they do not start at multiples of that."""
        width, block = self.layout.unit, self.block
        count = block.terms if self.across else block.limits[self.side]
        return 1 if count % width else width

    def fetch(self, first_term: Index) -> list[Value]:
        """The elements of a tile that the thread brings."""
        e = self.block.b.e
        return [
            value
            for row, column in self._pieces(self._fetched)
            for value in self._factors(
                [
                    self._at(first_term, row, (column[0], column[1] + lane))
                    for lane in range(self._fetched)
                ],
                e.elements(),
            )
        ]

    def store(self, values: Sequence[Value], stage: Index) -> None:
        """Stores fetched elements."""
        b = self.block.b
        rest = iter(values)
        with self._bringing(self._fetched):
            for row, (column, _) in self._pieces(self._fetched):
                buffer, (at, first) = self.load(stage, row, (column, 0))
                for lane in range(self._fetched):
                    (value,) = next(rest)
                    b.store(to_memory(b, value, self.element), buffer, (at, b.add(first, lane)))

    def zeros(self) -> list[Value]:
        """As many zeros as a thread fetches elements."""
        pieces = len(list(self._pieces(self._fetched)))
        return [zero_element(self.block.b.e.elements(), self.element)] * pieces * self._fetched

    def _factors(self, places: Sequence[tuple[Index, Index]], elements: Any) -> list[Value]:
        """Elements at lines and terms, zeros outside; they are all outside or none is."""
        block, side, element = self.block, self.side, self.element
        b, e, op = block.b, block.b.e, block.op
        result = yielded(op.body)[side]

        def inside() -> list[Value]:
            values: list[Value] = []
            for line, term in places:
                # The other factor's line says nothing here.
                dims = block.indices((line, 0) if side == 0 else (0, line), term)
                inputs = factor_inputs(e, op, dims, inputs_of_factor(op, side))
                (value,) = e.values(op.body, inputs, dims, [result])
                values.append(convert(b, value, array(result).element_type, element))
            return values

        line, term = places[0]
        limits = [(line, block.limits[side], block.sides[side])]
        if block.has_partial_terms:
            limits.append((term, block.terms, block.terms + 1))
        test = block.is_inside(limits)
        if test is None:
            return inside()
        zero = zero_element(cast(Any, elements), element)
        return e.choose(test, inside, lambda: [zero for _ in places])
