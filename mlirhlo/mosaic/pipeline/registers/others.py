"""What is neither moved nor computed element by element: random bits, rounding by them, words put together,
logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32

from mlirhlo.dialects.tpu.attributes import PackFormatAttr
from mlirhlo.mosaic.attributes import attribute_of, integer_of, name_of
from mlirhlo.mosaic.pipeline.building import attribute, element_of, is_vector, vector_type
from mlirhlo.mosaic.pipeline.registers.elementwise import attributes_of
from mlirhlo.mosaic.pipeline.registers.moving import interleaved, moved
from mlirhlo.mosaic.pipeline.registers.shapes import numbered, part_of
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    Rule,
    grid_of,
    layout_out,
    register_type,
    typed,
    word_type,
)
from mlirhlo.mosaic.target.tiling import shape_in, width_in_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation, SSAValue

    Made = Sequence[Sequence[SSAValue]]


def _random_bits(op: Operation, state: Registers) -> Made:
    """The generator gives a register at a time."""
    layout, type_ = layout_out(op), op.results[0].type
    register, count = register_type(layout, type_), grid_of(layout, type_, op).count
    return [[state.emit(name_of(op), (), register) for _ in range(count)]]


def _rounded(op: Operation, state: Registers) -> Made:
    """Random rounding leaves the bits in the low part of a word."""
    (numbers, have), (random, _) = state.operand(0), state.operand(1)
    result = op.results[0].type
    target = {"dst_type": element_of(result)}
    made = [
        state.emit("tpu.stochastic_convert_elementwise", pair, word_type(), target)
        for pair in zip(numbers, random, strict=True)
    ]
    words = vector_type(shape_in(result), i32)
    part = Part(made, have, words)
    return [moved(state, [part], numbered(words), result, layout_out(op))]


def _side_by_side(op: Operation, state: Registers) -> Made:
    """The narrow elements of a word come from registers of their own."""
    element = attribute_of(op, "target_type")
    assert element is not None
    sources = [state.operand(at)[0] for at in range(len(op.operands))]
    narrow = typed(element, len(sources))
    words = zip(*sources, strict=True)
    return [[state.words(interleaved(state, parts, narrow)) for parts in words]]


def _one_of_word(op: Operation, state: Registers) -> Made:
    """The narrow element at one place of each word."""
    element, result = attribute_of(op, "source_type"), op.results[0].type
    assert element is not None
    narrow, register = (
        typed(element, 32 // width_in_bits(str(element))),
        typed(element_of(result), 1),
    )
    places = {
        "index": attribute(f"{integer_of(op, 'index')} : i32"),
        "pack_format": PackFormatAttr("interleaved"),
    }
    made = [
        state.emit("tpu.unpack_subelements", (state.cast(words, narrow),), register, places)
        for words in state.operand(0)[0]
    ]
    return [made]


def _told(op: Operation, state: Registers) -> Made:
    """What is logged is the vector, put together again."""
    operands: list[SSAValue] = []
    for at, value in enumerate(op.operands):
        if is_vector(value.type):
            part = part_of(op, state, at)
            operands.append(state.rolled(part.registers, part.type, part.layout))
        else:
            operands.append(value)
    state.effect(name_of(op), operands, attributes_of(op))
    return []


OTHERS: dict[str, Rule] = {
    "tpu.prng_random_bits": _random_bits,
    "tpu.stochastic_convert": _rounded,
    "tpu.pack_elementwise": _side_by_side,
    "tpu.unpack_elementwise": _one_of_word,
    "tpu.log": _told,
    "tpu.trace_value": _told,
}
