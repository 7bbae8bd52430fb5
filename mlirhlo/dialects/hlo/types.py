"""MLIR types of the hlo dialect, and the way between `Shape` values and types.

An array is `tensor<4x3xf32>`; anything but a static row-major array carries its layout and bounds
as an encoding: `tensor<?x3xf32, #hlo.layout<"[<=4,3]{0,1:T(8,128)}">>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, NoneAttr, TensorType, TupleType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.hlo.shapes import (
    OPAQUE_SHAPE,
    TOKEN_SHAPE,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    OpaqueShape,
    Shape,
    TokenShape,
    TupleShape,
    default_layout,
    parse_shape,
)
from mlirhlo.dialects.hlo.syntax import SyntaxProblem
from mlirhlo.dialects.interned import NONE
from mlirhlo.dialects.quick import sizes_attribute, unchecked

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`token[]`: orders side effects."""

    name = "hlo.token"


@irdl_attr_definition
class OpaqueType(ParametrizedAttribute, TypeAttribute):
    """`opaque[]`: a value only custom calls look into."""

    name = "hlo.opaque"


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """`b(f32[8]{0})`: a mutable buffer of an array."""

    name = "hlo.buffer"
    element: Attribute


@irdl_attr_definition
class LayoutAttr(Data[str]):
    """Encoding of a tensor: `[sizes]{layout}` in HLO's syntax, bounds of dynamic sizes included."""

    name = "hlo.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Reads `<"[<=4,3]{1,0}">`."""
        with parser.in_angle_brackets():
            start = parser.pos
            text = parser.parse_str_literal()
        try:
            parse_shape("f32" + text)
        except SyntaxProblem as problem:
            parser.raise_error(f"bad layout: {problem.message}", start)
        return text

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<"[<=4,3]{1,0}">`."""
        printer.print_string(f'<"{self.data}">')


def type_of(shape: Shape) -> Attribute:
    """The MLIR type of `shape`; cached on the shape."""
    cache = shape._type  # pyright: ignore[reportPrivateUsage]
    if not cache:
        type_ = _make_type(shape)
        object.__setattr__(type_, "_hlo_shape", shape)
        cache.append(type_)
    return cache[0]


def shape_of(type_: Attribute) -> Shape:
    """The shape of an MLIR type; cached on the type. Raises `VerifyException` for foreign types."""
    shape: Shape | None = type_.__dict__.get("_hlo_shape")
    if shape is None:
        shape = _make_shape(type_)
        object.__setattr__(type_, "_hlo_shape", shape)
    return shape


def shape_of_value(value: SSAValue) -> Shape:
    """`shape_of(value.type)`."""
    return shape_of(value.type)


_INTERNED: dict[Shape, Attribute] = {}


def _make_type(shape: Shape) -> Attribute:
    known = _INTERNED.get(shape)
    if known is None:
        known = _INTERNED[shape] = _new_type(shape)
    return known


def _new_type(shape: Shape) -> Attribute:
    match shape:
        case ArrayShape():
            assert shape.element_type.mlir is not None
            encoding: Attribute = NONE
            if shape.is_dynamic or shape.layout not in (None, default_layout(shape.rank)):
                text = shape.to_string().removeprefix(shape.element_type.name)
                encoding = LayoutAttr(text)
            sizes = [
                DYNAMIC_INDEX if shape.is_dynamic_dimension(dim) else size
                for dim, size in enumerate(shape.dimensions)
            ]
            return unchecked(
                TensorType,
                shape=sizes_attribute(sizes),
                element_type=shape.element_type.mlir,
                encoding=encoding,
            )
        case TupleShape():
            types = cast("list[TypeAttribute]", [type_of(e) for e in shape.elements])
            return TupleType(ArrayAttr(types))
        case BufferShape():
            return BufferType(type_of(shape.element))
        case TokenShape():
            return TokenType()
        case OpaqueShape():
            return OpaqueType()


def _make_shape(type_: Attribute) -> Shape:
    match type_:
        case TensorType():
            return _array_shape(type_)
        case TupleType():
            return TupleShape(tuple(shape_of(t) for t in type_.types.data))
        case BufferType():
            element = shape_of(type_.element)
            if not isinstance(element, ArrayShape):
                raise VerifyException("!hlo.buffer holds a tensor type")
            return BufferShape(element)
        case TokenType():
            return TOKEN_SHAPE
        case OpaqueType():
            return OPAQUE_SHAPE
        case _:
            raise VerifyException(f"{type_} is not a type of the hlo dialect")


def _array_shape(type_: TensorType[Attribute]) -> ArrayShape:
    element_type = BY_MLIR.get(type_.element_type)
    if element_type is None:
        raise VerifyException(
            f"tensor element type {type_.element_type} is not an HLO element type"
        )
    sizes = tuple(d.data for d in type_.shape.data)
    if isinstance(type_.encoding, NoneAttr):
        if DYNAMIC_INDEX in sizes:
            dynamic = tuple(size == DYNAMIC_INDEX for size in sizes)
            sizes = tuple(UNBOUNDED if size == DYNAMIC_INDEX else size for size in sizes)
            return ArrayShape(element_type, sizes, dynamic, default_layout(len(sizes)))
        return ArrayShape(element_type, sizes, (), default_layout(len(sizes)))
    if not isinstance(type_.encoding, LayoutAttr):
        raise VerifyException(f"tensor encoding {type_.encoding} is not #hlo.layout")
    shape = parse_shape(element_type.name + type_.encoding.data)
    assert isinstance(shape, ArrayShape)
    declared = tuple(
        DYNAMIC_INDEX if shape.is_dynamic_dimension(dim) else size
        for dim, size in enumerate(shape.dimensions)
    )
    if declared != sizes:
        raise VerifyException(f"the sizes in {type_.encoding} are not those of the tensor")
    return shape
