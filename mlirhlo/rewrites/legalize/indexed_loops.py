"""Loops over rows of indices: what the expansions of gather and scatter share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.analysis.shape_inference import infer
from mlirhlo.dialects.hlo.attributes.base import integer, integers, string
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.common import slices
from mlirhlo.rewrites.computations import add_computation

S32, PRED = PRIMITIVE_TYPES["s32"], PRIMITIVE_TYPES["pred"]

Emit: TypeAlias = Callable[[Instruction], None]
Step: TypeAlias = "Callable[[Writer, Instruction, Sequence[Instruction]], Sequence[Instruction]]"
"""From the round's number and the state's arrays to those of the next round."""


def plain(type_: PrimitiveType, sizes: Sequence[int]) -> ArrayShape:
    """A static array in the default layout."""
    return ArrayShape(type_, tuple(sizes), (), default_layout(len(sizes)))


def shape_at(value: SSAValue | Instruction) -> ArrayShape:
    """Shape of an array value."""
    shape = value.shape if isinstance(value, Instruction) else shape_of(value.type)
    assert isinstance(shape, ArrayShape)
    return shape


class Writer:
    """Makes instructions, and hands each to where they go."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit

    def __call__(
        self,
        opcode: str,
        *operands: SSAValue | Instruction,
        shape: Shape | None = None,
        **properties: Attribute,
    ) -> Instruction:
        """A new instruction; its shape is inferred where none is given."""
        values = [v.output if isinstance(v, Instruction) else v for v in operands]
        if shape is None:
            shape = infer(opcode, [shape_of(v.type) for v in values], properties, {})
        made = make(opcode, values, shape, properties)
        self.emit(made)
        return made

    def scalar(self, type_: PrimitiveType, number: complex) -> Instruction:
        """A scalar constant; `number` is rounded to the type, to infinity where it is too large."""
        import numpy as np

        shape = ArrayShape(type_, ())
        with np.errstate(over="ignore"):
            literal = Literal.from_array(shape, np.array(number).astype(type_.dtype))
        return self("constant", shape=shape, literal=LiteralAttr(literal))

    def spread(self, scalar: Instruction, sizes: Sequence[int]) -> Instruction:
        """A scalar at every place of an array."""
        if not sizes:
            return scalar
        wanted = plain(shape_at(scalar).element_type, sizes)
        return self("broadcast", scalar, shape=wanted, dimensions=integers(()))

    def part(self, value: Instruction, number: int) -> Instruction:
        """An element of a tuple."""
        shape = value.shape
        assert isinstance(shape, TupleShape)
        element = shape.elements[number]
        return self("get-tuple-element", value, shape=element, index=integer(number))

    def reshape(self, value: SSAValue | Instruction, sizes: Sequence[int]) -> Instruction:
        """Other sizes."""
        return self("reshape", value, shape=plain(shape_at(value).element_type, sizes))

    def transpose(self, value: SSAValue | Instruction, order: Sequence[int]) -> Instruction:
        """Result dimension d is dimension `order[d]`."""
        shape = shape_at(value)
        wanted = plain(shape.element_type, [shape.dimensions[d] for d in order])
        return self("transpose", value, shape=wanted, dimensions=integers(tuple(order)))

    def row(self, value: Instruction, number: Instruction) -> Instruction:
        """`value[number]`, the first dimension dropped."""
        sizes = shape_at(value).dimensions
        zero = self.scalar(S32, 0)
        starts = [number, *(zero for _ in sizes[1:])]
        wanted = plain(shape_at(value).element_type, (1, *sizes[1:]))
        found = self(
            "dynamic-slice",
            value,
            *starts,
            shape=wanted,
            dynamic_slice_sizes=integers((1, *sizes[1:])),
        )
        return self.reshape(found, sizes[1:])

    def starts(self, row: Instruction, places: Sequence[int], rank: int) -> list[Instruction]:
        """A start for every dimension: component k of the row at dimension `places[k]`, else 0."""
        type_ = shape_at(row).element_type
        zero = self.scalar(type_, 0)
        found = [zero] * rank
        for k, dim in enumerate(places):
            part = self("slice", row, shape=plain(type_, (1,)), slice=slices([(k, k + 1, 1)]))
            found[dim] = self.reshape(part, ())
        return found


def rows_of_indices(write: Writer, indices: SSAValue, vector_dim: int) -> SSAValue | Instruction:
    """Indices as [rows, components]; themselves where they are."""
    shape = shape_at(indices)
    value: SSAValue | Instruction = indices
    components = 1
    sizes = list(shape.dimensions)
    if vector_dim < shape.rank:
        components = sizes[vector_dim]
        order = [d for d in range(shape.rank) if d != vector_dim] + [vector_dim]
        if order != list(range(shape.rank)):
            value = write.transpose(indices, order)
        sizes = [sizes[d] for d in order[:-1]]
    wanted = (prod(sizes), components)
    return value if shape_at(value).dimensions == wanted else write.reshape(value, wanted)


def loop(
    before: Instruction,
    write: Writer,
    rounds: int,
    state: Sequence[SSAValue | Instruction],
    step: Step,
) -> list[Instruction]:
    """Runs `step` for 0, 1, … `rounds` - 1 on arrays; their values at the end.

    `before`: the instruction that the loop is for; its module gets the two computations.
    """
    counter = ArrayShape(S32, ())
    shapes = [counter, *(shape_at(v) for v in state)]
    whole = TupleShape(tuple(shapes))

    def inside() -> tuple[Block, Writer, list[Instruction]]:
        block = Block()
        own = Writer(lambda op: append(block, op))
        parameter = own("parameter", shape=whole, parameter_number=integer(0))
        parts = [
            own("get-tuple-element", parameter, shape=s, index=integer(k))
            for k, s in enumerate(shapes)
        ]
        return block, own, parts

    block, own, (number, *parts) = inside()
    following = own("add", number, own.scalar(S32, 1), shape=counter)
    root = own("tuple", following, *step(own, number, parts), shape=whole)
    body = add_computation(before, "while_body", block, root)
    block, own, (number, *_) = inside()
    pred = ArrayShape(PRED, ())
    test = own("compare", number, own.scalar(S32, rounds), shape=pred, direction=string("LT"))
    condition = add_computation(before, "while_cond", block, test)
    start = write("tuple", write.scalar(S32, 0), *state, shape=whole)
    result = write("while", start, shape=whole, condition=condition, body=body)
    return [
        write("get-tuple-element", result, shape=s, index=integer(k + 1))
        for k, s in enumerate(shapes[1:])
    ]
