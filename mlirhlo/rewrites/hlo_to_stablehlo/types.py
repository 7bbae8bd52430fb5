"""HLO shapes as types of StableHLO, and the leaves of tuples."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType
from xdsl.ir import Attribute

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import (
    UNBOUNDED,
    ArrayShape,
    Shape,
    TokenShape,
    TupleShape,
    default_layout,
)
from mlirhlo.dialects.stablehlo.attributes import TypeExtensions, TypeExtensionsAttr
from mlirhlo.dialects.stablehlo.types import TokenType

TOKEN = TokenType()
_NONE = NoneAttr()
_KNOWN: dict[Shape, Attribute] = {}


def type_of_leaf(shape: Shape) -> Attribute:
    """The type of an array or a token. Raises `HloError` HLO0427 for other shapes."""
    found = _KNOWN.get(shape)
    if found is None:
        found = _KNOWN[shape] = _make(shape)
    return found


def _make(shape: Shape) -> Attribute:
    match shape:
        case TokenShape():
            return TOKEN
        case ArrayShape():
            return _tensor(shape)
        case _:
            raise error(
                "HLO0427",
                f"StableHLO has no type for values of shape {shape}",
                help="remove the instruction, or keep the module as HLO",
            )


def _tensor(shape: ArrayShape) -> TensorType[Attribute]:
    assert shape.element_type.mlir is not None
    if not shape.is_dynamic:
        return TensorType(shape.element_type.mlir, shape.dimensions)
    dynamic = [shape.is_dynamic_dimension(dim) for dim in range(shape.rank)]
    sizes = [
        DYNAMIC_INDEX if flag else size
        for size, flag in zip(shape.dimensions, dynamic, strict=True)
    ]
    bounds = tuple(
        size if flag and size != UNBOUNDED else None
        for size, flag in zip(shape.dimensions, dynamic, strict=True)
    )
    encoding: Attribute = _NONE
    if any(bound is not None for bound in bounds):
        encoding = TypeExtensionsAttr(TypeExtensions(bounds))
    return TensorType(shape.element_type.mlir, sizes, encoding)


def leaves(shape: Shape) -> Iterator[Shape]:
    """The parts of a shape that are no tuples, depth first."""
    if isinstance(shape, TupleShape):
        for element in shape.elements:
            yield from leaves(element)
    else:
        yield shape


def leaf_types(shape: Shape) -> list[Attribute]:
    """Types of the leaves of a shape. Raises `HloError` HLO0427."""
    return [type_of_leaf(leaf) for leaf in leaves(shape)]


def has_own_layout(shape: Shape) -> bool:
    """Whether a shape, or a part of a tuple, is not laid out row-major."""
    match shape:
        case ArrayShape():
            return shape.layout is not None and shape.layout != default_layout(shape.rank)
        case TupleShape():
            return any(map(has_own_layout, shape.elements))
        case _:
            return False
