"""Elementwise functions of two arrays, each a rule on arrays of one shape and type.

Source of domains and special values: Python array API standard 2024.12, "Element-wise functions".
"""

# The standard's names are those of Python's own functions.
# ruff: noqa: A001
# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import (
    as_bool,
    bits_of,
    has_sign,
    is_float,
    is_nan,
    magnitude,
    real_part,
)
from mlirhlo.numpy.operands import (
    as_array,
    broadcast_shapes,
    checked,
    common_dtype,
    is_scalar,
    operand,
    weak_of,
    with_weak,
)

Rule = Callable[[Array, Array], Array]


def binary(name: str, category: str, rule: Rule, summary: str) -> Callable[..., Array]:
    """The public function of a rule; `category` says which types it takes."""

    def record(x1: Array, x2: Array, *, dtype: DType, shape: tuple[int, ...]) -> Array:
        a, b = (ops.broadcast_to(ops.convert(x, dtype), shape) for x in (x1, x2))
        return rule(a, b)

    record.__name__ = name
    run = kernel(record)

    def function(x1: Any, x2: Any, /) -> Array:
        x1, x2 = given = operand(x1, name), operand(x2, name)
        dtype = common_dtype(name, category, given)
        a, b = as_array(x1, name, dtype), as_array(x2, name, dtype)
        shape = broadcast_shapes(name, a.shape, b.shape)
        return with_weak(run(a, b, dtype=dtype, shape=shape), weak_of(given))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def opcode(name: str) -> Rule:
    """The rule that is one instruction."""
    return lambda a, b: ops.binary(name, a, b)


def comparison(direction: str) -> Rule:
    """The rule of a comparison."""
    return lambda a, b: ops.compare(direction, a, b)


def logical(name: str) -> Rule:
    """The rule of a connective, for elements of any type."""
    return lambda a, b: ops.binary(name, as_bool(a), as_bool(b))


def _right_shift(a: Array, b: Array) -> Array:
    is_unsigned = dt.kind_of(a.dtype) == "u"
    return ops.binary("shift-right-logical" if is_unsigned else "shift-right-arithmetic", a, b)


def _copysign(a: Array, b: Array) -> Array:
    size = magnitude(a)
    return ops.select(has_sign(b), ops.unary("negate", size), size)


def _remainder(a: Array, b: Array) -> Array:
    """The remainder with the sign of `b`."""
    rest = ops.binary("remainder", a, b)
    if dt.kind_of(a.dtype) == "u":
        return rest
    zero = ops.like(0, a)
    is_off = ops.binary(
        "and",
        ops.compare("NE", rest, zero),
        ops.compare("NE", ops.compare("LT", rest, zero), ops.compare("LT", b, zero)),
    )
    found = ops.select(is_off, ops.binary("add", rest, b), rest)
    if not is_float(a):
        return found
    return ops.select(ops.compare("EQ", rest, zero), _copysign(rest, b), found)


def _floor_divide(a: Array, b: Array) -> Array:
    if dt.kind_of(a.dtype) == "u":
        return ops.binary("divide", a, b)
    zero, one = ops.like(0, a), ops.like(1, a)
    if not is_float(a):
        quotient, rest = ops.binary("divide", a, b), ops.binary("remainder", a, b)
        is_below = ops.binary(
            "and",
            ops.compare("NE", rest, zero),
            ops.compare("NE", ops.compare("LT", rest, zero), ops.compare("LT", b, zero)),
        )
        return ops.select(is_below, ops.binary("subtract", quotient, one), quotient)
    # From the remainder, which is exact: rounding a / b first may reach the next integer.
    plain = ops.unary("floor", ops.binary("divide", a, b))
    whole = ops.binary("divide", ops.binary("subtract", a, _remainder(a, b)), b)
    exact = ops.unary("round-nearest-even", whole)
    exact = ops.select(ops.compare("EQ", exact, zero), _copysign(exact, plain), exact)
    is_ordinary = ops.binary(
        "and", ops.unary("is-finite", plain, dt.bool), ops.unary("is-finite", b, dt.bool)
    )
    is_ordinary = ops.binary("and", is_ordinary, ops.unary("is-finite", exact, dt.bool))
    return ops.select(is_ordinary, exact, plain)


def _hypot(a: Array, b: Array) -> Array:
    if a.dtype in (dt.float16, dt.bfloat16):
        wide = _hypot(ops.convert(a, dt.float32), ops.convert(b, dt.float32))
        return ops.convert(wide, a.dtype)
    return ops.unary("abs", ops.complex_(a, b), a.dtype)


def _logaddexp(a: Array, b: Array) -> Array:
    gap = ops.binary("subtract", a, b)
    smaller = ops.unary("exponential", ops.unary("negate", magnitude(gap)))
    found = ops.binary("add", ops.binary("maximum", a, b), ops.unary("log-plus-one", smaller))
    # Equal infinities have no gap, and NaN goes on.
    return ops.select(is_nan(gap), ops.binary("add", a, b), found)


def _pow(a: Array, b: Array) -> Array:
    found = ops.binary("power", a, b)
    if dt.kind_of(a.dtype) != "c":
        return found
    # By way of a logarithm 0 has no powers, but those that shrink are 0.
    shrinks = ops.compare("GT", real_part(b), ops.splat(0, dt.real_of(b.dtype), b.shape))
    zero = ops.like(0, a)
    return ops.select(ops.binary("and", ops.compare("EQ", a, zero), shrinks), zero, found)


