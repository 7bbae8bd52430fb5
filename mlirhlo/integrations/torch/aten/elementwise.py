"""Elementwise operations."""

# Rules that are lambdas have the types of `Rule`.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlirhlo.numpy as hnp
from mlirhlo.integrations.torch.aten.rules import RULES, Call, Rule, accumulator, dtype_of, rule
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array


def _opcode(name: str) -> Callable[[Array], Array]:
    return lambda x: ops.unary(name, x)


def _unary(function: Callable[..., Array]) -> Rule:
    return lambda call, x: function(call.cast(x))


def _own(function: Callable[..., Array]) -> Rule:
    return lambda call, x: function(x)


def _binary(function: Callable[..., Array]) -> Rule:
    def meaning(call: Call, a: Any, b: Any) -> Array:
        return function(call.cast(a), call.cast(b))

    return meaning


def _compare(function: Callable[..., Array]) -> Rule:
    def meaning(call: Call, a: Any, b: Any) -> Array:
        both = call.operand_dtype
        return function(call.cast(a, both), call.cast(b, both))

    return meaning


def _relu(x: Array) -> Array:
    return hnp.maximum(x, ops.constant(0, x.dtype))


def _sign(x: Array) -> Array:
    return hnp.astype(hnp.logical_not(x), x.dtype) if x.dtype == dt.bool else hnp.sign(x)


_UNARY: dict[str, Callable[..., Array]] = {
    "acos": hnp.acos, "acosh": hnp.acosh, "asin": hnp.asin, "asinh": hnp.asinh, "atan": hnp.atan,
    "atanh": hnp.atanh, "ceil": hnp.ceil, "cos": hnp.cos, "cosh": hnp.cosh, "erf": _opcode("erf"), "exp": hnp.exp,
    "expm1": hnp.expm1, "floor": hnp.floor, "log": hnp.log, "log10": hnp.log10, "log1p": hnp.log1p, "log2": hnp.log2,
    "neg": hnp.negative, "reciprocal": hnp.reciprocal, "relu": _relu, "round": hnp.round, "rsqrt": _opcode("rsqrt"),
    "sigmoid": _opcode("logistic"), "sign": _sign, "sin": hnp.sin, "sinh": hnp.sinh, "sqrt": hnp.sqrt, "tan": hnp.tan,
    "tanh": hnp.tanh, "trunc": hnp.trunc, "bitwise_not": hnp.bitwise_invert,
}  # fmt: skip
"""Functions of one operand in the type of the result."""

_OWN: dict[str, Callable[..., Array]] = {
    "abs": hnp.abs,
    "isnan": hnp.isnan,
    "isinf": hnp.isinf,
    "signbit": hnp.signbit,
    "logical_not": lambda x: hnp.equal(x, ops.constant(0, x.dtype)),
}
"""Functions of one operand in its own type."""

_BINARY: dict[str, Callable[..., Array]] = {
    "mul": hnp.multiply, "pow": hnp.pow, "maximum": hnp.maximum, "minimum": hnp.minimum, "atan2": hnp.atan2,
    "remainder": hnp.remainder, "fmod": lambda a, b: ops.binary("remainder", *hnp.broadcast_arrays(a, b)),
    "hypot": hnp.hypot, "logaddexp": hnp.logaddexp, "copysign": hnp.copysign, "nextafter": hnp.nextafter,
    "bitwise_and": hnp.bitwise_and, "bitwise_or": hnp.bitwise_or, "bitwise_xor": hnp.bitwise_xor,
    "bitwise_left_shift": hnp.bitwise_left_shift, "bitwise_right_shift": hnp.bitwise_right_shift,
    "__lshift__": hnp.bitwise_left_shift, "__rshift__": hnp.bitwise_right_shift,
}  # fmt: skip
"""Functions of two operands in the type of the result."""

_COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": hnp.equal, "ne": hnp.not_equal, "lt": hnp.less, "le": hnp.less_equal, "gt": hnp.greater,
    "ge": hnp.greater_equal,
}  # fmt: skip

_LOGICAL: dict[str, Callable[..., Array]] = {
    "logical_and": hnp.logical_and,
    "logical_or": hnp.logical_or,
    "logical_xor": hnp.logical_xor,
}

for _name, _function in _UNARY.items():
    RULES[f"{_name}.default"] = _unary(_function)
for _name, _function in _OWN.items():
    RULES[f"{_name}.default"] = _own(_function)
for _name, _function in _BINARY.items():
    for _overload in (
        "default",
        "Tensor",
        "Scalar",
        "Tensor_Tensor",
        "Tensor_Scalar",
        "Scalar_Tensor",
    ):
        RULES[f"{_name}.{_overload}"] = _binary(_function)
RULES["pow.Scalar"] = _binary(hnp.pow)
for _name, _function in _COMPARISONS.items():
    for _overload in ("Tensor", "Scalar"):
        RULES[f"{_name}.{_overload}"] = _compare(_function)


def _logical(function: Callable[..., Array]) -> Rule:
    return lambda call, a, b: function(call.cast(a, dt.bool), call.cast(b, dt.bool))


