"""Elementwise functions of one array, each a rule on traced arrays.

Source of domains and special values: Python array API standard 2024.12, "Element-wise functions".
"""

# The standard's names are those of Python's own functions.
# ruff: noqa: A001
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import elementwise_inverse, ops
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.operands import as_array, checked, with_weak

Rule = Callable[[Array], Array]


def unary(name: str, category: str, rule: Rule, summary: str) -> Callable[..., Array]:
    """The public function of a rule; `category` says which types it takes."""

    def record(x: Array, *, dtype: DType) -> Array:
        return rule(ops.convert(x, dtype))

    record.__name__ = name
    run = kernel(record)

    def function(x: Any, /) -> Array:
        array = as_array(x, name)
        dtype = checked(name, category, array.dtype)
        return with_weak(run(array, dtype=dtype), array.weak)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def opcode(name: str) -> Rule:
    """The rule that is one instruction."""
    return lambda x: ops.unary(name, x)


def is_complex(x: Array) -> bool:
    """Whether the elements are complex numbers."""
    return dt.kind_of(x.dtype) == "c"


def is_float(x: Array) -> bool:
    """Whether the elements are real floats."""
    return dt.kind_of(x.dtype) == "f"


def by_parts(rule: Rule) -> Rule:
    """A rule of real numbers, for complex ones on both parts."""

    def apply(x: Array) -> Array:
        if not is_complex(x):
            return rule(x)
        return ops.complex_(rule(real_part(x)), rule(imaginary_part(x)))

    return apply


def real_part(x: Array) -> Array:
    """The real part."""
    return ops.unary("real", x, dt.real_of(x.dtype)) if is_complex(x) else x


def imaginary_part(x: Array) -> Array:
    """The imaginary part; 0 for real numbers."""
    return ops.unary("imag", x, dt.real_of(x.dtype)) if is_complex(x) else ops.like(0, x)


def on_floats(rule: Rule) -> Rule:
    """A rule of floats that leaves integers as they are."""
    return lambda x: rule(x) if is_float(x) or is_complex(x) else x


def magnitude(x: Array) -> Array:
    """|x|, a real number."""
    if dt.kind_of(x.dtype) == "u":
        return x
    return ops.unary("abs", x, dt.real_of(x.dtype))


def _isfinite(x: Array) -> Array:
    if is_complex(x):
        return ops.binary("and", _isfinite(real_part(x)), _isfinite(imaginary_part(x)))
    if not is_float(x):
        return ops.splat(True, dt.bool, x.shape)
    return ops.unary("is-finite", x, dt.bool)


def _isinf(x: Array) -> Array:
    if is_complex(x):
        return ops.binary("or", _isinf(real_part(x)), _isinf(imaginary_part(x)))
    if not is_float(x):
        return ops.splat(False, dt.bool, x.shape)
    return ops.compare("EQ", magnitude(x), ops.like(math.inf, x))


def is_nan(x: Array) -> Array:
    """Whether elements are no numbers."""
    if is_complex(x):
        return ops.binary("or", is_nan(real_part(x)), is_nan(imaginary_part(x)))
    if not is_float(x):
        return ops.splat(False, dt.bool, x.shape)
    return ops.compare("NE", x, x)


def _log_of_base(base: float) -> Rule:
    def rule(x: Array) -> Array:
        found = ops.unary("log", x)
        if not is_complex(x):
            return ops.binary("divide", found, ops.like(math.log(base), found))
        scale = ops.splat(math.log(base), dt.real_of(x.dtype), x.shape)
        return ops.complex_(
            ops.binary("divide", real_part(found), scale),
            ops.binary("divide", imaginary_part(found), scale),
        )

    return rule


def as_bool(x: Array) -> Array:
    """Whether elements are not 0."""
    return ops.convert(x, dt.bool)


def _conj(x: Array) -> Array:
    if not is_complex(x):
        return x
    return ops.complex_(real_part(x), ops.unary("negate", imaginary_part(x)))


def _sign(x: Array) -> Array:
    if dt.kind_of(x.dtype) == "u":
        return ops.convert(ops.compare("NE", x, ops.like(0, x)), x.dtype)
    found = ops.unary("sign", x)
    if not (is_float(x) or is_complex(x)):
        return found
    # HLO keeps the sign of a zero, the standard asks for +0.
    zero = ops.like(0, x)
    return ops.select(ops.compare("EQ", x, zero), zero, found)


