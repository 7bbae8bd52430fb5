"""Shapes of elementwise instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mlirhlo.analysis.shape_inference.base import (
    Dimension,
    Given,
    checks,
    dimension,
    higher_precision,
    infers,
    is_unbounded,
    most_specific,
    plain,
    same_sizes,
    same_type,
)
from mlirhlo.dialects.hlo.element_types import PRED, Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Layout, Shape, array
from mlirhlo.dialects.hlo.table import ELEMENTWISE_ROWS, OPCODES, Types

ARRAY = "the operand is an array"
ARRAYS = "the operands are arrays"
FLOAT = "the element type is floating point"
_FLOAT_OR_COMPLEX = "the element type is floating point or complex"


def retyped(shape: ArrayShape, element_type: PrimitiveType) -> ArrayShape:
    """`shape` with another element type, layout kept."""
    if shape.element_type is element_type:
        return shape
    layout = shape.layout
    if layout is not None:
        layout = _element_size_of(layout, element_type)
    return ArrayShape(element_type, shape.dimensions, shape.dynamic, layout)


def _element_size_of(layout: Layout, element_type: PrimitiveType) -> Layout:
    """`layout` without its element size (`E`), unless elements are numbers of less than a byte."""
    if not layout.element_size_bits or (element_type.bits < 8 and element_type is not PRED):
        return layout
    return replace(layout, element_size_bits=0)


def _typed(given: Given, holds: bool, operand: ArrayShape, wanted: str) -> ArrayShape:
    if not holds:
        raise given.error(
            2,
            f"Expected element type in shape to be {wanted} for {given.opcode} operation; got"
            f" {operand.element_type.name.upper()}.",
            operand=0,
        )
    return operand


_SPELLED = {Types.FLOATS: "floating", Types.FLOATS_OR_COMPLEX: "floating or complex"}


def _taking(types: Types, arity: int) -> tuple[str, ...]:
    rows = (row for row in ELEMENTWISE_ROWS if row.types is types and row.arity == arity)
    return tuple(row.name for row in rows)


def _operand(given: Given) -> ArrayShape:
    return given.array(0, "operand of unary operation")


@infers(*_taking(Types.FLOATS_OR_COMPLEX, 1), c1=ARRAY, c2=_FLOAT_OR_COMPLEX)
def float_or_complex(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    type_ = x.element_type
    return _typed(given, type_.is_float or type_.is_complex, x, "floating or complex")


@infers(*_taking(Types.FLOATS, 1), c1=ARRAY, c2=FLOAT)
def only_float(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    return _typed(given, x.element_type.is_float, x, "floating")


@infers("negate", c1=ARRAY, c2="the element type is a number, not pred")
def negate(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    return _typed(given, x.element_type is not PRED, x, "integral, floating or complex")


@infers("sign", c1=ARRAY, c2="the element type is signed (integer, floating point or complex)")
def sign(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    holds = x.element_type.kind in (Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX)
    return _typed(given, holds, x, "signed or complex")


@infers("abs", c1=ARRAY, c2="the element type is signed (integer, floating point or complex)")
def abs_(given: Given) -> Shape:
    """The operand's shape; of a complex operand with its real type."""
    x = _operand(given)
    holds = x.element_type.kind in (Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX)
    return retyped(_typed(given, holds, x, "floating or complex"), x.element_type.real)


@infers("real", "imag", c1=ARRAY, c2=_FLOAT_OR_COMPLEX)
def real_part(given: Given) -> Shape:
    """The operand's shape with its real type."""
    x = _operand(given)
    holds = x.element_type.is_float or x.element_type.is_complex
    return retyped(_typed(given, holds, x, "floating or complex"), x.element_type.real)


@infers("is-finite", c1=ARRAY, c2=FLOAT)
def is_finite(given: Given) -> Shape:
    """The operand's shape, of pred."""
    x = _operand(given)
    if not x.element_type.is_float:  # is-finite_c2
        raise given.error(
            2,
            "Expected element type in shape to be floating point for IsFinite operation; got"
            f" {x.element_type.name.upper()}.",
            operand=0,
        )
    return retyped(x, PRED)