def _nextafter(a: Array, b: Array) -> Array:
    bits = bits_of(a)
    zero = ops.like(0, a)
    # Bits of a sign and a magnitude: away from 0 is one more, whatever the sign.
    is_up = ops.compare("GT", b, a)
    is_away = ops.compare("EQ", is_up, ops.compare("GT", a, zero))
    step = ops.select(is_away, ops.like(1, bits), ops.like(-1, bits))
    moved = ops.unary("bitcast-convert", ops.binary("add", bits, step), a.dtype)
    least = ops.unary("bitcast-convert", ops.like(1, bits), a.dtype)
    moved = ops.select(ops.compare("EQ", a, zero), _copysign(least, b), moved)
    moved = ops.select(ops.compare("EQ", a, b), b, moved)
    is_unknown = ops.binary("or", is_nan(a), is_nan(b))
    return ops.select(is_unknown, ops.binary("add", a, b), moved)


add = binary("add", "numeric", opcode("add"), "x1 + x2.")
atan2 = binary("atan2", "real float", opcode("atan2"), "The angle of the point (x2, x1).")
bitwise_and = binary("bitwise_and", "bits", opcode("and"), "The bitwise and.")
bitwise_left_shift = binary("bitwise_left_shift", "integer", opcode("shift-left"), "x1 << x2.")
bitwise_or = binary("bitwise_or", "bits", opcode("or"), "The bitwise or.")
bitwise_right_shift = binary(
    "bitwise_right_shift", "integer", _right_shift, "x1 >> x2, with the sign."
)
bitwise_xor = binary("bitwise_xor", "bits", opcode("xor"), "The bitwise exclusive or.")
copysign = binary("copysign", "real float", _copysign, "x1 with the sign of x2.")
divide = binary("divide", "float", opcode("divide"), "x1 / x2.")
equal = binary("equal", "any", comparison("EQ"), "Whether x1 == x2.")
floor_divide = binary("floor_divide", "real", _floor_divide, "floor(x1 / x2).")
greater = binary("greater", "real", comparison("GT"), "Whether x1 > x2.")
greater_equal = binary("greater_equal", "real", comparison("GE"), "Whether x1 >= x2.")
hypot = binary("hypot", "real float", _hypot, "sqrt(x1² + x2²), without overflow.")
less = binary("less", "real", comparison("LT"), "Whether x1 < x2.")
less_equal = binary("less_equal", "real", comparison("LE"), "Whether x1 <= x2.")
logaddexp = binary("logaddexp", "real float", _logaddexp, "log(exp(x1) + exp(x2)).")
logical_and = binary("logical_and", "any", logical("and"), "Whether both are not 0.")
logical_or = binary("logical_or", "any", logical("or"), "Whether one is not 0.")
logical_xor = binary("logical_xor", "any", logical("xor"), "Whether just one is not 0.")
maximum = binary("maximum", "real", opcode("maximum"), "The greater; NaN wins.")
minimum = binary("minimum", "real", opcode("minimum"), "The lesser; NaN wins.")
multiply = binary("multiply", "numeric", opcode("multiply"), "x1 * x2.")
nextafter = binary("nextafter", "real float", _nextafter, "The next float after x1 towards x2.")
not_equal = binary("not_equal", "any", comparison("NE"), "Whether x1 != x2.")
pow = binary("pow", "numeric", _pow, "x1 to the power of x2.")
remainder = binary("remainder", "real", _remainder, "The remainder with the sign of x2.")
subtract = binary("subtract", "numeric", opcode("subtract"), "x1 - x2.")


@kernel
def _clip(x: Array, *bounds: Array, dtype: DType, shape: tuple[int, ...], ends: str) -> Array:
    found = ops.broadcast_to(x, shape)
    for end, bound in zip(ends, bounds, strict=True):
        limit = ops.broadcast_to(ops.convert(bound, dtype), shape)
        found = ops.binary("maximum" if end == "l" else "minimum", found, limit)
    return found


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """The elements, those below `min` raised to it and those above `max` lowered to it."""
    array = as_array(x, "clip")
    dtype = checked("clip", "real", array.dtype)
    bounds: list[Array] = []
    ends = ""
    for end, bound in (("l", min), ("h", max)):
        if bound is None:
            continue
        if is_scalar(bound) and dt.kind_of(dtype) in "iu" and not isinstance(bound, complex):
            # What no element can reach bounds nothing, so it may be any number.
            info = dt.iinfo(dtype)
            whole = (
                bound
                if isinstance(bound, int) or not math.isfinite(bound)
                else (math.ceil(bound) if end == "l" else math.floor(bound))
            )
            bound = int(_between(whole, info.min, info.max))
        bounds.append(as_array(bound, "clip", dtype))
        ends += end
    shape = broadcast_shapes("clip", array.shape, *(b.shape for b in bounds))
    return _clip(array, *bounds, dtype=dtype, shape=shape, ends=ends)


def _between(value: Any, least: int, greatest: int) -> Any:
    return least if value < least else min(value, greatest)
