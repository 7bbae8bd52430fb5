"""Operations that only say where elements go: moves of registers by a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import i32

from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, lists_of
from mlirhlo.mosaic.pipeline.building import attribute, element_of, is_vector, vector_type
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.registers.moving import Part, moved
from mlirhlo.mosaic.pipeline.registers.state import (
    Registers,
    flat,
    grid_of,
    indices_of,
    is_float,
    layout_out,
    register_type,
    typed,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


def explicit(steps: Sequence[int], implicit: tuple[int, ...]) -> list[int]:
    """What is known of each dimension, with 0 for those that a layout puts back."""
    found = list(steps)
    if implicit == (-2,):
        return [*found[:-1], 0, *found[-1:]]
    return [*found, *(0 for _ in implicit)]


def numbered(type_: Attribute) -> Any:
    """The row-major number of each element."""
    shape = shape_in(type_)
    return np.arange(int(np.prod(shape, dtype=int))).reshape(shape)


def part_of(op: Operation, state: Registers, at: int) -> Part:
    """An operand as the source of a move."""
    registers, layout = state.operand(at)
    return Part(registers, layout, op.operands[at].type)


def _move(op: Operation, state: Registers, source: Any) -> Made:
    type_ = op.results[0].type
    return [moved(state, [part_of(op, state, 0)], source, type_, layout_out(op))]


def same(op: Operation, state: Registers) -> Made:
    """`relayout`, `reshape`, `assume_layout`: elements keep their row-major numbers."""
    return _move(op, state, numbered(op.operands[0].type))


def broadcast(op: Operation, state: Registers) -> Made:
    """A scalar is one register; dimensions of a vector are repeated."""
    source, type_, layout = op.operands[0], op.results[0].type, layout_out(op)
    if not is_vector(source.type):
        made = state.emit("vector.broadcast", (source,), register_type(layout, type_))
        return [[made] * grid_of(layout, type_, op).count]
    return _move(op, state, np.broadcast_to(numbered(source.type), shape_in(type_)))


def extract(op: Operation, state: Registers) -> Made:
    """A part of the leading dimensions, or one element."""
    position = integers_of(op, "static_position") or ()
    if len(op.operands) > 1:
        raise cannot(op, "at a dynamic place", "load the element from a reference")
    source = numbered(op.operands[0].type)[position]
    if is_vector(op.results[0].type):
        return _move(op, state, source)
    # One element: turned to the first place of a register.
    part = part_of(op, state, 0)
    layout = VectorLayout(part.layout.bits, (0, 0), part.layout.tiling)
    element = element_of(part.type)
    (register,) = moved(state, [part], [[source]], vector_type((1, 1), element), layout)
    rank = len(shape_in(register.type))
    places = {"static_position": attribute(f"array<i64: {', '.join('0' * rank)}>")}
    return [[state.emit("vector.extract", (register,), op.results[0].type, places)]]


def extract_strided_slice(op: Operation, state: Registers) -> Made:
    """A box."""
    offsets, sizes, strides = (_numbers(op, name) for name in ("offsets", "sizes", "strides"))
    source = numbered(op.operands[0].type)
    ranges = zip(offsets, sizes, strides, strict=True)
    return _move(op, state, source[tuple(slice(o, o + n * s, s) for o, n, s in ranges)])


def _numbers(op: Operation, name: str) -> tuple[int, ...]:
    found = attribute_of(op, name)
    assert found is not None
    return integers_of(op, name) or lists_of(found)[0]


def concatenate(op: Operation, state: Registers) -> Made:
    """Vectors on end."""
    parts = [part_of(op, state, at) for at in range(len(op.operands))]
    numbers: list[Any] = []
    begin = 0
    for part in parts:
        number = numbered(part.type)
        numbers.append(number + begin)
        begin += number.size
    source = np.concatenate(numbers, axis=integer_of(op, "dimension"))
    return [moved(state, parts, source, op.results[0].type, layout_out(op))]


def repeat(op: Operation, state: Registers) -> Made:
    """The vector several times on end."""
    source = [numbered(op.operands[0].type)] * integer_of(op, "times", 1)
    return _move(op, state, np.concatenate(source, axis=integer_of(op, "dimension")))


def transpose(op: Operation, state: Registers) -> Made:
    """Rows move as they are; one dimension becomes the last by squares of 128 lanes."""
    order = list(integers_of(op, "permutation") or ())
    rank = len(order)
    source, result = op.operands[0].type, op.results[0].type
    shape = shape_in(source)
    part = part_of(op, state, 0)
    final = layout_out(op)
    is_narrow = shape[order[-1]] == 1 or shape[-1] == 1
    if order[-1] == rank - 1 or is_narrow:
        return [moved(state, [part], numbered(source).transpose(order), result, final)]
    # The dimension that shall be last stands beside the last one, and they change places.
    last = order[-1]
    beside = [*(dim for dim in range(rank - 1) if dim != last), last, rank - 1]
    words = VectorLayout(32, (0, 0), (SUBLANES, LANES))
    type_ = vector_type(
        [shape[dim] for dim in beside], element_of(source) if part.layout.bits == 32 else i32
    )
    if str(element_of(type_)) == "i1":
        raise cannot(op, "of a mask", "transpose what it is computed from")
    numbers = numbered(source).transpose(beside)
    part = Part(moved(state, [part], numbers, type_, words), words, type_)
    made = _squares(op, state, part)
    now = [*beside[:-2], rank - 1, last]
    numbers = numbered(made.type).transpose([now.index(dim) for dim in order])
    return [moved(state, [made], numbers, result, final)]


def _squares(op: Operation, state: Registers, part: Part) -> Part:
    """The last two dimensions of a vector of words, transposed square by square."""
    shape, layout = shape_in(part.type), part.layout
    rows, lanes = shape[-2:]
    element = element_of(part.type)
    result = vector_type((*shape[:-2], lanes, rows), element)
    old, new = grid_of(layout, part.type, op).shape, grid_of(layout, result, op).shape
    whole = vector_type((LANES, LANES), element)
    a_side = LANES // SUBLANES
    found: dict[tuple[int, ...], SSAValue] = {}
    nothing = state.splat("0.0" if is_float(element) else "0", typed(element, 1))
    for *lead, high in indices_of((*shape[:-2], -(-rows // LANES))):
        for wide in range(old[-1]):
            given = [
                part.registers[flat((*lead, at, wide), old)] if at < old[-2] else nothing
                for at in range(high * a_side, (high + 1) * a_side)
            ]
            square = state.rolled(given, whole, layout)
            turned_square = state.emit(
                "tpu.transpose", (square,), whole, {"permutation": attribute("array<i64: 1, 0>")}
            )
            for at, register in enumerate(state.of(turned_square, layout)):
                found[(*lead, wide * a_side + at, high)] = register
    return Part([found[index] for index in indices_of(new)], layout, result)


def gather(op: Operation, state: Registers) -> Made:
    """Rows of a dimension at fixed indices."""
    indices = integers_of(op, "indices") or ()
    dim = integer_of(op, "dimension")
    return _move(op, state, np.take(numbered(op.operands[0].type), indices, axis=dim))


def iota(op: Operation, state: Registers) -> Made:
    """Counts of lanes and sublanes of a register, and where the register begins."""
    type_, layout = op.results[0].type, layout_out(op)
    shape = shape_in(type_)
    # Words first: narrow counts are packed.
    plain = VectorLayout(32, (0, 0), (SUBLANES, LANES), layout.implicit)
    counted = layout if layout.bits == 32 and layout.tiling == plain.tiling else plain
    words = vector_type(shape, i32)
    steps = [0] * len(shape)
    step = 1
    for dim in reversed(integers_of(op, "dimensions") or ()):
        steps[dim] = step
        step *= shape[dim]
    sizes = explicit(steps, counted.implicit)
    registers: list[SSAValue] = []
    grid = grid_of(counted, words, op)
    for *lead, high, wide in indices_of(grid.shape):
        begin = sum(at * by for at, by in zip(lead, sizes, strict=False))
        begin += (high * SUBLANES - (counted.offsets[0] or 0)) * sizes[-2]
        begin += (wide * LANES - (counted.offsets[1] or 0)) * sizes[-1]
        value: SSAValue | None = None
        for dim, by in enumerate(sizes[-2:]):
            if by == 0:
                continue
            dims = {"dimensions": attribute(f"array<i32: {dim}>")}
            count = state.emit("tpu.iota", (), word_type(), dims)
            if by != 1:
                count = state.emit(
                    "arith.muli", (count, state.splat(str(by), word_type())), word_type()
                )
            value = (
                count if value is None else state.emit("arith.addi", (value, count), word_type())
            )
        if value is None:
            value = state.splat(str(begin), word_type())
        elif begin:
            value = state.emit(
                "arith.addi", (value, state.splat(str(begin), word_type())), word_type()
            )
        registers.append(value)
    if counted == layout:
        return [registers]
    return [moved(state, [Part(registers, counted, words)], numbered(words), type_, layout)]
