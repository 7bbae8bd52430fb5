"""Asynchronous pairs and tokens.

The interpreter does the work when the pair starts; updates and the end hand the result on. Values
in the start's context parts have no meaning and are zero.
Source: HLO text, "Async forms".
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, TupleShape, compatible
from mlirhlo.interp.registry import TOKEN, Call, Frame, Program, Run, Value, evaluates, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.tokens import AsyncStartOp


def zeros(shape: Shape) -> Value:
    """A value of `shape` with every element zero; for parts that have no meaning."""
    match shape:
        case TupleShape():
            return tuple(map(zeros, shape.elements))
        case BufferShape():
            return zeros(shape.element)
        case ArrayShape():
            return np.zeros(shape.dimensions, dtype=shape.element_type.dtype)
        case _:
            return TOKEN


def started(op: Instruction, inputs: Sequence[Value], result: Value) -> Value:
    """The value of a start: `(operands, result, contexts…)`, as `op`'s shape has them."""
    shape = cast(TupleShape, op.shape)
    is_lone = len(inputs) == 1 and compatible(shape.elements[0], op.input_shapes[0])
    return (inputs[0] if is_lone else tuple(inputs), result, *map(zeros, shape.elements[2:]))


@prepares("async-start")
def async_start(op: AsyncStartOp, program: Program) -> Run:
    """Runs the computation; its result is the second part of the value."""
    computation = op.calls
    contexts = cast(TupleShape, op.shape).elements[2:]

    def run(inputs: Sequence[Any], frame: Frame) -> Generator[Call, Value, Value]:
        result = yield Call(computation, inputs)
        return (tuple(inputs), result, *map(zeros, contexts))

    return run


@evaluates("async-update", "all-reduce-done")
def same(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """The operand as it is."""
    return inputs[0]


@evaluates("async-done", "all-gather-done", "collective-permute-done")
def second_part(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """The result that the start has put beside its operands."""
    return inputs[0][1]


@evaluates("copy-start")
def copy_start(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(destination, source, context)`."""
    return (inputs[0], inputs[0], np.zeros((), dtype=np.uint32))


@evaluates("copy-done")
def copy_done(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """The destination."""
    return inputs[0][0]


@evaluates("after-all")
def after_all(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """A token."""
    return TOKEN
