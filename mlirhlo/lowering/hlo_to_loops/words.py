"""Complex numbers of 64 bits, bf16 and integers under a byte that an instruction only moves are moved as words.

    c64[300,1000] transpose(c64[1000,300] x)   =>   u64[300,1000] transpose(u64[1000,300] x)

Parts that are loaded one by one take two gathers, and twice the shuffles of a transpose. A single bf16 is
loaded by LLVM 22 as an f32 that is rounded, which loses subnormals. Integers of four or two bits have a byte
each; cut to their width and widened again between two shuffles, LLVM 22 selects instructions for ever.
Buffers are views of memory: they are to callers what they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.element_types import (
    BF16,
    C64,
    S2,
    S4,
    U2,
    U4,
    U8,
    U16,
    U64,
    PrimitiveType,
)
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import ComputationOp, ConstantOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import module_of

Computations: TypeAlias = "Mapping[str, ComputationOp]"

WORDS: Mapping[PrimitiveType, PrimitiveType] = {
    C64: U64,
    BF16: U16,
    **dict.fromkeys((S2, S4, U2, U4), U8),
}


def in_words(op: Instruction, computations: Computations) -> tuple[Instruction, Computations]:
    """An instruction, and the computations it calls, with words for numbers that are only moved; else the same."""
    if not any(_has_numbers(v) for v in (*op.inputs, op.output)):
        return op, computations
    called = [computations[name] for name in op.called_computations]
    every = [op, *(inner for computation in called for inner in computation.instructions)]
    if not _only_move(every) or any(inner.called_computations for inner in every[1:]):
        return op, computations
    block = Block()
    values: dict[SSAValue, SSAValue] = {}
    for number, value in enumerate(dict.fromkeys(op.inputs)):
        shape = _word_shape(shape_of(value.type))
        parameter = build.make("parameter", [], shape, {"parameter_number": integer(number)})
        build.append(block, parameter)
        values[value] = parameter.output
    new = _copy(op, values)
    build.append(block, new)
    copies = [_copy_computation(c) for c in called]
    # In a module, where it finds the computations it calls.
    module_of([*copies, build.close("words", block, new.output)])
    return new, {c.computation_name: c for c in copies}


def _has_numbers(value: SSAValue) -> bool:
    """Whether there are words for its elements, or for those of a part."""
    shape = shape_of(value.type)
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return any(isinstance(p, ArrayShape) and p.element_type in WORDS for p in parts)


def _only_move(instructions: Iterable[Instruction]) -> bool:
    """Whether those that read or write such numbers all move them, and no tuple holds tuples."""
    for op in instructions:
        shape = op.shape
        if isinstance(shape, TupleShape):
            if any(isinstance(part, TupleShape) for part in shape.elements):
                return False
        row = op.opcode
        # A fusion and a scatter leave elements what they are if the computations they call do.
        moves = row.name in ("fusion", "scatter") or (
            not row.collective and (row.moves or row.free)
        )
        if not moves and any(_has_numbers(v) for v in (*op.inputs, op.output)):
            return False
    return True


def _word_shape(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_word_shape, shape.elements)))
    if not isinstance(shape, ArrayShape) or shape.element_type not in WORDS:
        return shape
    return ArrayShape(WORDS[shape.element_type], shape.dimensions, shape.dynamic, shape.layout)


def _copy(op: Instruction, values: Mapping[SSAValue, SSAValue]) -> Instruction:
    properties: dict[str, Attribute] = dict(op.properties)
    properties.pop(CONTROL_PREDECESSORS, None)  # its last operands, which do not come along
    shape = _word_shape(op.shape)
    if isinstance(op, ConstantOp) and shape is not op.shape and op.literal is not None:
        made = cast(ArrayShape, shape)
        words = op.literal.array.view(made.element_type.dtype)
        properties["literal"] = LiteralAttr(Literal.from_array(made, words))
    operands = [values[v] for v in op.inputs]
    return build.create(type(op), operands, type_of(shape), properties, op.instruction_name)


def _copy_computation(computation: ComputationOp) -> ComputationOp:
    block = Block()
    values: dict[SSAValue, SSAValue] = {}
    for op in computation.instructions:
        new: Any = _copy(op, values)
        build.append(block, new)
        values[op.output] = new.output
    return build.close(computation.computation_name, block, values[computation.root.output])
