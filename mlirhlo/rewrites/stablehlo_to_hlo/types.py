"""Types of StableHLO programs as HLO shapes."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.hlo.shapes import (
    TOKEN_SHAPE,
    UNBOUNDED,
    ArrayShape,
    Shape,
    TupleShape,
    default_layout,
)
from mlirhlo.dialects.hlo.types import shape_of

TOKENS = frozenset({"stablehlo.token", "hlo.token", "mhlo.token"})


class TypeProblem(Exception):
    """A type that HLO does not have; the text says why."""

    def __init__(self, message: str, *, quantized: bool = False) -> None:
        super().__init__(message)
        self.quantized = quantized


_KNOWN: dict[Attribute, Shape] = {}


def hlo_shape(type_: Attribute) -> Shape:
    """The shape of a type: tensors (bounds from `#stablehlo.bounds`), tuples, tokens.

    Raises `TypeProblem` for other types and for element types without an HLO counterpart.
    """
    found = _KNOWN.get(type_)
    if found is None:
        found = _KNOWN[type_] = _make(type_)
    return found


def _make(type_: Attribute) -> Shape:
    if isinstance(type_, TensorType):
        return _array(cast("TensorType[Attribute]", type_))
    if isinstance(type_, TupleType):
        return TupleShape(tuple(hlo_shape(t) for t in type_.types.data))
    if type_.name in TOKENS:
        return TOKEN_SHAPE
    if type_.name == "stablehlo.future":
        elements = tuple(hlo_shape(t) for t in cast(Any, type_).data)
        return elements[0] if len(elements) == 1 else TupleShape(elements)
    if type_.name.startswith("hlo."):
        return shape_of(type_)
    raise TypeProblem(f"type {type_} has no HLO shape")


def _array(type_: TensorType[Attribute]) -> ArrayShape:
    element_type = BY_MLIR.get(type_.element_type)
    if element_type is None:
        quantized = type_.element_type.name.startswith("quant.")
        raise TypeProblem(
            f"element type {type_.element_type} has no HLO counterpart", quantized=quantized
        )
    encoding = type_.encoding
    if encoding.name == "hlo.layout":
        shape = shape_of(type_)
        assert isinstance(shape, ArrayShape)
        return shape
    bounds: tuple[int | None, ...] = ()
    if not isinstance(encoding, NoneAttr) and encoding.name.endswith(".bounds"):
        bounds = tuple(bound_of(b) for b in cast(Any, encoding).data.bounds)
    sizes: list[int] = []
    dynamic: list[bool] = []
    for dim, size in enumerate(d.data for d in type_.shape.data):
        bound = bounds[dim] if dim < len(bounds) else None
        dynamic.append(size == DYNAMIC_INDEX)
        sizes.append(size if size != DYNAMIC_INDEX else UNBOUNDED if bound is None else bound)
    flags = tuple(dynamic) if any(dynamic) else ()
    return ArrayShape(element_type, tuple(sizes), flags, default_layout(len(sizes)))


def bound_of(bound: object) -> int | None:
    """A bound as a number; None for `?`."""
    number = cast("int | None", getattr(bound, "data", bound))
    return None if number is None or number in (DYNAMIC_INDEX, UNBOUNDED) else number


def element_type_of(type_: Attribute, op: Operation) -> PrimitiveType:
    """HLO's element type of a tensor type. Raises `TypeProblem`."""
    shape = hlo_shape(type_)
    if not isinstance(shape, ArrayShape):
        raise TypeProblem(f"{op.name}: {type_} is not a tensor")
    return shape.element_type