for _name, _function in _LOGICAL.items():
    RULES[f"{_name}.default"] = _logical(_function)


@rule("add.Tensor", "add.Scalar")
def _add(call: Call, a: Any, b: Any, alpha: Any = 1) -> Array:
    if call.dtype == dt.bool:
        return hnp.logical_or(call.cast(a), call.cast(b))
    scaled = call.cast(b) if alpha == 1 else hnp.multiply(call.cast(b), call.cast(alpha))
    return hnp.add(call.cast(a), scaled)


@rule("sub.Tensor", "sub.Scalar")
def _sub(call: Call, a: Any, b: Any, alpha: Any = 1) -> Array:
    scaled = call.cast(b) if alpha == 1 else hnp.multiply(call.cast(b), call.cast(alpha))
    return hnp.subtract(call.cast(a), scaled)


@rule("rsub.Tensor", "rsub.Scalar")
def _rsub(call: Call, a: Any, b: Any, alpha: Any = 1) -> Array:
    return _sub(call, b, a, alpha)


@rule("div.Tensor", "div.Scalar")
def _div(call: Call, a: Any, b: Any) -> Array:
    return hnp.divide(call.cast(a), call.cast(b))


@rule("div.Tensor_mode", "div.Scalar_mode")
def _div_rounded(call: Call, a: Any, b: Any, rounding_mode: str | None = None) -> Array:
    left, right = call.cast(a), call.cast(b)
    if rounding_mode is None:
        return hnp.divide(left, right)
    if rounding_mode == "floor":
        return hnp.floor_divide(left, right)
    quotient = ops.binary("divide", *hnp.broadcast_arrays(left, right))
    return hnp.trunc(quotient)


@rule("floor_divide.default", "floor_divide.Scalar")
def _floor_divide(call: Call, a: Any, b: Any) -> Array:
    return hnp.floor_divide(call.cast(a), call.cast(b))


@rule("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(call: Call, condition: Array, a: Any, b: Any) -> Array:
    return hnp.where(ops.convert(condition, dt.bool), call.cast(a), call.cast(b))


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call: Call, x: Array, mask: Array, value: Any) -> Array:
    return hnp.where(mask, call.cast(value), x)


@rule("clamp.default", "clamp.Tensor", "hardtanh.default")
def _clamp(call: Call, x: Array, min: Any = None, max: Any = None) -> Array:
    result = call.cast(x)
    if min is not None:
        result = hnp.maximum(result, call.cast(min))
    return result if max is None else hnp.minimum(result, call.cast(max))


@rule("clamp_min.default", "clamp_min.Tensor")
def _clamp_min(call: Call, x: Array, min: Any) -> Array:
    return _clamp(call, x, min)


@rule("clamp_max.default", "clamp_max.Tensor")
def _clamp_max(call: Call, x: Array, max: Any) -> Array:
    return _clamp(call, x, None, max)


@rule("gelu.default")
def _gelu(call: Call, x: Array, approximate: str = "none") -> Array:
    wide = ops.convert(x, accumulator(x.dtype))
    if approximate == "tanh":
        inner = (wide + wide * wide * wide * 0.044715) * 0.7978845608028654
        result = wide * 0.5 * (hnp.tanh(inner) + 1)
    else:
        result = wide * 0.5 * (ops.unary("erf", wide * 0.7071067811865476) + 1)
    return ops.convert(result, x.dtype)


@rule("silu.default")
def _silu(call: Call, x: Array) -> Array:
    return x * ops.unary("logistic", x)


@rule("leaky_relu.default")
def _leaky_relu(call: Call, x: Array, negative_slope: float = 0.01) -> Array:
    return hnp.where(hnp.greater(x, 0), x, x * negative_slope)


@rule("elu.default")
def _elu(
    call: Call, x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Array:
    negative = hnp.expm1(x * input_scale) * alpha
    return hnp.where(hnp.greater(x, 0), x, negative) * scale


@rule("_to_copy.default", "convert_element_type.default")
def _to_copy(call: Call, x: Array, *others: Any, **more: Any) -> Array:
    return call.cast(x)


@rule("to.dtype")
def _to(call: Call, x: Array, dtype: Any, *others: Any, **more: Any) -> Array:
    return ops.convert(x, dtype_of(dtype))


@rule("real.default")
def _real(call: Call, x: Array) -> Array:
    return hnp.real(x) if x.dtype in dt.COMPLEX else x


@rule("view_as_real.default")
def _view_as_real(call: Call, x: Array) -> Array:
    return hnp.stack([hnp.real(x), hnp.imag(x)], axis=-1)


@rule("view_as_complex.default")
def _view_as_complex(call: Call, x: Array) -> Array:
    parts = [ops.slice_axis(x, x.ndim - 1, at, at + 1) for at in range(2)]
    real, imag = (ops.reshape(part, x.shape[:-1]) for part in parts)
    return ops.complex_(real, imag)


@rule("complex.default")
def _complex(call: Call, real: Array, imag: Array) -> Array:
    return ops.complex_(*hnp.broadcast_arrays(real, imag))
