"""Elementwise operations: two tables, and what is written with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DType,
    DTypeLike,
    as_dtype,
    bits_of,
    kind_of,
    promoted,
    weak,
)
from mlirhlo.mosaic.language.faults import bad_shape, bad_type
from mlirhlo.mosaic.language.trace import current, emit_one, flag, int_attr, vector_type
from mlirhlo.mosaic.language.value import (
    ON_NUMPY,
    ArrayLike,
    Value,
    as_value,
    constant,
    dtype_of,
    is_float,
    is_number,
)

BINARY: dict[str, dict[str, str]] = {
    "add": {"f": "arith.addf", "i": "arith.addi", "u": "arith.addi", "b": "arith.ori"},
    "subtract": {"f": "arith.subf", "i": "arith.subi", "u": "arith.subi"},
    "multiply": {"f": "arith.mulf", "i": "arith.muli", "u": "arith.muli", "b": "arith.andi"},
    "divide": {"f": "arith.divf", "i": "arith.divsi", "u": "arith.divui"},
    "rest": {"f": "arith.remf", "i": "arith.remsi", "u": "arith.remui"},
    "maximum": {"f": "arith.maximumf", "i": "arith.maxsi", "u": "arith.maxui", "b": "arith.ori"},
    "minimum": {"f": "arith.minimumf", "i": "arith.minsi", "u": "arith.minui", "b": "arith.andi"},
    "bitwise_and": {"i": "arith.andi", "u": "arith.andi", "b": "arith.andi"},
    "bitwise_or": {"i": "arith.ori", "u": "arith.ori", "b": "arith.ori"},
    "bitwise_xor": {"i": "arith.xori", "u": "arith.xori", "b": "arith.xori"},
    "left_shift": {"i": "arith.shli", "u": "arith.shli"},
    "right_shift": {"i": "arith.shrsi", "u": "arith.shrui"},
    "right_shift_logical": {"i": "arith.shrui", "u": "arith.shrui"},
    "power": {"f": "math.powf"},
    "arctan2": {"f": "math.atan2"},
}
"""By the kind of elements, the operation of each function of two operands."""

UNARY: dict[str, dict[str, str]] = {
    "exp": {"f": "math.exp"},
    "exp2": {"f": "math.exp2"},
    "log": {"f": "math.log"},
    "log1p": {"f": "math.log1p"},
    "log2": {"f": "math.log2"},
    "sqrt": {"f": "math.sqrt"},
    "rsqrt": {"f": "math.rsqrt"},
    "sin": {"f": "math.sin"},
    "cos": {"f": "math.cos"},
    "tan": {"f": "math.tan"},
    "tanh": {"f": "math.tanh"},
    "erf": {"f": "math.erf"},
    "floor": {"f": "math.floor"},
    "ceil": {"f": "math.ceil"},
    "round": {"f": "math.roundeven"},
    "round_away": {"f": "math.round"},
    "trunc": {"f": "math.trunc"},
    "absolute": {"f": "math.absf", "i": "math.absi"},
    "population_count": {"i": "math.ctpop", "u": "math.ctpop"},
    "clz": {"i": "math.ctlz", "u": "math.ctlz"},
}
"""By the kind of elements, the operation of each function of one operand."""

_INTEGER_COMPARISONS = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_UNSIGNED_COMPARISONS = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}
_FLOAT_COMPARISONS = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5}
"""Ordered ones, which NaN fails: the chip has no others."""


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """numpy's rule. Raises `HloError` HLO0721."""
    try:
        return tuple(np.broadcast_shapes(*(tuple(shape) for shape in shapes)))
    except ValueError:
        raise bad_shape(
            f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together",
            "dimensions are matched from the last one; each pair is equal or has a 1",
        ) from None


def broadcast_to(value: ArrayLike, shape: Sequence[int]) -> Value:
    """The value repeated along new dimensions and those of size one."""
    found, target = as_value(value), tuple(shape)
    if found.shape == target:
        return found
    if broadcast_shape(found.shape, target) != target:
        raise bad_shape(f"shape {list(found.shape)} cannot be broadcast to {list(target)}")
    if found.dtype == BOOL and found.shape:
        # Masks are made anew: the compiler moves data, not predicates.
        return cast_bool(broadcast_to(from_bool(found, I32), target))
    type_ = vector_type(target, found.dtype)
    return Value(emit_one("vector.broadcast", [found.ssa], type_), target, found.dtype)


