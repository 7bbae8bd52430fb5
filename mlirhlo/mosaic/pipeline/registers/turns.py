"""Rotations and lookups by what is only known when the kernel runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import i1, i32

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of
from mlirhlo.mosaic.pipeline.building import attribute, element_of, vector_type
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.registers.moving import moved
from mlirhlo.mosaic.pipeline.registers.shapes import numbered, part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    flat,
    grid_of,
    indices_of,
    layout_out,
    mask_type,
    register_type,
    word_type,
)
from mlirhlo.mosaic.target.divisible import constant_of
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


def in_words(state: Registers, part: Part) -> Part:
    """The vector's bits as words, in whole registers."""
    shape = shape_in(part.type)
    layout = VectorLayout(32, (0, 0), (SUBLANES, LANES), part.layout.implicit)
    type_ = vector_type(shape, i32)
    return Part(moved(state, [part], numbered(type_), type_, layout), layout, type_)


def from_words(op: Operation, state: Registers, registers: Sequence[SSAValue], words: Part) -> Made:
    """The result of which the words are the bits."""
    made = Part(registers, words.layout, words.type)
    return [moved(state, [made], numbered(made.type), op.results[0].type, layout_out(op))]


def rotate(op: Operation, state: Registers) -> Made:
    """A known amount is a move; others turn registers, and the ring of registers, step by step."""
    type_ = op.results[0].type
    shape, dim = shape_in(type_), integer_of(op, "dimension")
    amount = constant_of(op.operands[1]) if len(op.operands) > 1 else integer_of(op, "amount")
    along = attribute_of(op, "stride_dimension")
    source = np.indices(shape)
    if along is not None:
        source[dim] -= integer_of(op, "stride") * source[integer_of(op, "stride_dimension")]
    source[dim] = (source[dim] - (amount or 0)) % shape[dim]
    numbers = numbered(type_)[tuple(source)]
    part = part_of(op, state, 0)
    plain = VectorLayout(32, (0, 0), (SUBLANES, LANES))
    is_whole = part.layout == plain == layout_out(op) and str(element_of(type_)) != "i1"
    fills = [size % unit == 0 for size, unit in zip(shape[-2:], (SUBLANES, LANES), strict=False)]
    if amount is not None and along is None and is_whole and fills == [True, True]:
        return [_whole_turned(op, state, part, dim, amount % shape[dim])]
    if amount is not None:
        return [moved(state, [part], numbers, type_, layout_out(op))]
    if along is not None:
        # What each row turns by besides is known.
        part = Part(moved(state, [part], numbers, type_, part.layout), part.layout, type_)
    words = in_words(state, part)
    wanted = _Amount(state, op.operands[1])
    turned = _turned(state, words, dim, shape[dim], wanted, op)
    return from_words(op, state, turned, words)


def _whole_turned(
    op: Operation, state: Registers, part: Part, dim: int, amount: int
) -> list[SSAValue]:
    """Whole registers: turned each by what is less than one, picked from two neighbours, and renamed."""
    grid = grid_of(part.layout, part.type, op).shape
    unit = (1,) * (len(grid) - 2) + (SUBLANES, LANES)
    state.number(amount)
    inside = amount % unit[dim]
    axis = dim - len(grid) + 2
    seen = list(part.registers)
    if unit[dim] > 1:
        state.number(inside)
    if inside:
        seen = [state.cast(register, word_type()) for register in seen]
        if axis == 0:
            state.number(inside)
        order = sorted(indices_of(grid), key=lambda at: at[dim])
        made = {at: state.turned(seen[flat(at, grid)], inside, axis) for at in order}
        bounds = [state.index(end) for end in (0, 0, SUBLANES, LANES, inside)]
        bounds[2 + axis] = bounds.pop()
        mask = state.emit("tpu.create_mask", bounds, mask_type())
        picked: dict[tuple[int, ...], SSAValue] = {}
        for number in (*range(grid[dim] - 1, 0, -1), 0):
            for at in (at for at in order if at[dim] == number):
                before = (*at[:dim], (number - 1) % grid[dim], *at[dim + 1 :])
                picked[at] = state.emit("arith.select", (mask, made[before], made[at]), word_type())
        seen = [picked[at] for at in indices_of(grid)]
    type_ = register_type(part.layout, part.type)
    seen = [state.cast(register, type_) for register in seen]
    by = amount // unit[dim]
    sources = [(*at[:dim], (at[dim] - by) % grid[dim], *at[dim + 1 :]) for at in indices_of(grid)]
    return [seen[flat(at, grid)] for at in sources]


