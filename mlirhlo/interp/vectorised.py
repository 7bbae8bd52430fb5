"""Scalar computations applied to whole arrays: reducers, comparators, maps.

A computation whose instructions all work place by place gives the same results when its parameters
are arrays; others are called once an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.interp.registry import Array, Program, Value
from mlirhlo.interp.values import arrays_of

_PLACE_BY_PLACE = opcodes(lambda row: row.elementwise or row.free) | {"call", "fusion"} | {"map"}
_SCALAR_MOVES = opcodes(lambda row: row.keeps_bytes or (row.name in ("broadcast", "transpose")))
"""Identities as long as everything is a scalar."""


class _Program(Program, Protocol):
    def vectorises(self, name: str) -> bool: ...


def vectorises(computation: ComputationOp, program: _Program) -> bool:
    """Whether every instruction of `computation` works place by place."""
    return all(_is_place_by_place(op, program) for op in computation.instructions)


def _is_place_by_place(op: Instruction, program: _Program) -> bool:
    opcode = op.opcode.name
    known = opcode in _PLACE_BY_PLACE or opcode in _SCALAR_MOVES
    return known and _is_scalar(op.shape) and all(map(program.vectorises, op.called_computations))


def _is_scalar(shape: Shape) -> bool:
    if isinstance(shape, TupleShape):
        return all(map(_is_scalar, shape.elements))
    return isinstance(shape, ArrayShape) and shape.is_scalar


def at_once(result: Value, arguments: Sequence[Array]) -> tuple[Array, ...]:
    """The arrays of a result; parts that do not depend on the arguments are spread out."""
    shape = np.broadcast_shapes(*(argument.shape for argument in arguments)) if arguments else ()
    return tuple(
        part if part.shape == shape else np.broadcast_to(part, shape) for part in arrays_of(result)
    )


def one_by_one(
    call: Callable[[Sequence[Array]], Value], arguments: Sequence[Array], root: Shape
) -> tuple[Array, ...]:
    """Calls once an element."""
    shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
    flat = [np.broadcast_to(argument, shape).reshape(-1) for argument in arguments]
    results = [
        np.empty(flat[0].shape, dtype=leaf.element_type.dtype)
        for _, leaf in leaves(root)
        if isinstance(leaf, ArrayShape)
    ]
    for index in range(flat[0].size):
        given = [argument[index : index + 1].reshape(()) for argument in flat]
        value = call(given)
        parts = arrays_of(value)
        for result, part in zip(results, parts, strict=True):
            result[index] = part
    return tuple(result.reshape(shape) for result in results)
