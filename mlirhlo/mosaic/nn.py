"""Activations and what else networks compute with. The names and defaults are those of `jax.nn`.

All are of floats, elementwise where nothing else is said; the element type stays.
"""

from __future__ import annotations

from math import pi
from typing import Any

from mlirhlo.mosaic.language.elements import F32, I32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions.arithmetic import (
    abs_,
    cast,
    equal,
    erf,
    exp,
    expm1,
    log,
    logistic,
    maximum,
    minimum,
    rsqrt,
    sign,
    sqrt,
    square,
    tanh,
)
from mlirhlo.mosaic.language.functions.arithmetic import where as choose
from mlirhlo.mosaic.language.functions.derived import identity, logaddexp
from mlirhlo.mosaic.language.functions.reductions import max_, mean, sum_
from mlirhlo.mosaic.language.functions.shapes import (
    expand_dims,
    full_like,
    iota,
    normal_axis,
    split,
    squeeze,
)
from mlirhlo.mosaic.language.outside.hosted import hosted
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


def relu(x: ArrayLike) -> Value:
    """max(x, 0)"""
    return maximum(x, 0)


def relu6(x: ArrayLike) -> Value:
    """min(max(x, 0), 6)"""
    return minimum(maximum(x, 0), 6)


def sigmoid(x: ArrayLike) -> Value:
    """1 / (1 + exp(-x))"""
    return logistic(x)


def softplus(x: ArrayLike) -> Value:
    """log(1 + exp(x)), without overflow"""
    return logaddexp(x, 0.0)


def soft_sign(x: ArrayLike) -> Value:
    """x / (1 + |x|)"""
    return as_value(x) / (abs_(x) + 1)


def silu(x: ArrayLike) -> Value:
    """x * sigmoid(x)"""
    return as_value(x) * logistic(x)


def mish(x: ArrayLike) -> Value:
    """x * tanh(softplus(x))"""
    return as_value(x) * tanh(softplus(x))


def log_sigmoid(x: ArrayLike) -> Value:
    """log(sigmoid(x)), without underflow"""
    return -softplus(-as_value(x))


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Value:
    """x, below zero alpha * (exp(x) - 1)"""
    value = as_value(x)
    return choose(value > 0, value, expm1(choose(value > 0, 0.0, value)) * alpha)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Value:
    """x, below zero alpha * (exp(x / alpha) - 1)"""
    below: Value = expm1(minimum(x, 0.0) / alpha) * alpha
    return below + maximum(x, 0.0)


def selu(x: ArrayLike) -> Value:
    """`elu` with the scale and the alpha of self-normalising networks"""
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Value:
    """x, below zero negative_slope * x"""
    value = as_value(x)
    return choose(value >= 0, value, negative_slope * value)


def hard_tanh(x: ArrayLike) -> Value:
    """x between -1 and 1"""
    return maximum(minimum(x, 1.0), -1.0)


def hard_sigmoid(x: ArrayLike) -> Value:
    """relu6(x + 3) / 6"""
    return relu6(as_value(x) + 3.0) / 6.0


def hard_silu(x: ArrayLike) -> Value:
    """x * hard_sigmoid(x)"""
    return as_value(x) * hard_sigmoid(x)


def squareplus(x: ArrayLike, b: ArrayLike = 4.0) -> Value:
    """(x + sqrt(x² + b)) / 2"""
    return (as_value(x) + sqrt(square(x) + b)) * 0.5


def gelu(x: ArrayLike, approximate: bool = True) -> Value:
    """x times the normal distribution's share below it: by tanh, or exactly by erf"""
    value = as_value(x)
    if not approximate:
        return value * 0.5 * (1.0 + erf(value * 0.5**0.5))
    inner = (2 / pi) ** 0.5 * (value + 0.044715 * (value * value * value))
    return value * (0.5 * (1.0 + tanh(inner)))