class _Amount:
    """Scalars computed from an amount."""

    def __init__(self, state: Registers, amount: SSAValue) -> None:
        self.state, self.amount = state, amount

    def binary(self, name: str, left: SSAValue, right: int) -> SSAValue:
        """`left op right`."""
        return self.state.emit(name, (left, self.state.number(right)), i32)

    def modulo(self, size: int) -> SSAValue:
        """From 0 to before `size`."""
        rest = self.binary("arith.remsi", self.amount, size)
        return self.binary("arith.remsi", self.binary("arith.addi", rest, size), size)

    def is_true(self, predicate: int, left: SSAValue, right: int) -> SSAValue:
        """A comparison: 1 is ne, 2 slt, 5 sge."""
        attributes = {"predicate": attribute(f"{predicate} : i64")}
        return self.state.emit("arith.cmpi", (left, self.state.number(right)), i1, attributes)


def _turned(
    state: Registers, words: Part, dim: int, size: int, wanted: _Amount, op: Operation
) -> list[SSAValue]:
    """Registers of words turned along a dimension by less than its size."""
    grid = grid_of(words.layout, words.type, op).shape
    axis = dim + len(grid) - len(shape_in(words.type))
    unit = {len(grid) - 2: SUBLANES, len(grid) - 1: LANES}.get(axis, 1)
    amount = wanted.modulo(size)
    ring = grid[axis] * unit
    result = list(words.registers)
    lines = [index for index in indices_of(grid) if index[axis] == 0]
    back = wanted.binary("arith.addi", amount, ring - size) if ring != size else amount
    for line in lines:
        at = [flat((*line[:axis], number, *line[axis + 1 :]), grid) for number in range(grid[axis])]
        registers = [words.registers[number] for number in at]
        whole = _ring(state, registers, amount, unit, wanted, axis == len(grid) - 1)
        if ring != size:
            # Before the amount comes the end of the array, not that of its last register.
            rest = _ring(state, registers, back, unit, wanted, axis == len(grid) - 1)
            position = state.emit(
                "tpu.iota",
                (),
                word_type(),
                {"dimensions": attribute(f"array<i32: {0 if unit == SUBLANES else 1}>")},
            )
            for number in range(grid[axis]):
                limit = wanted.binary("arith.subi", amount, number * unit)
                mask = _below(state, position, limit)
                whole[number] = state.emit(
                    "arith.select", (mask, rest[number], whole[number]), word_type()
                )
        for place, register in zip(at, whole, strict=True):
            result[place] = register
    return result


def _below(state: Registers, position: SSAValue, limit: SSAValue) -> SSAValue:
    """Where the position is below a scalar."""
    many = state.emit("vector.broadcast", (limit,), word_type())
    return state.emit(
        "arith.cmpi", (position, many), mask_type(), {"predicate": attribute("2 : i64")}
    )


