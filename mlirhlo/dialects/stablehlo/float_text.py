"""Floating-point numbers as MLIR prints them.

Six significant digits in exponential form where they read back as the same number, else as many as
the type can tell apart, else the bits in hexadecimal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import copysign
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import numpy as np

_SHORT = 6
"""Digits that are tried first."""
_MAX_PADDING = 3
"""Most zeros that stand before or after the digits in plain notation."""


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """What printing must know of a float type."""

    bits: int
    precision: int
    """Bits of the significand, the hidden one included."""
    to_bits: Callable[[float], int]
    """The bits of the nearest number of the type."""

    @property
    def digits(self) -> int:
        """Decimal digits that tell any two numbers of the type apart."""
        return 2 + self.precision * 59 // 196


def float_text(value: float) -> str:
    """A double as MLIR prints it, without its type."""
    return text_of(value, _bits_of_double(value), F64)


def text_of(value: float, bits: int, format: FloatFormat) -> str:
    """The number `value` of a type, whose bits are `bits`, as MLIR prints it."""
    if value != value or value in (float("inf"), float("-inf")):
        return hex_text(bits)
    sign = "-" if copysign(1.0, value) < 0 else ""
    if not value:
        return f"{sign}0.000000e+00"
    numerator, denominator = abs(value).as_integer_ratio()
    short = sign + _scientific(*_decimal(numerator, denominator, _SHORT))
    if format.to_bits(float(short)) == bits:
        return short
    text = _natural(*_decimal(numerator, denominator, format.digits), format.digits)
    return sign + text if "." in text else hex_text(bits)


def hex_text(bits: int) -> str:
    """Bits in hexadecimal, as many digits as the value needs."""
    return f"0x{bits:X}"


def _decimal(numerator: int, denominator: int, precision: int) -> tuple[str, int]:
    """At most `precision` digits without trailing zeros, and the power of ten they count.

    As in LLVM, digits that are surely too many are cut off before the rest is rounded half up.
    """
    exponent = 0
    if denominator > 1:
        twos = denominator.bit_length() - 1
        numerator *= 5**twos
        exponent = -twos
    wanted = (precision * 196 + 58) // 59
    surplus = (numerator.bit_length() - wanted) * 59 // 196
    if surplus > 0:
        exponent += surplus
        numerator //= 10**surplus
    digits = str(numerator)
    if len(digits) > precision:
        exponent += len(digits) - precision
        kept = int(digits[:precision]) + (digits[precision] >= "5")
        digits = str(kept)
    stripped = digits.rstrip("0")
    return stripped, exponent + len(digits) - len(stripped)


def _scientific(digits: str, exponent: int) -> str:
    """`1.234560e+05`: six digits after the point."""
    leading = exponent + len(digits) - 1
    mark = "-" if leading < 0 else "+"
    return f"{digits[0]}.{digits[1:]:0<6}e{mark}{abs(leading):02}"


def _natural(digits: str, exponent: int, precision: int) -> str:
    """Plain notation where few zeros are needed, else `1.23456784E-5`."""
    leading = exponent + len(digits) - 1
    if exponent >= 0:
        if exponent <= _MAX_PADDING and len(digits) + exponent <= precision:
            return digits + "0" * exponent
    elif leading >= 0:
        return f"{digits[: leading + 1]}.{digits[leading + 1 :]}"
    elif -leading <= _MAX_PADDING:
        return "0." + "0" * (-leading - 1) + digits
    mark = "-" if leading < 0 else "+"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}E{mark}{abs(leading)}"


def _bits_of_double(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def _bits_of_single(value: float) -> int:
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


F64 = FloatFormat(64, 53, _bits_of_double)
F32 = FloatFormat(32, 24, _bits_of_single)


@lru_cache(maxsize=1024)
def format_of(dtype: np.dtype[Any]) -> FloatFormat:
    """The format of a numpy or ml_dtypes float type."""
    import ml_dtypes
    import numpy as np

    if dtype == np.float64:
        return F64
    if dtype == np.float32:
        return F32
    info = cast(Any, ml_dtypes.finfo)(dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")

    def to_bits(value: float) -> int:
        return int(np.array([value], np.float64).astype(dtype).view(unsigned)[0])

    return FloatFormat(int(info.bits), int(info.nmant) + 1, to_bits)
