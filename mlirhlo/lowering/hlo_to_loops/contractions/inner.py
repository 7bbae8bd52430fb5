"""Contractions of few rows whose right operand's memory runs along the depth: matrix times vector,
vector times vector. Lanes go along the depth, the right operand is not packed, and lanes are added in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects import arith as xarith
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import FunctionBuilder, Index, Loop, memref_of, vector_of
from mlirhlo.lowering.hlo_to_loops.contractions.finish import Finisher
from mlirhlo.lowering.hlo_to_loops.contractions.function import KernelFunction, shares
from mlirhlo.lowering.hlo_to_loops.contractions.operands import Reader, places_of
from mlirhlo.lowering.hlo_to_loops.contractions.packing import runs_along_depth
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction
from mlirhlo.lowering.hlo_to_loops.elements import memory_type, register_type

FEW_ROWS = 4
"""Rows that are not worth packing the right operand for."""
_SUMS = 8
"""Vectors of sums at a time."""
_LONG = 4
"""Vectors along the depth that are worth adding lanes for, where tiles would be mostly empty."""


def inner_of(c: Contraction, lanes: int) -> Contraction | None:
    """The contraction, or `swapped` if it has few columns, where these kernels are the right ones for it."""
    if _is_inner(c) and runs_along_depth(c.lhs, c):
        return c
    turned = c.swapped()
    is_few = 1 < c.count(c.columns) <= FEW_ROWS < c.count(c.rows)
    if is_few and _is_inner(turned) and len(c.rows) == 1 and not c.batch:
        return turned if c.sizes[c.depth[0]] >= _LONG * lanes else None
    return None


def _is_inner(c: Contraction) -> bool:
    a = c.arithmetic
    return (
        c.count(c.rows) <= FEW_ROWS
        and len(c.rows) <= 1
        and len(c.depth) == 1
        and a.parts == 1
        and a.group == 1
        and runs_along_depth(c.rhs, c)
    )


def inner_kernel(function: KernelFunction, c: Contraction, lanes: int) -> FuncOp:
    """The function, filled and finished, of what `inner_of` gives."""
    b, memory, buffers = function.b, function.memory, function.buffers
    finisher = Finisher(function, c, lanes)
    blocks = -(-c.count(c.columns) // lanes)
    count = c.count(c.batch) * blocks
    depth = c.sizes[c.depth[0]]
    ns = 0.1 * count * lanes * c.count(c.rows) * depth + 20 * count
    left = Reader.of(b, c, c.lhs, c.arithmetic.lhs, memory, buffers)
    right = Reader.of(b, c, c.rhs, c.arithmetic.rhs, memory, buffers)
    if not runs_along_depth(c.lhs, c):
        left = _along_depth(b, c, left, lanes)
    with shares(b, count, ns) as (low, high):
        totals = b.scratch([c.count(c.rows) * lanes], register_type(c.arithmetic.total))
        flat = MemRefType(register_type(c.arithmetic.total), [DYNAMIC_INDEX])
        room = b.emit(memref.CastOp, [totals], flat)
        with b.loop(low, high) as task:
            batch = places_of(b, c, c.batch, b.div(task, blocks))
            first = b.mul(b.rem(task, blocks), lanes)
            here = b.sub(c.count(c.columns), first)
            width = b.integer(xarith.MinSIOp, b.index(here), b.index(lanes))
            _Sums(b, c, left.at(batch), right.at(batch), lanes, room).block(first, width)
            finisher.finish(batch, 0, c.count(c.rows), first, width, room, 0, lanes)
    return b.finish()


def _along_depth(b: FunctionBuilder, c: Contraction, left: Reader, lanes: int) -> Reader:
    """A copy of the left operand's few rows, one after the other."""
    (row,), (axis,), rows = c.rows, c.depth, c.count(c.rows)
    size, element = c.sizes[axis], c.arithmetic.lhs
    room = b.workspace(rows * size * element.byte_size)
    flat = b.emit(memref.ViewOp, [room, b.index(0)], memref_of(memory_type(element), rows * size))
    for number in range(rows):
        source = left.at({row: number})

        def copy(place: Index, count: int | None, of: Reader = source, at: int = number) -> None:
            (value,) = of.load(axis, place, lanes, count)
            mask = None if count is None else b.mask(b.index(count), lanes)
            b.vector_store(value, flat, [b.add(place, at * size)], mask)

        rest = size % lanes
        with b.loop(0, size - rest, lanes) as place:
            copy(place, None)
        if rest:
            copy(size - rest, rest)
    factor = replace(c.lhs, shape=ArrayShape(element, (rows * size,)), is_buffer=True)
    strides = {row: size, axis: 1}
    return replace(left, factor=factor, base=0, strides=strides, flat=flat, array=None)


