"""Ops whose result is declared in another element type than their operands have.

XLA:TPU folds converts into copies, pads, slices, selects and reductions: `bf16[8] copy(f32[8])`.
The op is done in the operands' type and its result converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, leaves
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.interp.ops.elementwise_convert import convert
from mlirhlo.interp.registry import Array, DynamicArray, Frame, Run, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction

INFERS_TYPE = opcodes(lambda row: row.own_type)
"""The types of their results follow from operands and callees by rules of their own."""


def with_declared_types(op: Instruction, run: Run) -> Run:
    """`run`, its result converted to the declared types where the operands have others."""
    if op.opcode.name in INFERS_TYPE:
        return _converted(run, [leaf for _, leaf in leaves(op.shape)])
    inputs = op.input_shapes
    data = [inputs[number] for number in op.opcode.data_operands(len(inputs))]
    if not data:
        return run
    if op.opcode.gives_real and cast(ArrayShape, data[0]).element_type.is_complex:
        return run
    declared = [leaf for _, leaf in leaves(op.shape)]
    # A function of elements may have a type of its own.
    uniform = _are_uniform(op, data) and not op.called_computations
    if uniform and all(map(_same_type, data, declared)):
        return run
    return _converted(run, declared)


def _converted(run: Run, declared: Sequence[Shape]) -> Run:
    def converted(inputs: Sequence[Any], frame: Frame) -> Value:
        return _as_declared(cast(Value, run(inputs, frame)), declared)

    return converted


def _same_type(a: Shape, b: Shape) -> bool:
    both = isinstance(a, ArrayShape) and isinstance(b, ArrayShape)
    return not both or cast(ArrayShape, a).element_type is cast(ArrayShape, b).element_type


def _are_uniform(op: Instruction, data: Sequence[Shape]) -> bool:
    """Whether the operands of an element-wise op are of one type."""
    return not op.opcode.elementwise or all(_same_type(data[0], other) for other in data[1:])


def _as_declared(value: Value, declared: Sequence[Shape]) -> Value:
    if isinstance(value, tuple):
        parts = cast("tuple[Value, ...]", value)
        return tuple(_as_declared(p, [s]) for p, s in zip(parts, declared, strict=True))
    shape = declared[0]
    if not isinstance(shape, ArrayShape):
        return value
    if isinstance(value, DynamicArray):
        return DynamicArray(_to(value.data, shape.element_type), value.sizes)
    return _to(np.asarray(cast(Array, value)), shape.element_type)


_BY_DTYPE: dict[np.dtype[Any], PrimitiveType] = {}


def type_of_array(array: Array) -> PrimitiveType:
    """The element type that an array has."""
    if not _BY_DTYPE:
        _BY_DTYPE.update({row.dtype: row for row in PRIMITIVE_TYPES.values() if row.is_array})
    return _BY_DTYPE[array.dtype]


def _to(array: Array, target: PrimitiveType) -> Array:
    return array if array.dtype == target.dtype else convert(array, type_of_array(array), target)