def bits_of(x: Array) -> Array:
    """The bits of floats as signed integers."""
    return ops.unary("bitcast-convert", x, getattr(dt, f"int{x.dtype.itemsize * 8}"))


def has_sign(x: Array) -> Array:
    """Whether the sign bit of floats is set."""
    bits = bits_of(x)
    return ops.compare("LT", bits, ops.like(0, bits))


def _trunc(x: Array) -> Array:
    is_negative = ops.compare("LT", x, ops.like(0, x))
    return ops.select(is_negative, ops.unary("ceil", x), ops.unary("floor", x))


abs = unary("abs", "numeric", magnitude, "The magnitude.")
acos = unary("acos", "float", elementwise_inverse.acos, "The arc cosine.")
acosh = unary("acosh", "float", elementwise_inverse.acosh, "The inverse hyperbolic cosine.")
asin = unary("asin", "float", elementwise_inverse.asin, "The arc sine.")
asinh = unary("asinh", "float", elementwise_inverse.asinh, "The inverse hyperbolic sine.")
atan = unary("atan", "float", elementwise_inverse.atan, "The arc tangent.")
atanh = unary("atanh", "float", elementwise_inverse.atanh, "The inverse hyperbolic tangent.")
bitwise_invert = unary("bitwise_invert", "bits", opcode("not"), "The bitwise complement.")
ceil = unary("ceil", "real", on_floats(opcode("ceil")), "The least integer not below.")
conj = unary("conj", "numeric", _conj, "The complex conjugate.")
cos = unary("cos", "float", opcode("cosine"), "The cosine.")
cosh = unary("cosh", "float", elementwise_inverse.cosh, "The hyperbolic cosine.")
exp = unary("exp", "float", opcode("exponential"), "e to the power of the elements.")
expm1 = unary("expm1", "float", elementwise_inverse.expm1, "exp(x) - 1, exact near 0.")
floor = unary("floor", "real", on_floats(opcode("floor")), "The greatest integer not above.")
imag = unary("imag", "numeric", imaginary_part, "The imaginary part.")
isfinite = unary("isfinite", "any", _isfinite, "Whether elements are neither infinite nor NaN.")
isinf = unary("isinf", "any", _isinf, "Whether elements are infinite.")
isnan = unary("isnan", "any", is_nan, "Whether elements are NaN.")
log = unary("log", "float", opcode("log"), "The natural logarithm.")
log10 = unary("log10", "float", _log_of_base(10), "The logarithm to base 10.")
log1p = unary("log1p", "float", opcode("log-plus-one"), "log(1 + x), exact near 0.")
log2 = unary("log2", "float", _log_of_base(2), "The logarithm to base 2.")
logical_not = unary(
    "logical_not", "any", lambda x: ops.unary("not", as_bool(x)), "Whether elements are 0."
)
negative = unary("negative", "numeric", opcode("negate"), "The elements with the other sign.")
positive = unary("positive", "numeric", lambda x: x, "The elements as they are.")
real = unary("real", "numeric", real_part, "The real part.")
reciprocal = unary(
    "reciprocal", "float", lambda x: ops.binary("divide", ops.like(1, x), x), "1 / x."
)
round = unary(
    "round",
    "numeric",
    on_floats(by_parts(opcode("round-nearest-even"))),
    "The nearest integer, halves to even.",
)
sign = unary("sign", "numeric", _sign, "-1, 0 or 1; x / |x| for complex numbers.")
signbit = unary("signbit", "real float", has_sign, "Whether the sign bit is set.")
sin = unary("sin", "float", opcode("sine"), "The sine.")
sinh = unary("sinh", "float", elementwise_inverse.sinh, "The hyperbolic sine.")
sqrt = unary("sqrt", "float", opcode("sqrt"), "The square root.")
square = unary("square", "numeric", lambda x: ops.binary("multiply", x, x), "x * x.")
tan = unary("tan", "float", elementwise_inverse.tan, "The tangent.")
tanh = unary("tanh", "float", elementwise_inverse.tanh, "The hyperbolic tangent.")
trunc = unary("trunc", "real", on_floats(_trunc), "The nearest integer towards 0.")