def from_bool(value: Value, dtype: DType) -> Value:
    """0 and 1 for false and true."""
    type_ = vector_type(value.shape, dtype)
    return Value(emit_one("arith.extui", [value.ssa], type_), value.shape, dtype)


def cast_bool(value: Value) -> Value:
    """Whether elements are not zero."""
    return compare("ne", value, 0)


def pair(lhs: ArrayLike, rhs: ArrayLike) -> tuple[Value, Value]:
    """Both as values of one type and shape."""
    types = dtype_of(lhs), dtype_of(rhs)
    if types[0] is not None and types[1] is not None:
        dtype = promoted(types[0], types[1])
    elif types[0] is not None:
        dtype = weak(rhs, types[0]) if is_number(rhs) else types[0]
    elif types[1] is not None:
        dtype = weak(lhs, types[1]) if is_number(lhs) else types[1]
    else:
        dtype = weak(rhs, weak(lhs, BOOL)) if is_number(lhs) and is_number(rhs) else F32
    shape = broadcast_shape(_shape(lhs), _shape(rhs))
    made: list[Value] = []
    for side, known in zip((lhs, rhs), types, strict=True):
        if known is None and is_number(side):
            made.append(constant(side, dtype, shape))
        else:
            made.append(broadcast_to(cast(as_value(side, dtype), dtype), shape))
    return made[0], made[1]


def _shape(value: ArrayLike) -> tuple[int, ...]:
    shaped: Any = value
    return tuple(shaped.shape) if isinstance(value, Value | np.ndarray) else ()


def binary(name: str, lhs: ArrayLike, rhs: ArrayLike) -> Value:
    """A row of `BINARY` on operands brought to one type and shape."""
    a, b = pair(lhs, rhs)
    op = BINARY[name].get(kind_of(a.dtype))
    if op is None:
        raise bad_type(f"{name} has no meaning for elements of {a.dtype.name}")
    return Value(emit_one(op, [a.ssa, b.ssa], a.type), a.shape, a.dtype)


def unary(name: str, value: ArrayLike) -> Value:
    """A row of `UNARY`; integers and booleans become f32 where it needs floats."""
    x = as_value(value)
    row = UNARY[name]
    if kind_of(x.dtype) not in row:
        if "f" not in row or kind_of(x.dtype) == "f":
            raise bad_type(f"{name} has no meaning for elements of {x.dtype.name}")
        x = cast(x, F32)
    return Value(emit_one(row[kind_of(x.dtype)], [x.ssa], x.type), x.shape, x.dtype)


def compare(direction: str, lhs: ArrayLike, rhs: ArrayLike) -> Value:
    """`eq`, `ne`, `lt`, `le`, `gt` or `ge`, elementwise."""
    a, b = pair(lhs, rhs)
    kind = kind_of(a.dtype)
    if kind == "b":
        a, b = from_bool(a, I32), from_bool(b, I32)
    numbers = _UNSIGNED_COMPARISONS if kind == "u" else _INTEGER_COMPARISONS
    name, number = "arith.cmpi", numbers[direction]
    if kind == "f" and direction == "ne":
        return invert(compare("eq", a, b))
    if kind == "f":
        name, number = "arith.cmpf", _FLOAT_COMPARISONS[direction]
    type_ = vector_type(a.shape, BOOL)
    ssa = emit_one(name, [a.ssa, b.ssa], type_, {"predicate": int_attr(number, 64)})
    return Value(ssa, a.shape, BOOL)


def _made_binary(name: str, doc: str) -> Callable[[ArrayLike, ArrayLike], Value]:
    def function(x: ArrayLike, y: ArrayLike) -> Value:
        return binary(name, x, y)

    function.__name__, function.__doc__ = name, doc
    return function


def _made_unary(name: str, doc: str) -> Callable[[ArrayLike], Value]:
    def function(x: ArrayLike) -> Value:
        return unary(name, x)

    function.__name__, function.__doc__ = name, doc
    return function


def _made_comparison(direction: str, doc: str) -> Callable[[ArrayLike, ArrayLike], Value]:
    def function(x: ArrayLike, y: ArrayLike) -> Value:
        return compare(direction, x, y)

    function.__name__, function.__doc__ = direction, doc
    return function


