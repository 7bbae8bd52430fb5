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
    listed,
    most_specific,
    plain,
    same_type,
)
from mlirhlo.dialects.hlo.element_types import PRED, Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, array
from mlirhlo.dialects.hlo.table import ELEMENTWISE_ROWS

_ARRAY = "the operand is an array"
_ARRAYS = "the operands are arrays"
_FLOAT = "the element type is floating point"
_FLOAT_OR_COMPLEX = "the element type is floating point or complex"


def retyped(shape: ArrayShape, element_type: PrimitiveType) -> ArrayShape:
    """`shape` with another element type, layout kept."""
    if shape.element_type is element_type:
        return shape
    return ArrayShape(element_type, shape.dimensions, shape.dynamic, shape.layout)


def _typed(given: Given, holds: bool, operand: ArrayShape, wanted: str) -> ArrayShape:
    if not holds:
        raise given.error(
            2,
            f"Expected element type in shape to be {wanted} for {given.opcode} operation; got"
            f" {operand.element_type.name.upper()}.",
            operand=0,
        )
    return operand


def _operand(given: Given) -> ArrayShape:
    return given.array(0, "operand of unary operation")


@infers(
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosine", "cosh", "exponential",
    "exponential-minus-one", "log", "log-plus-one", "logistic", "rsqrt", "sine", "sinh", "sqrt",
    "tan", "tanh",
    c1=_ARRAY,
    c2=_FLOAT_OR_COMPLEX,
)  # fmt: skip
def float_or_complex(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    type_ = x.element_type
    return _typed(given, type_.is_float or type_.is_complex, x, "floating or complex")


@infers(
    "cbrt", "ceil", "erf", "floor", "round-nearest-afz", "round-nearest-even", c1=_ARRAY, c2=_FLOAT
)
def only_float(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    return _typed(given, x.element_type.is_float, x, "floating")


@infers("negate", c1=_ARRAY, c2="the element type is a number, not pred")
def negate(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    return _typed(given, x.element_type is not PRED, x, "integral, floating or complex")


@infers("sign", c1=_ARRAY, c2="the element type is signed (integer, floating point or complex)")
def sign(given: Given) -> Shape:
    """The operand's shape."""
    x = _operand(given)
    holds = x.element_type.kind in (Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX)
    return _typed(given, holds, x, "signed or complex")


@infers("abs", c1=_ARRAY, c2="the element type is signed (integer, floating point or complex)")
def abs_(given: Given) -> Shape:
    """The operand's shape; of a complex operand with its real type."""
    x = _operand(given)
    holds = x.element_type.kind in (Kind.SIGNED, Kind.FLOAT, Kind.COMPLEX)
    return retyped(_typed(given, holds, x, "floating or complex"), x.element_type.real)


@infers("real", "imag", c1=_ARRAY, c2=_FLOAT_OR_COMPLEX)
def real_part(given: Given) -> Shape:
    """The operand's shape with its real type."""
    x = _operand(given)
    holds = x.element_type.is_float or x.element_type.is_complex
    return retyped(_typed(given, holds, x, "floating or complex"), x.element_type.real)


@infers("is-finite", c1=_ARRAY, c2=_FLOAT)
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


@infers("count-leading-zeros", "popcnt", c1=_ARRAY, c2="the element type is an integer")
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


@infers("not", c1=_ARRAY, c2="the element type is pred or an integer")
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
    return retyped(shape, higher_precision(a.element_type, b.element_type))


_SAME_TYPES = "the element types are equal, or floating point of any precision"
_SAME_SIZES = "the sizes are equal (a scalar or size 1 broadcasts where the shape is left out)"


@infers(
    "add", "compare", "maximum", "minimum", "mulhi", "multiply",
    c1=_ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES,
)  # fmt: skip
def any_type(given: Given) -> Shape:
    """The operands' shape; pred for a comparison."""
    shape = binary(given)
    return retyped(shape, PRED) if given.opcode == "compare" else shape


@infers(
    "atan2", "divide", "power", "remainder", "shift-left", "shift-right-arithmetic",
    "shift-right-logical", "subtract",
    c1=_ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES, c5="the element type is a number (atan2: no integer)",
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
    if given.opcode == "atan2" and shape.element_type.is_integer:
        raise given.error(
            5,
            "Expected input element type to be floating or complex for atan2 operation; got"
            f" {shape.element_type.name.upper()}.",
            operand=0,
        )
    return shape


@infers(
    "and", "or", "xor",
    c1=_ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES, c5="the element type is pred or an integer",
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
    c1=_ARRAYS, c2=_SAME_TYPES, c3=_SAME_SIZES, c5="the element type is f32 or f64, the same for both",
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


# ---------------------------------------------------------------- three operands


@infers(
    "clamp",
    c1=_ARRAYS,
    c2="the three element types are equal, or floating point of any precision",
    c3="min and max are scalars or have the operand's sizes",
)
def clamp(given: Given) -> Shape:
    """The clamped operand's shape."""
    low = given.array(0, "clamp min")
    x = given.array(1, "clamp operand")
    high = given.array(2, "clamp max")
    shown = f"{plain(low)}, {plain(x)}, {plain(high)}"
    for index, limit in ((0, low), (2, high)):
        if not same_type(limit.element_type, x.element_type):  # clamp_c2
            raise given.error(2, f"Clamp with incompatible element types: {shown}.", operand=index)
        if not limit.is_scalar and not _fits_unbounded(limit, x):  # clamp_c3
            raise given.error(3, f"Clamp with incompatible shapes: {shown}.", operand=index)
    if not (low.is_scalar or high.is_scalar or _fits_unbounded(low, high)):  # clamp_c3
        raise given.error(3, f"Clamp with incompatible shapes: {shown}.", operand=2)
    return x


def _fits_unbounded(a: ArrayShape, b: ArrayShape) -> bool:
    return a.rank == b.rank and all(
        x == y or UNBOUNDED in (x, y) for x, y in zip(a.dimensions, b.dimensions, strict=True)
    )


@infers(
    "select",
    c1=_ARRAYS,
    c2="the two values have one element type (or floating point) and one size",
    c3="the predicate is of pred",
    c4="the predicate is a scalar or has the values' sizes",
)
def select(given: Given) -> Shape:
    """The values' shape."""
    predicate = given.array(0, "select pred")
    a = given.array(1, "select on-true")
    b = given.array(2, "select on-false")
    if not (same_type(a.element_type, b.element_type) and _fits_unbounded(a, b)):  # select_c2
        raise given.error(
            2,
            f"Operands to select must be the same shape; got {plain(a)} and {plain(b)}.",
            operand=2,
        )
    if predicate.element_type is not PRED:  # select_c3
        raise given.error(
            3,
            f"Select's pred operand must have PRED element type; got {plain(predicate)}.",
            operand=0,
        )
    if not predicate.is_scalar and not (
        _fits_unbounded(predicate, a) and _fits_unbounded(predicate, b)
    ):  # select_c4
        raise given.error(
            4,
            "Operands to select and predicate must be the same shape; got"
            f" {listed([plain(a), plain(b), plain(predicate)])}.",
            operand=0,
        )
    whole = a if predicate.is_scalar else predicate
    sizes: list[Dimension] = []
    for dim in range(whole.rank):
        x, y = dimension(a, dim), dimension(b, dim)
        if UNBOUNDED in (x[0], y[0]):
            sizes.append(most_specific(x, y))
        else:
            size, dynamic = dimension(whole, dim)
            sizes.append((size, dynamic or x[1] or y[1]))
    flags = tuple(s[1] for s in sizes)
    return ArrayShape(
        higher_precision(a.element_type, b.element_type),
        tuple(s[0] for s in sizes),
        flags if any(flags) else (),
        whole.layout,
    )


# ---------------------------------------------------------------- declared types


def _same_sizes_as_operand(given: Given, number: int) -> tuple[ArrayShape, ArrayShape]:
    x = given.array(0, f"operand of {given.opcode}")
    result = given.declared_array(number)
    if result.dimensions != x.dimensions and not _fits_unbounded(x, result):
        raise given.error(
            number, f"{plain(x)} cannot become {plain(result)}: the sizes differ", operand=0
        )
    return x, result


@checks(
    "convert",
    c1=_ARRAY,
    c2="the result has the operand's sizes",
    c3="complex to real is no conversion",
)
def convert(given: Given) -> None:
    """The operand in the declared element type."""
    x, result = _same_sizes_as_operand(given, 2)
    if x.element_type.is_complex and not result.element_type.is_complex:  # convert_c3
        raise given.error(
            3,
            f"Conversion from complex to real type {plain(x)} => {plain(result)} is not implemented.",
            operand=0,
            help="take `real` of the operand first",
        )


@checks(
    "stochastic-convert",
    c1=_ARRAYS,
    c2="the result has the operand's sizes",
    c3="the random operand is of unsigned integers as wide as the operand's elements",
    c4="the operand is floating point",
    c5="the random operand has the operand's sizes",
)
def stochastic_convert(given: Given) -> None:
    """The operand in the declared element type, rounded by random bits."""
    x, _ = _same_sizes_as_operand(given, 2)
    random = given.array(1, "random operand of stochastic-convert")
    if not x.element_type.is_float:  # stochastic-convert_c4
        raise given.error(
            4,
            f"Stochastic convert supports floating-point operands only; got {plain(x)}.",
            operand=0,
        )
    if not random.element_type.is_unsigned or random.element_type.bits != x.element_type.bits:
        raise given.error(  # stochastic-convert_c3
            3,
            "The random is required to be unsigned integers of the operand's"
            f" {x.element_type.bits} bits; got {plain(random)}.",
            operand=1,
        )
    if not _fits_unbounded(random, x):  # stochastic-convert_c5
        raise given.error(
            5,
            "Stochastic convert operand shape does not match random tensor shape:"
            f" {plain(x)} vs {plain(random)}.",
            operand=1,
        )


@infers(
    "reduce-precision",
    c1=_ARRAY,
    c2=_FLOAT,
    c3="there is at least one exponent bit",
    c4="the number of mantissa bits is not negative",
)
def reduce_precision(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of reduce-precision")
    if not x.element_type.is_float:  # reduce-precision_c2
        raise given.error(
            2,
            "Expected element type in shape to be floating point for ReducePrecision operation; got"
            f" {x.element_type.name.upper()}.",
            operand=0,
        )
    if given.int("exponent_bits") < 1:  # reduce-precision_c3
        raise given.error(
            3,
            f"Expected exponent_bits > 0, got {given.int('exponent_bits')}.",
            attribute="exponent_bits",
        )
    if given.int("mantissa_bits") < 0:  # reduce-precision_c4
        raise given.error(
            4,
            f"Expected non-negative mantissa_bits, got {given.int('mantissa_bits')}.",
            attribute="mantissa_bits",
        )
    return x


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
def same_sizes(given: Given) -> None:
    """No operand is broadcast."""
    result = cast(ArrayShape, given.declared)
    for index, operand in enumerate(given.operands):
        if cast(ArrayShape, operand).dimensions != result.dimensions and not _fits_unbounded(
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
    same_sizes(given)
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
    same_sizes(given)
    type_ = cast(ArrayShape, given.operands[0]).element_type
    if not type_.is_integer:  # mulhi_c5
        raise given.error(
            5, f"Expected an integral element type; got {type_.name.upper()}.", operand=0
        )
