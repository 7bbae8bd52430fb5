"""Quantized types and what is stored for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerType,
    TensorType,
    TupleType,
    i32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.stablehlo.types import FutureType, UniformQuantization, UniformQuantizedType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STORED: dict[Attribute, Attribute] = {}


def storage_type(type_: Attribute) -> Attribute:
    """`type_` with integers for quantized elements, within tuples and functions too."""
    found = _STORED.get(type_)
    if found is None:
        found = _STORED[type_] = _stored(type_)
    return found


def _stored(type_: Attribute) -> Attribute:
    if isinstance(type_, TensorType):
        tensor = cast("TensorType[Attribute]", type_)
        storage = getattr(tensor.element_type, "storage_type", None)
        if not isinstance(storage, Attribute):
            return cast(Attribute, type_)
        return with_element(tensor, storage)
    if isinstance(type_, TupleType):
        return TupleType(
            ArrayAttr([cast(TypeAttribute, storage_type(t)) for t in type_.types.data])
        )
    if isinstance(type_, FutureType):
        return FutureType(tuple(storage_type(t) for t in type_.data))
    if isinstance(type_, FunctionType):
        return FunctionType.from_lists(
            [storage_type(t) for t in type_.inputs.data],
            [storage_type(t) for t in type_.outputs.data],
        )
    return type_


def with_element(type_: TensorType[Attribute], element_type: Attribute) -> TensorType[Attribute]:
    """The same shape with another element type."""
    return TensorType(element_type, type_.get_shape(), type_.encoding)


def quantization_of(type_: Attribute) -> UniformQuantization | None:
    """How the elements of a tensor type are quantized; None for other types."""
    if isinstance(type_, TensorType):
        element = cast("TensorType[Attribute]", type_).element_type
        if isinstance(element, UniformQuantizedType):
            return element.data
    return None


def is_per_tensor(q: UniformQuantization) -> bool:
    """Whether one scale holds for the whole tensor."""
    return q.axis is None and not q.block_sizes


def same_meaning(a: UniformQuantization, b: UniformQuantization) -> bool:
    """Whether equal integers mean equal numbers."""
    return (
        a.scales == b.scales
        and a.zero_points == b.zero_points
        and a.expressed_type == b.expressed_type
        and (a.axis is None) == (b.axis is None)
        and a.block_sizes == b.block_sizes
    )


def width_of(type_: Attribute) -> int:
    """Bits of an integer type."""
    return int(cast("IntegerType[Any, Any]", type_).width.data)


def wide_integer(q: UniformQuantization) -> IntegerType:
    """The integer type to compute in: 32 bits, unless storage itself needs more."""
    width = width_of(q.storage_type)
    unsigned = q.storage_min == 0 and q.storage_max >= 2**31
    return i64 if width > 32 or unsigned else i32


def is_narrow(q: UniformQuantization) -> bool:
    """Whether results have to be clamped: storage is not the whole of the wide type."""
    half = 1 << (width_of(wide_integer(q)) - 1)
    return (q.storage_min, q.storage_max) != (-half, half - 1)


def is_float(type_: Attribute) -> bool:
    """Whether an element type is one that quantization can express."""
    found = BY_MLIR.get(type_)
    return found is not None and found.is_float


def parameters(q: UniformQuantization, rank: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scales (f64) and zero points (i64) as arrays of rank `rank`, size 1 where they do not differ.

    By block: one element a block.
    """
    import numpy as np

    shape = [1] * rank
    if q.axis is not None:
        shape[q.axis] = len(q.scales)
    elif q.block_sizes:
        shape = list(q.block_shape)
    return (
        np.array(q.scales, np.float64).reshape(shape),
        np.array(q.zero_points, np.int64).reshape(shape),
    )
