"""Bits of floating-point numbers of any MLIR type."""

from __future__ import annotations

import math
import struct
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.ir import Attribute

_EXTENDED = {80: (15, 63), 128: (15, 112)}
"""Bits of exponent and fraction; the 80-bit format stores its leading one."""


def float_width(type: Attribute) -> int | None:
    """Bits of a float type, None for other types."""
    if not isinstance(type, builtin.AnyFloat):
        return None
    return type.bitwidth


def float_of(bits: int, type: Attribute) -> float:
    """The number that the bits mean; what exceeds a Python float is rounded."""
    width = float_width(type)
    assert width is not None
    if width in _EXTENDED:
        return _from_extended(bits, width)
    size = (width + 7) // 8
    return float(cast("Any", type).unpack(bits.to_bytes(size, "little"), 1)[0])


def bits_of(value: float, type: Attribute) -> int:
    """The bits of a number."""
    width = float_width(type)
    assert width is not None
    if width in _EXTENDED:
        return _to_extended(value, width)
    return int.from_bytes(cast("Any", type).pack((value,)), "little")


def double_bits(value: float) -> int:
    """The bits of a 64-bit number."""
    return int.from_bytes(struct.pack("<d", value), "little")


def double_of(bits: int) -> float:
    """The 64-bit number of the bits."""
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def _from_extended(bits: int, width: int) -> float:
    exponent_bits, fraction_bits = _EXTENDED[width]
    stored_one = width == 80
    significand_bits = fraction_bits + stored_one
    significand = bits & (1 << significand_bits) - 1
    exponent = bits >> significand_bits & (1 << exponent_bits) - 1
    sign = -1.0 if bits >> (width - 1) else 1.0
    fraction = significand & (1 << fraction_bits) - 1
    if exponent == (1 << exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if not stored_one and exponent:
        significand |= 1 << fraction_bits
    bias = (1 << exponent_bits - 1) - 1
    try:
        return sign * math.ldexp(significand, max(exponent, 1) - bias - fraction_bits)
    except OverflowError:
        return sign * math.inf


def _to_extended(value: float, width: int) -> int:
    exponent_bits, fraction_bits = _EXTENDED[width]
    stored_one = width == 80
    significand_bits = fraction_bits + stored_one
    bias = (1 << exponent_bits - 1) - 1
    sign = (1 if math.copysign(1.0, value) < 0 else 0) << (width - 1)
    leading = 1 << fraction_bits if stored_one else 0
    if math.isnan(value) or math.isinf(value):
        significand = leading | (1 << fraction_bits - 1 if math.isnan(value) else 0)
        return sign | (1 << exponent_bits) - 1 << significand_bits | significand
    if value == 0:
        return sign
    mantissa, exponent = math.frexp(abs(value))
    significand = int(math.ldexp(mantissa, 53)) << fraction_bits - 52
    if not stored_one:
        significand &= (1 << fraction_bits) - 1
    return sign | exponent - 1 + bias << significand_bits | significand