class _Sums:
    """The sums of a block of columns."""

    def __init__(
        self,
        b: FunctionBuilder,
        c: Contraction,
        left: Reader,
        right: Reader,
        lanes: int,
        room: SSAValue,
    ) -> None:
        self.b, self.c, self.lanes, self.room = b, c, lanes, room
        self.left, self.right = left, right
        self.rows = c.count(c.rows)

    def block(self, first: Index, width: Index) -> None:
        """`room[row * lanes + column]` for `width` columns from `first`."""
        b, most = self.b, max(1, _SUMS // self.rows)
        if not self.c.columns:
            self._columns(0, first, 1)
            return
        whole = b.mul(b.div(width, most), most)
        with b.loop(0, whole, most) as at:
            self._columns(at, b.add(first, at), most)
        if most > 1:
            with b.loop(whole, width) as at:
                self._columns(at, b.add(first, at), 1)

    def _columns(self, at: Index, column: Index, count: int) -> None:
        b, c, lanes = self.b, self.c, self.lanes
        (axis,) = c.depth
        size = c.sizes[axis]

        def fixed(reader: Reader, axes: tuple[int, ...], place: Index) -> Reader:
            return reader.at(dict.fromkeys(axes, place))

        left = [fixed(self.left, c.rows, row) for row in range(self.rows)]
        right = [fixed(self.right, c.columns, b.add(column, n)) for n in range(count)]
        # Few sums take turns, so that none waits for the one before.
        turns = max(1, _SUMS // (self.rows * count))
        total = vector_of(register_type(c.arithmetic.total), lanes)
        sums: Sequence[SSAValue] = [b.constant(0, total)] * (turns * self.rows * count)
        step = turns * lanes
        whole = size - size % step
        if whole:
            with b.loop(0, whole, step, sums) as loop:
                made: list[SSAValue] = []
                for turn in range(turns):
                    place = b.add(loop.index, turn * lanes)
                    own = loop.carried[turn * self.rows * count :][: self.rows * count]
                    made += self._step(left, right, place, None, own)
                loop.carry(*made)
            sums = cast(Loop, loop).results
        merged = list(sums[: self.rows * count])
        for turn in range(1, turns):
            own = sums[turn * self.rows * count :][: self.rows * count]
            merged = [self._plus(x, y) for x, y in zip(merged, own, strict=True)]
        rest = whole + (size - whole) // lanes * lanes
        if rest > whole:
            with b.loop(whole, rest, lanes, merged) as loop:
                loop.carry(*self._step(left, right, loop.index, None, loop.carried))
            merged = list(cast(Loop, loop).results)
        if size > rest:
            merged = self._step(left, right, rest, size - rest, merged)
        for number, value in enumerate(merged):
            row, n = divmod(number, count)
            place = b.add(b.add(at, n), row * lanes)
            b.store(b.reduce("add", value), self.room, [place])

    def _step(
        self,
        left: Sequence[Reader],
        right: Sequence[Reader],
        place: Index,
        count: int | None,
        sums: Sequence[SSAValue],
    ) -> list[SSAValue]:
        (axis,) = self.c.depth
        x = [r.load(axis, place, self.lanes, count)[0] for r in left]
        y = [r.load(axis, place, self.lanes, count)[0] for r in right]
        pairs = [(u, v) for u in x for v in y]
        both = zip(pairs, sums, strict=True)
        return [plus_product(self.b, self.c, u, v, s) for (u, v), s in both]

    def _plus(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.addf(x, y) if self.c.arithmetic.total.is_float else self.b.addi(x, y)


def plus_product(
    b: FunctionBuilder, c: Contraction, x: SSAValue, y: SSAValue, total: SSAValue
) -> SSAValue:
    """`total + x * y` of real numbers, floats rounded once."""
    return b.fma(x, y, total) if c.arithmetic.total.is_float else b.addi(total, b.muli(x, y))