def glu(x: ArrayLike, axis: int = -1) -> Value:
    """The first half along a dimension times sigmoid of the second"""
    first, second = split(x, 2, axis)
    return first * logistic(second)


def logsumexp(
    a: ArrayLike,
    axis: Any = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b * exp(a))) over dimensions, without overflow, of the elements where `where` holds; with
    `return_sign`, of the size of the sum, and its sign.
    """
    value = as_value(a)
    held = value if where is None else choose(where, value, float("-inf"))
    axes = tuple(range(value.ndim)) if axis is None else axis
    most = max_(held, axes, keepdims=True)
    most = choose(abs_(most) < float("inf"), most, 0.0)
    parts = exp(held - most)
    total = sum_(parts if b is None else parts * b, axes, keepdims=True)
    found = log(abs_(total) if return_sign else total) + most
    if return_sign:
        return (
            (found, sign(total)) if keepdims else (squeeze(found, axes), squeeze(sign(total), axes))
        )
    return found if keepdims else squeeze(found, axes)


def logmeanexp(
    x: ArrayLike, axis: Any = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Value:
    """log(mean(exp(x))) over dimensions, without overflow"""
    value = as_value(x)
    ones = full_like(value, 1.0) if where is None else choose(where, full_like(value, 1.0), 0.0)
    total: Value = logsumexp(value, axis, where=where, keepdims=keepdims)
    return total - log(sum_(ones, axis, keepdims=keepdims))


def softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike = None) -> Value:
    """exp(x) / sum(exp(x)) over dimensions; of the elements where `where` holds, if it is given"""
    value = as_value(x)
    held = value if where is None else choose(where, value, float("-inf"))
    parts = exp(held - max_(held, axis, keepdims=True))
    return parts / sum_(parts, axis, keepdims=True)


def log_softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Value:
    """x - logsumexp(x) over dimensions; of the elements where `where` holds, -inf elsewhere"""
    value = as_value(x)
    held = value if where is None else choose(where, value, float("-inf"))
    shifted = held - max_(held, axis, keepdims=True)
    return shifted - log(sum_(exp(shifted), axis, keepdims=True))


def standardize(
    x: ArrayLike,
    axis: Any = -1,
    mean: ArrayLike = None,
    variance: ArrayLike = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over dimensions, those of the elements where `where` holds"""
    value = as_value(x)
    middle = _mean(value, axis, where) if mean is None else mean
    spread = _mean(square(value), axis, where) - square(middle) if variance is None else variance
    return (value - middle) * rsqrt(spread + epsilon)


def _mean(value: Value, axis: Any, where: ArrayLike | None) -> Value:
    return mean(value, axis, keepdims=True, where=where)


def sparse_plus(x: ArrayLike) -> Value:
    """0 up to -1, (x + 1)² / 4 up to 1, then x"""
    value = as_value(x)
    inside = square(value + 1.0) * 0.25
    return choose(value <= -1.0, 0.0, choose(value >= 1.0, value, inside))


def sparse_sigmoid(x: ArrayLike) -> Value:
    """(x + 1) / 2 between 0 and 1"""
    return maximum(minimum((as_value(x) + 1.0) * 0.5, 1.0), 0.0)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike = F32, axis: int = -1) -> Value:
    """One where the new dimension's place is the element, zero elsewhere.

    `x`: integers of shape `[…]`; the result has `num_classes` more along `axis`. Raises `HloError`
    HLO0721 for a scalar.
    """
    value = as_value(x)
    if not value.shape:
        raise bad_shape("one_hot of a scalar", "compare lax.broadcasted_iota with it")
    at = normal_axis(axis, value.ndim + 1)
    wide = expand_dims(cast(value, I32), at)
    shape = (*value.shape[:at], num_classes, *value.shape[at:])
    return cast(equal(wide, iota(I32, shape, at)), as_dtype(dtype))


swish = silu
hard_swish = hard_silu

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]

# Around kernels, the same names are functions on arrays.
globals().update(hosted(__all__, globals()))
