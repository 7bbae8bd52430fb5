"""Quotients of bytes by a constant, as images are scaled: `fma(x, high, x * low)` instead of `x / divisor`.

`high + low` is `1 / divisor` to twice the bits of an f32. Whether the two roundings yield the quotient rounded is
decided for all bytes, in exact arithmetic: most constants pass.
"""

from __future__ import annotations

import functools
from math import frexp, ldexp

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder.types import element_of

_DIGITS = 24
"""Bits of an f32's significand."""
_MIN_DIVISOR, _MAX_DIVISOR = 2.0**-60, 2.0**60
"""Where nothing is subnormal."""
_FRACTION = 128
_ONE = 1 << _FRACTION
"""Numbers here are integers, in units of `1 / _ONE`."""
_SIGNIFICANDS = range(1, 256, 2)
"""Bytes up to sign and powers of two, which change no rounding."""


def is_byte(x: SSAValue) -> bool:
    """Whether a float was converted of an integer of 8 bits."""
    source = x.owner
    if not isinstance(source, arith.UIToFPOp | arith.SIToFPOp):
        return False
    number = source.input
    if isinstance(wide := number.owner, arith.ExtUIOp | arith.ExtSIOp):
        number = wide.input
    return element_of(number.type) == i8


@functools.lru_cache(maxsize=256)
def inverse_parts(divisor: float) -> tuple[float, float] | None:
    """`high` and `low` for a divisor, an f32; None where there are none that are right for all bytes.

    A zero divided by a negative number is negative, which the sum of two products is not always.
    """
    if not _MIN_DIVISOR < divisor < _MAX_DIVISOR:
        return None
    digits, power = divisor.as_integer_ratio()[0], frexp(divisor)[1]
    while digits % 2 == 0:
        digits //= 2
    inverse = _ONE // digits
    high = _nearest(inverse)
    low = _nearest(inverse - high)
    for x in _SIGNIFICANDS:
        quotient, rest = divmod(x * _ONE, digits)
        if _nearest(x * high + _nearest(x * low)) != _nearest(quotient | (rest != 0)):
            return None
    scale = digits.bit_length() - power - _FRACTION
    return ldexp(high, scale), ldexp(low, scale)


def _nearest(value: int) -> int:
    """To a number with so many bits as an f32 has, ties to even."""
    size = abs(value)
    dropped = size.bit_length() - _DIGITS
    if dropped <= 0:
        return value
    size += (1 << (dropped - 1)) - 1 + (size >> dropped & 1)
    size = size >> dropped << dropped
    return size if value >= 0 else -size