def _ring(
    state: Registers,
    registers: list[SSAValue],
    amount: SSAValue,
    unit: int,
    wanted: _Amount,
    is_lanes: bool,
) -> list[SSAValue]:
    """Registers side by side, turned as one ring: first in each, then from one to the next."""
    count = len(registers)
    whole, rest = amount, None
    if unit > 1:
        rest = wanted.binary("arith.remsi", amount, unit)
        whole = wanted.binary("arith.divsi", amount, unit)
        dims = {"dimension": attribute(f"{int(is_lanes)} : si32")}
        turned = [
            state.emit("tpu.dynamic_rotate", (register, rest), word_type(), dims)
            for register in registers
        ]
        if count > 1:
            dims = {"dimensions": attribute(f"array<i32: {int(is_lanes)}>")}
            position = state.emit("tpu.iota", (), word_type(), dims)
            mask = _below(state, position, rest)
            turned = [
                state.emit("arith.select", (mask, turned[at - 1], turned[at]), word_type())
                for at in range(count)
            ]
        registers = turned
    step = 1
    while step < count:
        bit = wanted.binary("arith.remsi", wanted.binary("arith.divsi", whole, step), 2)
        takes = wanted.is_true(1, bit, 0)
        registers = [
            state.emit(
                "arith.select", (takes, registers[(at - step) % count], registers[at]), word_type()
            )
            for at in range(count)
        ]
        step *= 2
    return registers


def gather(op: Operation, state: Registers) -> Made:
    """Along one dimension, the element at an index of the other operand."""
    dims = integers_of(op, "dimensions") or ()
    type_ = op.results[0].type
    shape = shape_in(type_)
    if len(dims) != 1:
        raise cannot(op, "along several dimensions at once", "gather along one dimension")
    dim, rank = dims[0], len(shape)
    size = shape_in(op.operands[0].type)[dim]
    (given, have), (wanted_at, at_layout) = state.operand(0), state.operand(1)
    words_of = VectorLayout(32, (0, 0), (SUBLANES, LANES))
    if (
        {have, at_layout, layout_out(op)} == {words_of}
        and rank == 2
        and size == (SUBLANES, LANES)[dim]
    ):
        # One register along the dimension: it is looked up in as it is.
        inner = {"dimensions": attribute(f"array<i32: {dim}>")}
        pairs = zip(given, wanted_at, strict=True)
        return [[state.emit("tpu.dynamic_gather", pair, pair[0].type, inner) for pair in pairs]]
    words, index = (in_words(state, part_of(op, state, at)) for at in (0, 1))
    old = grid_of(words.layout, words.type, op).shape
    new = grid_of(index.layout, index.type, op).shape
    axis = dim + len(new) - rank
    unit = {len(new) - 2: SUBLANES, len(new) - 1: LANES}.get(axis, 1)
    inner = {"dimensions": attribute(f"array<i32: {int(axis == len(new) - 1)}>")}
    found: list[SSAValue] = []
    for at, wanted in zip(indices_of(new), index.registers, strict=True):
        place = _modulo(state, wanted, size)
        lane = place
        if unit > 1 and old[axis] > 1:
            lane = _binary(state, "arith.remsi", place, unit)
        number = place if unit == 1 else _binary(state, "arith.divsi", place, unit)
        result: SSAValue | None = None
        for block in range(old[axis]):
            source = words.registers[flat((*at[:axis], block, *at[axis + 1 :]), old)]
            value = (
                source
                if unit == 1
                else state.emit("tpu.dynamic_gather", (source, lane), word_type(), inner)
            )
            if result is None:
                result = value
                continue
            here = state.emit(
                "arith.cmpi",
                (number, state.splat(str(block), word_type())),
                mask_type(),
                {"predicate": attribute("0 : i64")},
            )
            result = state.emit("arith.select", (here, value, result), word_type())
        assert result is not None
        found.append(result)
    taken = Part(found, index.layout, index.type)
    return from_words(op, state, found, taken)


def _binary(state: Registers, name: str, left: SSAValue, right: int) -> SSAValue:
    return state.emit(name, (left, state.splat(str(right), word_type())), word_type())


def _modulo(state: Registers, index: SSAValue, size: int) -> SSAValue:
    """From 0 to before `size`, also of negative ones; registers do that for their own sizes."""
    if size in (SUBLANES, LANES):
        return index
    rest = _binary(state, "arith.remsi", index, size)
    return _binary(state, "arith.remsi", _binary(state, "arith.addi", rest, size), size)