add = _made_binary("add", "x + y.")
subtract = _made_binary("subtract", "x - y.")
multiply = _made_binary("multiply", "x * y.")
div = _made_binary("divide", "x / y; of integers, towards zero. Division by zero is undefined.")
rem = _made_binary("rest", "What `div` leaves, with the sign of x.")
maximum = _made_binary("maximum", "The greater one; NaN if either is.")
minimum = _made_binary("minimum", "The lesser one; NaN if either is.")
bitwise_and = _made_binary("bitwise_and", "x & y.")
bitwise_or = _made_binary("bitwise_or", "x | y.")
bitwise_xor = _made_binary("bitwise_xor", "x ^ y.")
left_shift = _made_binary("left_shift", "x << y; undefined from the width on.")
right_shift = _made_binary("right_shift", "x >> y, by the sign of integers that have one.")
shift_right_logical = _made_binary("right_shift_logical", "x >> y with zeros from the left.")
arctan2 = _made_binary("arctan2", "The angle of the point (y, x).")
exp = _made_unary("exp", "e to the x.")
exp2 = _made_unary("exp2", "2 to the x.")
log = _made_unary("log", "Natural logarithm.")
log1p = _made_unary("log1p", "Logarithm of 1 + x.")
log2 = _made_unary("log2", "Logarithm to the base 2.")
sqrt = _made_unary("sqrt", "Square root.")
rsqrt = _made_unary("rsqrt", "One over the square root.")
sin = _made_unary("sin", "Sine.")
cos = _made_unary("cos", "Cosine.")
tan = _made_unary("tan", "Tangent.")
tanh = _made_unary("tanh", "Hyperbolic tangent.")
erf = _made_unary("erf", "Error function.")
floor = _made_unary("floor", "The next whole number below.")
ceil = _made_unary("ceil", "The next whole number above.")
round_ = _made_unary("round", "The nearest whole number, halves to even ones.")
trunc = _made_unary("trunc", "The whole number towards zero.")
abs_ = _made_unary("absolute", "x without its sign.")
population_count = _made_unary("population_count", "How many bits are set.")
clz = _made_unary("clz", "How many leading bits are zero.")
equal = _made_comparison("eq", "x == y.")
not_equal = _made_comparison("ne", "x != y.")
less = _made_comparison("lt", "x < y.")
less_equal = _made_comparison("le", "x <= y.")
greater = _made_comparison("gt", "x > y.")
greater_equal = _made_comparison("ge", "x >= y.")


def true_divide(x: ArrayLike, y: ArrayLike) -> Value:
    """x / y as floats: integers become f32."""
    a, b = pair(x, y)
    return div(a, b) if is_float(a) else div(cast(a, F32), cast(b, F32))


def floor_divide(x: ArrayLike, y: ArrayLike) -> Value:
    """x // y, rounded down as Python does."""
    a, b = pair(x, y)
    if is_float(a):
        return floor(div(a, b))
    quotient = div(a, b)
    if kind_of(a.dtype) == "u" or (is_number(y) and y > 0 and is_natural(x)):
        return quotient
    differs = not_equal(less(a, 0), less(b, 0)) & not_equal(rem(a, b), 0)
    return where(differs, quotient - 1, quotient)


def remainder(x: ArrayLike, y: ArrayLike) -> Value:
    """x % y, with the sign of y as Python has it."""
    a, b = pair(x, y)
    rest = rem(a, b)
    if kind_of(a.dtype) == "u" or (is_number(y) and y > 0 and is_natural(x)):
        return rest
    differs = not_equal(less(rest, 0), less(b, 0)) & not_equal(rest, 0)
    return where(differs, rest + b, rest)


def is_natural(value: Any) -> bool:
    """Whether a value is known not to be negative: indices of the grid, counters of loops, and
    what is made of them by sums, products and quotients."""
    if is_number(value):
        return bool(value >= 0)
    ssa = value.ssa
    hint = ssa.owner
    name = getattr(hint, "name", "")
    if name in ("arith.addi", "arith.muli", "arith.divsi", "arith.remsi", "arith.minsi"):
        return all(is_natural(Value(operand, (), value.dtype)) for operand in hint.operands)
    if name == "arith.constant":
        stored: Any = hint.properties["value"]
        return not value.shape and stored.value.data >= 0
    if name in ("tpu.device_id", "tpu.iteration_bound"):
        return True

    return any(ssa is index.ssa for index in current().grid_indices) or ssa in current().natural