@infers("count-leading-zeros", "popcnt", c1=ARRAY, c2="the element type is an integer")
def bits(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    if not x.element_type.is_integer:
        name = "PopulationCount" if given.opcode == "popcnt" else "Clz"
        raise given.error(
            2,
            f"Expected an integral element type in argument to {name} operation; got"
            f" {x.element_type.name.upper()}.",
            operand=0,
        )
    return x


@infers("not", c1=ARRAY, c2="the element type is pred or an integer")
def not_(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    if not (x.element_type.is_integer or x.element_type is PRED):
        raise given.error(
            2,
            "Expected pred or an integral element type in argument to Not operation; got"
            f" {x.element_type.name.upper()}.",
            operand=0,
        )
    return x


@infers("copy")
def copy(given: Given) -> Shape:
    """The operand's shape, whatever it is."""
    return given.operands[0]


# ---------------------------------------------------------------- two operands


def broadcast_sizes(given: Given, a: ArrayShape, b: ArrayShape, number: int) -> ArrayShape:
    """Shape of an elementwise binary operation as XLA infers it: equal sizes keep the left layout,
    a scalar or dimensions of size 1 broadcast. Raises constraint `number`."""
    if a.dimensions == b.dimensions and not is_unbounded(a):
        if not b.dynamic or b.dynamic == a.dynamic:
            return a
        flags = a.dynamic or (False,) * a.rank
        return replace(a, dynamic=tuple(map(max, flags, b.dynamic)))
    if a.rank != b.rank:
        if not (a.is_scalar or b.is_scalar):
            raise given.error(
                number, f"Shapes must be equal rank, but are {plain(a)} and {plain(b)}", operand=1
            )
        wide = a if b.is_scalar else b
        return array(a.element_type, wide.dimensions, wide.dynamic)
    dims: list[Dimension] = []
    for x, y in zip(
        (dimension(a, d) for d in range(a.rank)),
        (dimension(b, d) for d in range(b.rank)),
        strict=True,
    ):
        if 1 in (x[0], y[0]):
            # A size of 1 broadcasts, so that only the other side is looked at, its bound too.
            dims.append(y if x[0] == 1 else x)
        elif UNBOUNDED in (x[0], y[0]):
            dims.append(most_specific(x, y))
        elif x[0] == y[0]:
            dims.append((x[0], x[1] or y[1]))
        else:
            raise given.error(
                number,
                f"Binary op with incompatible shapes: {plain(a)} and {plain(b)}.",
                operand=1,
            )
    return array(a.element_type, [d[0] for d in dims], [d[1] for d in dims])


def binary(given: Given) -> ArrayShape:
    """The common shape of two operands, element types of different precision widened."""
    a = given.array(0, f"lhs of binary operation {given.opcode}")
    b = given.array(1, f"rhs of binary operation {given.opcode}")
    if not same_type(a.element_type, b.element_type):
        raise given.error(
            2,
            f"Binary op {given.opcode} with different element types: {plain(a)} and {plain(b)}.",
            operand=1,
            help="convert one of the operands",
        )
    shape = broadcast_sizes(given, a, b, 3)
    shape = retyped(shape, higher_precision(a.element_type, b.element_type))
    if shape.layout is None or not shape.layout.element_size_bits:
        return shape
    return replace(shape, layout=_element_size_of(shape.layout, shape.element_type))


_SAME_TYPES = "the element types are equal, or floating point of any precision"
_SAME_SIZES = "the sizes are equal (a scalar or size 1 broadcasts where the shape is left out)"


@infers(
    "add", "compare", "maximum", "minimum", "mulhi", "multiply",
    c1=ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES,
)  # fmt: skip
def any_type(given: Given) -> Shape:
    """The operands' shape; pred for a comparison."""
    shape = binary(given)
    return retyped(shape, PRED) if given.opcode == "compare" else shape


@infers(
    *_taking(Types.NUMBERS, 2), *_taking(Types.FLOATS, 2), *_taking(Types.FLOATS_OR_COMPLEX, 2),
    c1=ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES, c5="the element type is a number (atan2: no integer)",
)  # fmt: skip
def arithmetic(given: Given) -> Shape:
    """The operands' shape."""
    for index, operand in enumerate(given.operands):
        if isinstance(operand, ArrayShape) and operand.element_type is PRED:
            raise given.error(
                5,
                "Expected element type in shape to be arithmetic type for operation"
                f" {given.opcode}; got PRED.",
                operand=index,
            )
    shape = binary(given)
    type_, types = shape.element_type, OPCODES[given.opcode].types
    is_refused = type_.is_integer and types is not Types.NUMBERS
    if is_refused or (type_.is_complex and types is Types.FLOATS):
        raise given.error(
            5,
            f"Expected input element type to be {_SPELLED[types]} for {given.opcode} operation; got"
            f" {type_.name.upper()}.",
            operand=0,
        )
    return shape


@infers(
    *_taking(Types.BITS, 2),
    c1=ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES, c5="the element type is pred or an integer",
)  # fmt: skip
def logical(given: Given) -> Shape:
    """The operands' shape."""
    a = given.array(0, f"lhs of binary operation {given.opcode}")
    if not (a.element_type.is_integer or a.element_type is PRED):
        raise given.error(
            5,
            "Expected pred or integral type in argument to and/or operation; got"
            f" {a.element_type.name.upper()}.",
            operand=0,
        )
    return binary(given)


@infers(
    "complex",
    c1=ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES, c5="the element type is f32 or f64, the same for both",
)  # fmt: skip
def complex_(given: Given) -> Shape:
    """The operands' shape, of c64 or c128."""
    a = given.array(0, "lhs of binary operation complex")
    b = given.array(1, "rhs of binary operation complex")
    if not a.element_type.is_float:  # complex_c5
        raise given.error(
            5,
            "Expected element type in shape to be floating for complex compose operation; got"
            f" {a.element_type.name.upper()}.",
            operand=0,
        )
    shape = binary(given)
    wide = shape.element_type.complex
    if wide is None or a.element_type is not b.element_type:  # complex_c5
        raise given.error(
            5,
            f"Complex component type is not implemented: {a.element_type} and {b.element_type}.",
            operand=0,
        )
    return retyped(shape, wide)


# ---------------------------------------------------------------- no broadcast once written


_BROADCASTS = frozenset({"clamp", "select"})
"""Scalars may stand for arrays here."""

_PLAIN = tuple(
    row.name
    for row in ELEMENTWISE_ROWS
    if isinstance(row.arity, int) and row.arity > 1 and row.infers and row.name not in _BROADCASTS
)


@checks(
    *(name for name in _PLAIN if name not in ("compare", "mulhi")),
    c4="operands and result have the same sizes: nothing broadcasts implicitly",
)
def no_broadcast(given: Given) -> None:
    """No operand is broadcast."""
    result = cast(ArrayShape, given.declared)
    for index, operand in enumerate(given.operands):
        if cast(ArrayShape, operand).dimensions != result.dimensions and not same_sizes(
            cast(ArrayShape, operand), result
        ):
            raise given.error(
                4,
                f"Implicit broadcast is not allowed in HLO. Found {plain(operand)} for a result of"
                f" {plain(result)}.",
                operand=index,
                help="write a `broadcast`",
            )


_COMPARISONS = {
    "FLOAT": (Kind.FLOAT, Kind.COMPLEX),
    "TOTALORDER": (Kind.FLOAT, Kind.SIGNED, Kind.UNSIGNED, Kind.PRED),
    "SIGNED": (Kind.SIGNED,),
    "UNSIGNED": (Kind.UNSIGNED, Kind.PRED),
}


@checks(
    "compare",
    c4="operands and result have the same sizes: nothing broadcasts implicitly",
    c5="complex numbers are only equal or not equal",
    c6="the comparison type suits the element type",
)
def compare(given: Given) -> None:
    """Directions and comparison types that make sense."""
    no_broadcast(given)
    kind = cast(ArrayShape, given.operands[0]).element_type.kind
    direction = given.str("direction")
    if kind is Kind.COMPLEX and direction not in ("EQ", "NE"):  # compare_c5
        raise given.error(
            5,
            f"complex numbers have no order, so {direction} compares nothing; use EQ or NE",
            attribute="direction",
        )
    type_ = given.str("type")
    if type_ and kind not in _COMPARISONS[type_]:  # compare_c6
        raise given.error(
            6,
            f"Expected comparison type {type_} to suit {plain(given.operands[0])}",
            attribute="type",
        )


@checks(
    "mulhi",
    c5="the element type is an integer",
    c4="operands and result have the same sizes: nothing broadcasts implicitly",
)
def mulhi(given: Given) -> None:
    """Only integers have a high half."""
    no_broadcast(given)
    type_ = cast(ArrayShape, given.operands[0]).element_type
    if not type_.is_integer:  # mulhi_c5
        raise given.error(
            5, f"Expected an integral element type; got {type_.name.upper()}.", operand=0
        )
