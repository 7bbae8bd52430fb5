"""`math`: functions of floats, narrow types in f32; a few of integers."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.interp.ops import elementwise_math
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.interpreter.numbers import as_unsigned, is_float, lifted, to_float, width_of
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _erf(x: Any) -> Any:
    flat = np.atleast_1d(x).astype(np.float64)
    return elementwise_math.erf(flat, single=x.dtype != np.float64).reshape(np.shape(x))


def _erfc(x: Any) -> Any:
    import math

    wide = np.atleast_1d(x).astype(np.float64)
    return np.array([math.erfc(v) for v in wide.ravel().tolist()]).reshape(np.shape(x))


def _sign_kept(x: Any, y: Any) -> Any:
    return np.copysign(x, y)


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once for f32."""
    if a.dtype == np.float64:
        return a * b + c
    wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return wide.astype(a.dtype)


def _clamped(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "absf": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "clampf": _clamped,
    "copysign": _sign_kept,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _erf,
    "erfc": _erfc,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "fma": _fused,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "powf": np.power,
    "round": elementwise_math.round_away,
    "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


@means(*(f"math.{name}" for name in FUNCTIONS))
def function_of_floats(op: Operation, scope: Scope) -> Run:
    """A function of floats."""
    return lifted(FUNCTIONS[name_of(op).removeprefix("math.")], dtype_in(op.results[0].type))


@means("math.isnan", "math.isinf", "math.isfinite", "math.isnormal", "tpu.weird")
def class_of_floats(op: Operation, scope: Scope) -> Run:
    """Which floats are NaN, infinite and so on; `tpu.weird`: NaN or infinite."""
    tests: dict[str, Callable[[Any], Any]] = {
        "math.isnan": np.isnan,
        "math.isinf": np.isinf,
        "math.isfinite": np.isfinite,
        "math.isnormal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
        "tpu.weird": lambda x: ~np.isfinite(x),
    }
    test = tests[name_of(op)]
    return lambda frame, a: test(to_float(a))


@means("math.absi")
def absolute(op: Operation, scope: Scope) -> Run:
    """The magnitude; the least number stays itself."""
    return lambda frame, a: np.abs(a)


@means("math.ctlz", "math.cttz", "math.ctpop")
def count_bits(op: Operation, scope: Scope) -> Run:
    """Zeros before the first one bit, after the last one, and the number of one bits."""
    name, dtype = name_of(op), dtype_in(op.results[0].type)
    width = width_of(dtype)

    def run(frame: Activation, a: Any) -> Any:
        bits = as_unsigned(a)
        if name == "math.ctpop":
            return np.bitwise_count(bits).astype(dtype)
        if name == "math.cttz":
            low = bits & (~bits + bits.dtype.type(1))
            return np.bitwise_count((low - bits.dtype.type(1)) & ~low).clip(0, width).astype(dtype)
        for shift in (1, 2, 4, 8, 16, 32):
            if shift < width:
                bits = bits | (bits >> bits.dtype.type(shift))
        return (width - np.bitwise_count(bits)).astype(dtype)

    return run


@means("math.ipowi", "math.fpowi")
def integer_power(op: Operation, scope: Scope) -> Run:
    """A power with an integer exponent."""
    dtype = dtype_in(op.results[0].type)
    if is_float(dtype):
        return lambda frame, a, b: np.power(to_float(a), b.astype(np.float32)).astype(dtype)

    def run(frame: Activation, a: Any, b: Any) -> Any:
        result = np.ones_like(a)
        base, left = a + 0, np.abs(b)
        while np.any(left):
            result = np.where(left & 1, result * base, result).astype(dtype)
            base, left = base * base, left >> 1
        unit = np.where(a == 1, 1, np.where(a == -1, np.where(b & 1, -1, 1), 0))
        return np.where(b < 0, unit, result).astype(dtype)[()]

    return run


@means("tpu.logistic")
def logistic(op: Operation, scope: Scope) -> Run:
    """1 / (1 + e**-x)."""
    return lifted(lambda x: 1 / (1 + np.exp(-x)), dtype_in(op.results[0].type))


@means("tpu.reciprocal")
def reciprocal(op: Operation, scope: Scope) -> Run:
    """1 / x, also where an approximation would do."""
    return lifted(lambda x: 1 / x, dtype_in(op.results[0].type))