def power(x: ArrayLike, y: ArrayLike) -> Value:
    """x to the y; whole exponents become products."""
    if is_number(y) and float(y).is_integer() and 0 <= int(y) <= 64:
        return _integer_power(as_value(x), int(y))
    return binary("power", x, y)


def _integer_power(x: Value, exponent: int) -> Value:
    if exponent == 0:
        return constant(1, x.dtype, x.shape)
    result: Value | None = None
    square = x
    while True:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = square * square


def negative(x: ArrayLike) -> Value:
    """-x."""
    value = as_value(x)
    if is_float(value):
        return Value(emit_one("arith.negf", [value.ssa], value.type), value.shape, value.dtype)
    return subtract(0, value)


def invert(x: ArrayLike) -> Value:
    """Not x, of booleans; all bits turned, of integers."""
    value = as_value(x)
    return binary("bitwise_xor", value, True if value.dtype == BOOL else -1)


def square(x: ArrayLike) -> Value:
    """x * x."""
    return multiply(x, x)


def reciprocal(x: ArrayLike, *, approx: bool = False, full_range: bool = True) -> Value:
    """1 / x of f32 elements; `approx` is quicker and right to about 12 bits, without `full_range` huge and
    tiny x have no result.
    """
    value = as_value(x)
    if value.dtype != F32 or not value.shape:
        return true_divide(1.0, value)
    more = {"approx": flag(approx), "full_range": flag(full_range)}
    return Value(emit_one("tpu.reciprocal", [value.ssa], value.type, more), value.shape, F32)


def sign(x: ArrayLike) -> Value:
    """-1, 0 or 1."""
    value = as_value(x)
    one = where(greater(value, 0), constant(1, value.dtype, value.shape), 0)
    return one if kind_of(value.dtype) == "u" else where(less(value, 0), -1, one)


def isnan(x: ArrayLike) -> Value:
    """Whether elements are NaN."""
    value = as_value(x)
    return not_equal(value, value)


