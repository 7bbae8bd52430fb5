"""Changes of element type, rounding to fewer bits, comparisons and choices."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import BF16, F16, F32, F64, Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.numerics import ArrayFunction, lift, total_order_key, unsupported, work_dtype
from mlirhlo.interp.ops.elementwise import element_type, function
from mlirhlo.interp.registry import Array, Frame, Program, Run, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.elementwise import (
        ClampOp,
        CompareOp,
        ComplexOp,
        ConvertOp,
        ReducePrecisionOp,
        SelectOp,
        StochasticConvertOp,
    )


# ---------------------------------------------------------------- convert


@prepares("convert")
def convert_op(op: ConvertOp, program: Program) -> Run:
    """The operand in another element type; see `convert`."""
    apply = converter(element_type(op), cast(ArrayShape, op.shape).element_type)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return apply(inputs[0])

    return run


def convert(array: Array, source: PrimitiveType, target: PrimitiveType) -> Array:
    """`array` in another element type.

    Floats round to nearest even and overflow as the target does (to infinity, NaN, or its largest
    value); float to integer truncates and saturates, NaN becoming 0; integers wrap; pred is
    `x != 0`; complex to real drops the imaginary part.
    """
    return converter(source, target)(array)


@lru_cache(maxsize=4096)
def converter(source: PrimitiveType, target: PrimitiveType) -> ArrayFunction:
    """The function of arrays that converts between two element types."""
    if source is target:
        return lambda x: x
    dtype = target.dtype
    if target.kind is Kind.PRED:
        work = work_dtype(source)
        return lambda x: x.astype(work) != 0
    if source.is_complex:
        if target.is_complex:
            return lambda x: x.astype(dtype)
        parts = converter(source.real, target)
        return lambda x: parts(x.real)
    if target.is_complex:
        to_part = converter(source, target.real)
        return lambda x: to_part(x).astype(dtype)
    if target.is_integer:
        if source.is_float:
            return lambda x: saturate(x, source, target)
        return _between_integers(source, target)
    if source is F64 and target is not F32 and target.bits < 32:
        return _from_double(target)
    if source.is_float:
        return lambda x: x.astype(work_dtype(source)).astype(dtype)
    if target.bits < 32 and source.bits > 16:
        return lambda x: x.astype(np.float32).astype(dtype)
    return lambda x: x.astype(work_dtype(source)).astype(dtype)


def _from_double(target: PrimitiveType) -> ArrayFunction:
    if target.bits == 16 and target is not BF16:
        return lambda x: x.astype(np.float16)
    return lambda x: x.astype(np.float32).astype(target.dtype)


def _between_integers(source: PrimitiveType, target: PrimitiveType) -> ArrayFunction:
    work, wide, dtype = work_dtype(source), work_dtype(target), target.dtype
    return lambda x: x.astype(work).astype(wide).astype(dtype)


def saturate(array: Array, source: PrimitiveType, target: PrimitiveType) -> Array:
    """Floats truncated to integers; beyond the range its ends, NaN 0."""
    low = -(1 << (target.bits - 1)) if target.is_signed else 0
    high = low + (1 << target.bits) - 1
    wide = array.astype(np.float64)
    work = work_dtype(target)
    # The first double at or above the range is a power of two (or high itself, then exact).
    above, below = wide >= float(high), wide <= float(low)
    inside = np.where(above | below | np.isnan(wide), 0.0, wide)
    result = np.trunc(inside).astype(work)
    result = np.where(above, np.array(high, work), np.where(below, np.array(low, work), result))
    return result.astype(target.dtype)


# ---------------------------------------------------------------- fewer bits


@prepares("reduce-precision")
def reduce_precision_op(op: ReducePrecisionOp, program: Program) -> Run:
    """The operand rounded to fewer exponent and mantissa bits, in its own type."""
    type_, exponent, mantissa = element_type(op), op.exponent_bits, op.mantissa_bits
    if not type_.is_float:
        raise unsupported("reduce-precision", type_)
    if type_ in (F16, F64):
        apply: ArrayFunction = lambda x: reduce_precision(x, exponent, mantissa)  # noqa: E731
    else:
        apply = lift(type_, lambda x: reduce_precision(x, exponent, mantissa))

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return apply(inputs[0])

    return run


_FIELDS = {2: (5, 10), 4: (8, 23), 8: (11, 52)}
"""Exponent and mantissa bits by element size."""


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """f16, f32 or f64 rounded to nearest even in a format of fewer bits.

    A denormal keeps its own unit: it is rounded as its bits stand, like any other number.
    Above its largest number the result is infinite, below its least normal one a zero of that
    sign; NaN stays NaN.
    """
    own_exponent, own_mantissa = _FIELDS[x.dtype.itemsize]
    bits = x.view(f"u{x.dtype.itemsize}")
    word = bits.dtype.type
    dropped = own_mantissa - mantissa_bits
    result = bits
    if dropped > 0:
        odd = (bits >> word(dropped)) & word(1)
        result = (bits + word((1 << (dropped - 1)) - 1) + odd) & ~word((1 << dropped) - 1)
    if exponent_bits < own_exponent:
        sign_bit = word(1 << (own_exponent + own_mantissa))
        field = word(((1 << own_exponent) - 1) << own_mantissa)
        bias, small_bias = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        largest = word((bias + small_bias) << own_mantissa)
        smallest = word((bias - small_bias) << own_mantissa)
        power = result & field
        sign = bits & sign_bit
        result = np.where(power > largest, sign | field, np.where(power <= smallest, sign, result))
    return np.where(np.isnan(x), x, result.view(x.dtype))


@prepares("stochastic-convert")
def stochastic_convert_op(op: StochasticConvertOp, program: Program) -> Run:
    """The operand in a narrower type, rounded up when its lost part exceeds the random bits."""
    source, target = element_type(op), cast(ArrayShape, op.shape).element_type
    if not source.is_float or target.is_complex or target.kind is Kind.PRED:
        raise unsupported("stochastic-convert", source, target)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        if target.is_integer:
            return stochastic_integers(inputs[0], inputs[1], source, target)
        return stochastic_floats(inputs[0], inputs[1], source, target)

    return run


def stochastic_integers(
    x: Array, random: Array, source: PrimitiveType, target: PrimitiveType
) -> Array:
    """|x| truncated, and one more where the random bits, as a fraction, lie below the rest."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    whole = np.floor(size)
    fraction = np.ldexp(size - whole, random.dtype.itemsize * 8)
    up = random < np.where(np.isfinite(fraction), np.floor(fraction), 0).astype(random.dtype)
    rounded = np.where(np.isfinite(wide), np.copysign(whole + up, wide), wide)
    return saturate(rounded, F64, target)


