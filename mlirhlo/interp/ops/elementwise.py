"""Element-wise arithmetic: one table from opcode and element type to a function of arrays.

Shapes: operands of one shape (or scalars where the op allows), result of that shape.
Types: each op rounds to its own type; integers wrap around; complex by parts.
Errors: HLO0307 for an element type the op does not take.
Source: operation semantics, held against XLA:CPU (fast math off, excess precision off). XLA:CPU
treats f32 and f64 denormals as zero; here they count.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.numerics import ArrayFunction, is_native, lift, lift_precise, unsupported
from mlirhlo.interp.ops import elementwise_bits as bits
from mlirhlo.interp.ops import elementwise_complex as complexes
from mlirhlo.interp.ops import elementwise_math as math
from mlirhlo.interp.ops import elementwise_power as power
from mlirhlo.interp.registry import Array, Frame, Program, Run, prepares

Maker = Callable[[PrimitiveType], "ArrayFunction | None"]
"""Gives the function for an element type; None when the op does not take it."""


def _number(function: ArrayFunction, pred: ArrayFunction | None = None) -> Maker:
    """A function that numpy has for all numbers."""

    def make(type_: PrimitiveType) -> ArrayFunction | None:
        return pred if type_.kind is Kind.PRED else lift(type_, function)

    return make


def _precise(real: ArrayFunction, complex_: ArrayFunction | None = None) -> Maker:
    """A transcendental function: f32 and c64 compute in double."""

    def make(type_: PrimitiveType) -> ArrayFunction | None:
        if type_.is_complex:
            return None if complex_ is None else lift_precise(type_, complex_)
        return lift_precise(type_, real) if type_.is_float else None

    return make


def _by_kind(
    *,
    integers: Callable[[PrimitiveType], ArrayFunction] | None = None,
    floats: ArrayFunction | None = None,
    complex_: ArrayFunction | None = None,
    pred: ArrayFunction | None = None,
) -> Maker:
    def make(type_: PrimitiveType) -> ArrayFunction | None:
        if type_.is_integer:
            return None if integers is None else integers(type_)
        if type_.is_float:
            return None if floats is None else lift(type_, floats)
        if type_.is_complex:
            return None if complex_ is None else lift_precise(type_, complex_)
        return pred

    return make


def _lifted(function: ArrayFunction) -> Callable[[PrimitiveType], ArrayFunction]:
    return lambda type_: lift(type_, function)


def identity(x: Array) -> Array:
    """The operand."""
    return x


def maximum(x: Array, y: Array) -> Array:
    """The greater; NaN wins, and +0 is above -0."""
    result = np.maximum(x, y)
    zero = result == 0
    return np.where(zero & (x == y), x + y, result) if np.any(zero) else result


def minimum(x: Array, y: Array) -> Array:
    """The lesser; NaN wins, and -0 is below +0."""
    result = np.minimum(x, y)
    zero = result == 0
    return np.where(zero & (x == y), -(-x + -y), result) if np.any(zero) else result


def divide_integers(type_: PrimitiveType) -> ArrayFunction:
    """Quotient rounded to zero; x / 0 has all bits set, MIN / -1 is MIN."""

    def divide(x: Array, y: Array) -> Array:
        ones = np.array(-1 if type_.is_signed else ~np.zeros((), y.dtype), dtype=y.dtype)
        one = np.ones((), dtype=y.dtype)
        if not type_.is_signed:
            return np.where(y == 0, ones, np.floor_divide(x, np.where(y == 0, one, y)))
        safe = np.where((y == 0) | (y == -1), one, y)
        quotient = np.floor_divide(x - np.fmod(x, safe), safe)
        return np.where(y == 0, ones, np.where(y == -1, -x, quotient))

    return lift(type_, divide)


def remainder_integers(type_: PrimitiveType) -> ArrayFunction:
    """X - y * trunc(x / y), the sign of x; x rem 0 is x, MIN rem -1 is 0."""

    def remainder(x: Array, y: Array) -> Array:
        one = np.ones((), dtype=y.dtype)
        unsafe = (y == 0) | (y == -1) if type_.is_signed else y == 0
        rest = np.fmod(x, np.where(unsafe, one, y))
        return np.where(y == 0, x, rest)

    return lift(type_, remainder)


def _abs(type_: PrimitiveType) -> ArrayFunction | None:
    if type_.is_complex:
        return lambda x: complexes.magnitude(x).astype(type_.real.dtype)
    if type_.is_unsigned or type_.kind is Kind.PRED:
        return identity
    return lift(type_, np.abs)


def _sign_real(x: Array) -> Array:
    return np.where(np.isnan(x) | (x == 0), x, np.copysign(np.ones((), x.dtype), x))


def _real(type_: PrimitiveType) -> ArrayFunction:
    return (lambda x: x.real.copy()) if type_.is_complex else identity


def _imag(type_: PrimitiveType) -> ArrayFunction:
    if type_.is_complex:
        return lambda x: x.imag.copy()
    # Not zeros_like: zero bits are no zero in f8e8m0fnu.
    return lambda x: np.zeros(x.shape, np.float32).astype(x.dtype)


def _is_finite(type_: PrimitiveType) -> ArrayFunction | None:
    if type_.is_float:
        return np.isfinite if is_native(type_) else lambda x: np.isfinite(x.astype(np.float32))
    return np.isfinite if type_.is_complex else lambda x: np.ones(x.shape, dtype=np.bool_)


def _pred_minimum(x: Array, y: Array) -> Array:
    return x & y


def _pred_maximum(x: Array, y: Array) -> Array:
    return x | y


ELEMENTWISE: Mapping[str, Maker] = {
    "abs": _abs,
    "acos": _precise(np.arccos, complexes.acos),
    "acosh": _precise(np.arccosh, complexes.acosh),
    "add": _number(np.add, np.logical_or),
    "and": bits.bitwise(np.bitwise_and),
    "asin": _precise(np.arcsin, complexes.asin),
    "asinh": _precise(np.arcsinh, complexes.asinh),
    "atan": _precise(np.arctan, complexes.atan),
    "atan2": _precise(np.arctan2, complexes.atan2),
    "atanh": _precise(np.arctanh, complexes.atanh),
    "cbrt": _precise(np.cbrt, complexes.cbrt),
    "ceil": _by_kind(integers=lambda _: identity, floats=np.ceil),
    "cosine": _precise(np.cos, complexes.cosine),
    "cosh": _precise(np.cosh, np.cosh),
    "count-leading-zeros": bits.count_leading_zeros,
    "divide": _by_kind(integers=divide_integers, floats=np.divide, complex_=complexes.divide),
    "erf": math.erf_of,
    "exponential": _precise(np.exp, complexes.exponential),
    "exponential-minus-one": _precise(np.expm1, complexes.expm1),
    "floor": _by_kind(integers=lambda _: identity, floats=np.floor),
    "imag": _imag,
    "is-finite": _is_finite,
    "log": _precise(np.log, complexes.log),
    "log-plus-one": _precise(np.log1p, complexes.log1p),
    "logistic": _precise(math.logistic, complexes.logistic),
    "maximum": _by_kind(
        integers=_lifted(np.maximum), floats=maximum, complex_=complexes.maximum, pred=_pred_maximum
    ),
    "minimum": _by_kind(
        integers=_lifted(np.minimum), floats=minimum, complex_=complexes.minimum, pred=_pred_minimum
    ),
    "mulhi": bits.multiply_high,
    "multiply": _number(np.multiply, np.logical_and),
    "negate": _number(np.negative, identity),
    "not": bits.complement,
    "or": bits.bitwise(np.bitwise_or),
    "popcnt": bits.population_count,
    "power": power.power,
    "real": _real,
    "remainder": _by_kind(integers=remainder_integers, floats=np.fmod),
    "round-nearest-afz": _by_kind(integers=lambda _: identity, floats=math.round_away),
    "round-nearest-even": _by_kind(integers=lambda _: identity, floats=np.rint),
    "rsqrt": _precise(math.rsqrt, complexes.rsqrt),
    "shift-left": bits.shift_left,
    "shift-right-arithmetic": bits.shift_right_arithmetic,
    "shift-right-logical": bits.shift_right_logical,
    "sign": _by_kind(
        integers=_lifted(np.sign), floats=_sign_real, complex_=complexes.sign, pred=identity
    ),
    "sine": _precise(np.sin, complexes.sine),
    "sinh": _precise(np.sinh, np.sinh),
    "sqrt": _precise(np.sqrt, np.sqrt),
    "subtract": _number(np.subtract, np.logical_xor),
    "tan": _precise(np.tan, complexes.tan),
    "tanh": _precise(np.tanh, complexes.tanh),
    "xor": bits.bitwise(np.bitwise_xor),
}
"""Opcodes whose function depends on the operands' element type alone."""


@lru_cache(maxsize=4096)
def function(opcode: str, type_: PrimitiveType) -> ArrayFunction:
    """The meaning of `opcode` on arrays of `type_`. Raises `HloError` HLO0307."""
    made = ELEMENTWISE[opcode](type_)
    if made is None:
        raise unsupported(opcode, type_)
    return made


def element_type(op: Instruction, operand: int = 0) -> PrimitiveType:
    """Element type of an operand."""
    return cast(ArrayShape, op.input_shapes[operand]).element_type


@prepares(*ELEMENTWISE)
def elementwise(op: Instruction, program: Program) -> Run:
    """The row's function on the operands."""
    apply = function(op.opcode.name, element_type(op))
    if op.opcode.arity == 1:

        def unary(inputs: Sequence[Any], frame: Frame) -> Array:
            return apply(inputs[0])

        return unary

    def binary(inputs: Sequence[Any], frame: Frame) -> Array:
        return apply(inputs[0], inputs[1])

    return binary
