"""Results of calls of libraries written out: types of sums, rounding at the end, workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.ops.dot import accumulator
from mlirhlo.rewrites.linear_algebra.client import Graph, Value


def sum_type(lhs: PrimitiveType, rhs: PrimitiveType, result: PrimitiveType) -> PrimitiveType:
    """The type in which products of these are summed, before the result is rounded."""
    dtype = accumulator(lhs, rhs, result)
    if dtype.kind in "iu" and dtype.itemsize < 4:
        return PRIMITIVE_TYPES["s32"]  # what is too large for s8 is known at the end
    return next(t for t in PRIMITIVE_TYPES.values() if t.dtype == dtype and t.bits != 4)


def parts_of(op: CustomCallOp) -> tuple[ArrayShape, ...]:
    """The arrays of a call's result; none where it is no static array or tuple of them."""
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    arrays = tuple(p for p in parts if isinstance(p, ArrayShape) and not p.is_dynamic)
    return arrays if len(arrays) == len(parts) and not op.control_predecessors else ()


def finished(op: CustomCallOp, graph: Graph, values: Sequence[Value]) -> Value:
    """The call's result: values in its types and layouts, then zeros for workspaces."""
    found: list[Value] = []
    for number, part in enumerate(parts_of(op)):
        if number < len(values):
            value = _rounded(values[number], part.element_type)
            if value.sizes != part.dimensions:
                value = value.reshape(*part.dimensions)
        else:
            value = graph.full(part.element_type, part.dimensions)
        if value.op.shape != part:
            value = graph.make("copy", value, shape=part)
        found.append(value)
    return (
        graph.make("tuple", *found, shape=op.shape)
        if isinstance(op.shape, TupleShape)
        else found[0]
    )


def _rounded(value: Value, type_: PrimitiveType) -> Value:
    """In another type; in one of 8 bits what does not fit is the greatest number that does."""
    if value.type is type_:
        return value
    if type_.bits == 8 and (type_.is_float or value.type.bits > 8):
        import ml_dtypes
        import numpy as np

        limits: Any = cast(Any, ml_dtypes).finfo if type_.is_float else np.iinfo
        about = limits(type_.dtype)
        value = value.maximum(float(about.min)).minimum(float(about.max))
    return value.convert(type_)