def stochastic_floats(
    x: Array, random: Array, source: PrimitiveType, target: PrimitiveType
) -> Array:
    """Of the two numbers of `target` around x, the outer one with the odds of the lost part."""
    wide = x.astype(np.float64)
    near = converter(source, target)(x)
    nearest = near.astype(np.float64)
    # The nearest number and its neighbour across x enclose it.
    toward = np.where(np.abs(nearest) > np.abs(wide), -1.0, 1.0)
    other = _neighbour(near, toward, target).astype(np.float64)
    inner = np.where(np.abs(nearest) <= np.abs(wide), nearest, other)
    outer = np.where(np.abs(nearest) <= np.abs(wide), other, nearest)
    gap = np.abs(outer - inner)
    odds = np.abs(wide - inner) / np.where(gap == 0, 1.0, gap)
    drawn = np.ldexp(random.astype(np.float64), -random.dtype.itemsize * 8)
    chosen = np.where(drawn < odds, outer, inner)
    exact = (nearest == wide) | ~np.isfinite(wide) | ~np.isfinite(nearest)
    return np.where(exact, nearest, chosen).astype(np.float32).astype(target.dtype)


def _neighbour(x: Array, direction: Array, type_: PrimitiveType) -> Array:
    """The next number of `type_` away from zero (direction 1) or towards it (-1)."""
    bits = x.view(f"u{x.dtype.itemsize}")
    step = np.where(direction > 0, 1, -1).astype(bits.dtype)
    return np.asarray(bits + step).view(type_.dtype)


# ---------------------------------------------------------------- compare, select, clamp, complex

_DIRECTIONS: dict[str, ArrayFunction] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


@prepares("compare")
def compare_op(op: CompareOp, program: Program) -> Run:
    """X EQ|NE|GE|GT|LE|LT y; NaN is unequal to all unless the order is total."""
    total = op.comparison_type == "TOTALORDER" or op.order == "TOTAL"
    apply = comparison(op.direction, element_type(op), total)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        return apply(inputs[0], inputs[1])

    return run


@lru_cache(maxsize=4096)
def comparison(direction: str, type_: PrimitiveType, total: bool) -> ArrayFunction:
    """The function of two arrays that compares them. Raises `HloError` HLO0307."""
    ufunc = _DIRECTIONS[direction]
    if type_.is_complex and direction not in ("EQ", "NE"):
        raise unsupported(f"compare {direction}", type_)
    if total and type_.is_float:
        return lambda x, y: ufunc(total_order_key(x, type_), total_order_key(y, type_))
    work = work_dtype(type_)
    if work == type_.dtype:
        return ufunc
    return lambda x, y: ufunc(x.astype(work), y.astype(work))


@prepares("select")
def select_op(op: SelectOp, program: Program) -> Run:
    """Where the predicate holds the second operand, else the third; a scalar one picks whole."""

    def run(inputs: Sequence[Any], frame: Frame) -> Any:
        predicate, on_true, on_false = inputs
        if predicate.ndim == 0:
            return on_true if predicate else on_false
        return np.where(predicate, on_true, on_false)

    return run


@prepares("clamp")
def clamp_op(op: ClampOp, program: Program) -> Run:
    """min(max(x, low), high)."""
    type_ = element_type(op, 1)
    if type_.is_complex:
        raise unsupported("clamp", type_)
    maximum, minimum = function("maximum", type_), function("minimum", type_)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        low, operand, high = inputs
        return minimum(maximum(operand, low), high)

    return run


@prepares("complex")
def complex_op(op: ComplexOp, program: Program) -> Run:
    """Real and imaginary parts put together."""
    dtype = cast(ArrayShape, op.shape).element_type.dtype
    if dtype.kind != "c":
        raise error("HLO0307", "complex: the parts must be f32 or f64")

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        real, imag = inputs
        result = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype=dtype)
        result.real = real
        result.imag = imag
        return result

    return run