def isfinite(x: ArrayLike) -> Value:
    """Whether f32 elements are neither NaN nor infinite."""
    value = cast(as_value(x), F32)
    ssa = emit_one("tpu.weird", [value.ssa], vector_type(value.shape, BOOL))
    return invert(Value(ssa, value.shape, BOOL))


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Value:
    """Elements of x where the condition holds, of y elsewhere."""
    a, b = pair(x, y)
    chosen = as_value(condition)
    if chosen.dtype != BOOL:
        chosen = cast_bool(chosen)
    shape = broadcast_shape(chosen.shape, a.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    if chosen.shape:
        chosen = broadcast_to(chosen, shape)
    return Value(emit_one("arith.select", [chosen.ssa, a.ssa, b.ssa], a.type), shape, a.dtype)


def clip(x: ArrayLike, min: ArrayLike = None, max: ArrayLike = None) -> Value:
    """x, but not below `min` nor above `max`."""
    value = as_value(x)
    if min is not None:
        value = maximum(value, min)
    return value if max is None else minimum(value, max)


def expm1(x: ArrayLike) -> Value:
    """e to the x, less 1, right near 0 too: 2 t / (1 - t) with t the hyperbolic tangent of x / 2."""
    value = as_value(x)
    t = tanh(value * 0.5)
    return where(less(abs_(value), 1.0), 2.0 * t / (1.0 - t), exp(value) - 1.0)


def logistic(x: ArrayLike) -> Value:
    """1 / (1 + e to the -x)."""
    value = as_value(x)
    return true_divide(1.0, exp(negative(value)) + 1.0)


def logical_and(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether neither is zero."""
    return bitwise_and(cast_bool(as_value(x)), cast_bool(as_value(y)))


def logical_or(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether one is not zero."""
    return bitwise_or(cast_bool(as_value(x)), cast_bool(as_value(y)))


def logical_not(x: ArrayLike) -> Value:
    """Whether it is zero."""
    return invert(cast_bool(as_value(x)))


ON_NUMPY.update(
    {
        np.add: add,
        np.subtract: subtract,
        np.multiply: multiply,
        np.true_divide: true_divide,
        np.floor_divide: floor_divide,
        np.remainder: remainder,
        np.power: power,
        np.maximum: maximum,
        np.minimum: minimum,
        np.bitwise_and: bitwise_and,
        np.bitwise_or: bitwise_or,
        np.bitwise_xor: bitwise_xor,
        np.logical_and: logical_and,
        np.logical_or: logical_or,
        np.logical_not: logical_not,
        np.left_shift: left_shift,
        np.right_shift: right_shift,
        np.arctan2: arctan2,
        np.exp: exp,
        np.exp2: exp2,
        np.expm1: expm1,
        np.log: log,
        np.log1p: log1p,
        np.log2: log2,
        np.sqrt: sqrt,
        np.sin: sin,
        np.cos: cos,
        np.tan: tan,
        np.tanh: tanh,
        np.floor: floor,
        np.ceil: ceil,
        np.rint: round_,
        np.trunc: trunc,
        np.absolute: abs_,
        np.negative: negative,
        np.invert: invert,
        np.square: square,
        np.sign: sign,
        np.isnan: isnan,
        np.isfinite: isfinite,
        np.equal: equal,
        np.not_equal: not_equal,
        np.less: less,
        np.less_equal: less_equal,
        np.greater: greater,
        np.greater_equal: greater_equal,
        np.where: where,
        np.clip: clip,
    }
)


def cast(value: Value, dtype: DType) -> Value:
    """The same numbers as elements of another type; what does not fit is undefined."""
    old = value.dtype
    if old == dtype:
        return value
    kinds = kind_of(old) + kind_of(dtype)
    if kinds[1] == "b":
        return cast_bool(value)
    if kinds[0] == "b":
        wide = from_bool(value, I32)
        return wide if dtype == I32 else cast(wide, dtype)
    widths = bits_of(old), bits_of(dtype)
    if kinds == "ff":
        if widths[0] == widths[1]:
            return cast(cast(value, F32), dtype)
        return _to("arith.extf" if widths[1] > widths[0] else "arith.truncf", value, dtype)
    if kinds[0] == "f":
        return _to("arith.fptosi" if kinds[1] == "i" else "arith.fptoui", value, dtype)
    if kinds[1] == "f":
        return _to("arith.sitofp" if kinds[0] == "i" else "arith.uitofp", value, dtype)
    if widths[0] == widths[1]:
        return Value(value.ssa, value.shape, dtype)
    wider = "arith.extsi" if kinds[0] == "i" else "arith.extui"
    return _to(wider if widths[1] > widths[0] else "arith.trunci", value, dtype)


def _to(name: str, value: Value, dtype: DType) -> Value:
    type_ = vector_type(value.shape, dtype)
    return Value(emit_one(name, [value.ssa], type_), value.shape, dtype)


def bitcast_convert_type(value: ArrayLike, dtype: DTypeLike) -> Value:
    """The same bits as elements of a type of the same width."""
    x, new = as_value(value), as_dtype(dtype)
    if bits_of(x.dtype) != bits_of(new):
        raise bad_type(
            f"{x.dtype.name} and {new.name} differ in width", "pltpu.bitcast packs rows instead"
        )
    if kind_of(x.dtype) in "iu" and kind_of(new) in "iu":
        return Value(x.ssa, x.shape, new)
    return _to("arith.bitcast", x, new)


def bitcast(value: ArrayLike, dtype: DTypeLike) -> Value:
    """The same bits as elements of another width: rows are packed, even ones in the low half."""
    x, new = as_value(value), as_dtype(dtype)
    old_bits, new_bits = bits_of(x.dtype), bits_of(new)
    if old_bits == new_bits:
        return bitcast_convert_type(x, new)
    if x.ndim < 2:
        raise bad_shape("bitcast to another width packs rows: it needs two dimensions")
    rows = x.shape[-2] * old_bits
    if rows % new_bits:
        raise bad_shape(f"{x.shape[-2]} rows of {x.dtype.name} are no whole rows of {new.name}")
    shape = (*x.shape[:-2], rows // new_bits, x.shape[-1])
    return Value(emit_one("tpu.bitcast", [x.ssa], vector_type(shape, new)), shape, new)


def relu(value: ArrayLike) -> Value:
    """x, or 0 below it."""
    return maximum(value, 0)


__all__ = ["BOOL", "bitcast", "bitcast_convert_type", "cast", "relu"]
