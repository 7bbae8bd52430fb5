"""Operations that only say where elements go: moves of registers by a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import i32

from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, lists_of
from mlirhlo.mosaic.pipeline.building import attribute, element_of, is_vector, vector_type
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.layouts import native
from mlirhlo.mosaic.pipeline.registers.moving import interleaved, moved, relaid
from mlirhlo.mosaic.pipeline.registers.shifting import concatenated, lanes_folded, lanes_spread
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    flat,
    grid_of,
    indices_of,
    integer_type,
    is_float,
    layout_out,
    packing_of,
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
    """`reshape`: elements keep their row-major numbers."""
    for plan in (lanes_folded, lanes_spread):
        found = plan(state, part_of(op, state, 0), op.results[0].type, layout_out(op))
        if found is not None:
            return [found]
    return _move(op, state, numbered(op.operands[0].type))


def relayout(op: Operation, state: Registers) -> Made:
    """The same vector in another layout; what differs along a dimension never lies as one of it."""
    part, wanted = part_of(op, state, 0), layout_out(op)
    sizes = wanted.tiled_dimensions(shape_in(part.type))
    for along, size, have, want in zip(
        ("rows", "lanes"), sizes, part.layout.offsets, wanted.offsets, strict=True
    ):
        if size > 1 and have is not None and want is None:
            raise cannot(
                op,
                f"its {along} differ and are wanted as one that stands for all",
                "a loop carries the value: begin it with loaded values, or compute it from what the "
                "round makes of another carried value",
            )
    return [relaid(state, part, wanted)]


def assume_layout(op: Operation, state: Registers) -> Made:
    """What comes into a region lies as is said."""
    return [state.unrolled(op.operands[0], layout_out(op), stated=False)]


def broadcast(op: Operation, state: Registers) -> Made:
    """A scalar is one register; dimensions of a vector are repeated."""
    source, type_, layout = op.operands[0], op.results[0].type, layout_out(op)
    if not is_vector(source.type):
        made = state.emit("vector.broadcast", (source,), register_type(layout, type_))
        return [[made] * grid_of(layout, type_, op).count]
    part = part_of(op, state, 0)
    have, shape = part.layout, shape_in(source.type)
    if (
        not have.implicit
        and not layout.implicit
        and have.tiling == layout.tiling
        and len(shape) > 1
    ):
        if shape[-1] == 1 and have.offsets[1] is not None and layout.offsets[1] is None:
            part = _lanes_alike(state, part)
        elif shape[-2] == 1 and have.offsets[0] is not None and layout.offsets[0] is None:
            part = _rows_alike(state, part)
    elements = np.broadcast_to(numbered(source.type), shape_in(type_))
    return [moved(state, [part], elements, type_, layout)]


def _lanes_alike(state: Registers, part: Part) -> Part:
    """The same vector with its one lane in all lanes, of all tiles."""
    layout = part.layout
    tile, lane = divmod(layout.offsets[1] or 0, LANES)
    index = state.splat(str(lane), word_type())
    inner = {"dimensions": attribute("array<i32: 1>")}
    made: list[SSAValue] = []
    for register in part.registers:
        words = state.emit("tpu.bitcast_vreg", (register,), word_type())
        words = state.emit("tpu.dynamic_gather", (words, index), word_type(), inner)
        made.append(state.emit("tpu.bitcast_vreg", (words,), register.type))
    if layout.tiles_a_register > 1:
        height = SUBLANES // layout.tiles_a_register
        made = [
            _rows(state, one, [tile * height + at % height for at in range(SUBLANES)])
            for one in made
        ]
    return Part(made, replace(layout, offsets=(layout.offsets[0], None)), part.type)


def _rows_alike(state: Registers, part: Part) -> Part:
    """The same vector in whole registers with its one row in all sublanes; elements fill their words first."""
    layout = part.layout
    is_mask = str(element_of(part.type)) == "i1"
    if layout.tiles_a_register > 1 or (is_mask and layout.bits < 32):
        return part
    sublane, place = divmod(layout.offsets[0] or 0, packing_of(layout))
    made = [
        _rows(state, _words_alike(state, register, layout.bits, place), [sublane] * SUBLANES)
        for register in part.registers
    ]
    return Part(made, replace(layout, offsets=(None, layout.offsets[1])), part.type)


def _words_alike(state: Registers, register: SSAValue, bits: int, place: int) -> SSAValue:
    """The register with the element at a place of each word in all places of it."""
    if bits == 32:
        return register
    word = word_type()
    low = state.emit("tpu.bitcast_vreg", (register,), word)
    low = state.emit("arith.shrui", (low, state.splat(str(place * bits), word)), word)
    if bits == 16:
        whole = interleaved(state, [low, low], typed(integer_type(bits), 2))
        return state.cast(whole, register.type)
    low = state.emit("arith.andi", (low, state.splat(str((1 << bits) - 1), word)), word)
    ones = sum(1 << at for at in range(0, 32, bits))
    low = state.emit("arith.muli", (low, state.splat(str(ones), word)), word)
    return state.cast(low, register.type)


def _rows(state: Registers, register: SSAValue, rows: Sequence[int]) -> SSAValue:
    """The register whose sublanes are those of another one."""
    places = {
        "indices": attribute(f"array<i32: {', '.join(map(str, rows))}>"),
        "dimension": attribute("0 : i32"),
    }
    return state.emit("tpu.gather", (register,), register.type, places)


def extract(op: Operation, state: Registers) -> Made:
    """A part of the leading dimensions, or one element."""
    position = integers_of(op, "static_position") or ()
    if len(op.operands) > 1:
        raise cannot(op, "at a dynamic place", "load the element from a reference")
    source = numbered(op.operands[0].type)[position]
    if is_vector(op.results[0].type):
        return _move(op, state, source)
    return [[_element(state, part_of(op, state, 0), int(source))]]


def _element(state: Registers, part: Part, number: int) -> SSAValue:
    """One element, by its row-major number: turned to the first place of its register."""
    assert state.op is not None
    packing = packing_of(part.layout)
    place = int(grid_of(part.layout, part.type, state.op).places.reshape(-1)[number])
    at, place = divmod(place, SUBLANES * LANES * packing)
    word, inner = divmod(place, packing)
    register = part.registers[at]
    for dim, (amount, size) in enumerate(((word // LANES, SUBLANES), (word % LANES, LANES))):
        register = state.turned(register, -amount % size, dim)
    position = [0, 0, inner] if packing > 1 else [0, 0]
    places = {"static_position": attribute(f"array<i64: {', '.join(map(str, position))}>")}
    return state.emit("vector.extract", (register,), element_of(part.type), places)


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
    dim, type_, layout = integer_of(op, "dimension"), op.results[0].type, layout_out(op)
    made = concatenated(state, parts, dim, type_, layout)
    if made is not None:
        return [made]
    numbers: list[Any] = []
    begin = 0
    for part in parts:
        number = numbered(part.type)
        numbers.append(number + begin)
        begin += number.size
    return [moved(state, parts, np.concatenate(numbers, axis=dim), type_, layout)]


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
    if order[-1] == rank - 1:
        return [moved(state, [part], numbered(source).transpose(order), result, final)]
    # The dimension that shall be last stands beside the last one, and they change places.
    last = order[-1]
    beside = [*(dim for dim in range(rank - 1) if dim != last), last, rank - 1]
    element = element_of(source)
    if str(element) == "i1":
        raise cannot(op, "of a mask", "transpose what it is computed from")
    squares = native(source, 16 if part.layout.bits == 16 else 32)
    type_ = vector_type(
        [shape[dim] for dim in beside], element if squares.bits == part.layout.bits else i32
    )
    numbers = numbered(source).transpose(beside)
    part = Part(moved(state, [part], numbers, type_, squares), squares, type_)
    made = _squares(op, state, part)
    now = [*beside[:-2], rank - 1, last]
    numbers = numbered(made.type).transpose([now.index(dim) for dim in order])
    return [moved(state, [made], numbers, result, final)]


def _squares(op: Operation, state: Registers, part: Part) -> Part:
    """The last two dimensions of a vector in whole registers, transposed square by square: of narrow elements
    as many squares side by side at once as a word has elements."""
    shape, layout = shape_in(part.type), part.layout
    rows, lanes = shape[-2:]
    element = element_of(part.type)
    result = vector_type((*shape[:-2], lanes, rows), element)
    old, new = grid_of(layout, part.type, op).shape, grid_of(layout, result, op).shape
    a_side, packing = LANES // layout.tiling[0], packing_of(layout)
    found: dict[tuple[int, ...], SSAValue] = {}
    for *lead, high in indices_of((*shape[:-2], -(-rows // LANES))):
        rows_of = range(high * a_side, (high + 1) * a_side)
        for wide in range(0, old[-1], packing):
            tiles = range(wide, min(wide + packing, old[-1]))
            nothing = state.splat("0.0" if is_float(element) else "0", typed(element, packing))
            given = [
                part.registers[flat((*lead, at, tile), old)] if at < old[-2] else nothing
                for at in rows_of
                for tile in tiles
            ]
            sizes = (LANES, len(tiles) * LANES)
            square = state.rolled(given, vector_type(sizes, element), layout)
            turn = {
                "permutation": attribute("array<i64: 1, 0>"),
                "out_layout": VectorLayoutAttr(layout),
            }
            turned = state.emit("tpu.transpose", (square,), vector_type(sizes[::-1], element), turn)
            for at, register in enumerate(state.unrolled(turned, layout, stated=False)):
                found[(*lead, wide * a_side + at, high)] = register
    return Part([found[index] for index in indices_of(new)], layout, result)


def gather(op: Operation, state: Registers) -> Made:
    """Rows of a dimension at fixed indices."""
    indices = integers_of(op, "indices") or ()
    dim = integer_of(op, "dimension")
    return _move(op, state, np.take(numbered(op.operands[0].type), indices, axis=dim))
