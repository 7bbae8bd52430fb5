"""Small floating-point formats: bits to values and back, in every rounding mode."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlirhlo.simulator.lanes import Array


@dataclass(frozen=True, slots=True)
class Format:
    """Exponent and mantissa of a format with a sign."""

    exponent_bits: int
    mantissa_bits: int
    nan: int | None
    """Bits of the canonical NaN; None where there is none."""
    infinity: int | None
    """Bits of infinity; None where there is none."""
    largest: int
    """Bits of the largest finite value."""

    @property
    def bias(self) -> int:
        """Bias of the exponent."""
        return (1 << self.exponent_bits - 1) - 1

    @property
    def sign_bit(self) -> int:
        """Position of the sign."""
        return self.exponent_bits + self.mantissa_bits


FORMATS = {
    "f16": Format(5, 10, 0x7FFF, 0x7C00, 0x7BFF),
    "bf16": Format(8, 7, 0x7FFF, 0x7F80, 0x7F7F),
    "tf32": Format(8, 10, 0x3FFFF, 0x3FC00, 0x3FBFF),
    "e4m3": Format(4, 3, 0x7F, None, 0x7E),
    "e5m2": Format(5, 2, 0x7F, 0x7C, 0x7B),
    "e2m1": Format(2, 1, None, None, 0x7),
    "e2m3": Format(2, 3, None, None, 0x1F),
    "e3m2": Format(3, 2, None, None, 0x1F),
}


@lru_cache(maxsize=1024)
def _table(name: str) -> NDArray[np.float64]:
    """The values of all bit patterns of a format."""
    form = FORMATS[name]
    bits = np.arange(1 << form.sign_bit + 1)
    exponent = bits >> form.mantissa_bits & ((1 << form.exponent_bits) - 1)
    mantissa = bits & ((1 << form.mantissa_bits) - 1)
    normal = exponent > 0
    size = np.ldexp(
        np.where(normal, mantissa + (1 << form.mantissa_bits), mantissa).astype(np.float64),
        np.maximum(exponent, 1) - form.bias - form.mantissa_bits,
    )
    magnitude = bits & ((1 << form.sign_bit) - 1)
    if form.infinity is not None:
        size = np.where(magnitude > form.infinity, np.nan, size)
        size = np.where(magnitude == form.infinity, np.inf, size)
    elif form.nan is not None:
        size = np.where(magnitude == form.nan, np.nan, size)
    result: NDArray[np.float64] = np.where(bits >> form.sign_bit, -size, size)
    return result


def decode(bits: Array, name: str) -> NDArray[np.float64]:
    """The values of bit patterns."""
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if name == "f16":
        return bits.view(np.float16).astype(np.float64)
    if name == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if name == "ue8m0":
        return np.where(bits == 255, np.nan, np.ldexp(1.0, bits.astype(np.int64) - 127))
    result: NDArray[np.float64] = _table(name)[bits.astype(np.int64) & len(_table(name)) - 1]
    return result


def rounded(
    scaled: NDArray[np.float64], negative: NDArray[np.bool_], mode: str
) -> NDArray[np.float64]:
    """Magnitudes as integers in a rounding mode."""
    match mode:
        case "rz":
            return np.floor(scaled)
        case "rm":
            return np.where(negative, np.ceil(scaled), np.floor(scaled))
        case "rp":
            return np.where(negative, np.floor(scaled), np.ceil(scaled))
        case "rna":
            return np.floor(scaled + 0.5)
        case _:
            return np.rint(scaled)


def encode(
    values: NDArray[np.float64],
    name: str,
    mode: str = "rn",
    *,
    saturates: bool = False,
    relu: bool = False,
) -> NDArray[np.int64]:
    """The bit patterns of values, rounded once; `saturates` keeps results finite."""
    form = FORMATS[name]
    negative = np.signbit(values)
    size = np.abs(values)
    finite = np.isfinite(size)
    least = 1 - form.bias
    _, exponent = np.frexp(np.where(finite & (size > 0), size, 2.0**least))
    exponent = np.maximum(exponent - 1, least)
    whole = rounded(
        np.ldexp(np.where(finite, size, 0.0), form.mantissa_bits - exponent), negative, mode
    )
    # A mantissa that rounds up to the next power of two carries into the exponent by itself.
    magnitude = ((exponent - least) << form.mantissa_bits) + whole.astype(np.int64)
    towards_zero = mode == "rz"
    away = {"rm": negative, "rp": ~negative}.get(mode)
    beyond = (magnitude > form.largest) & finite
    clamp = saturates or (form.infinity is None and form.nan is None) or towards_zero
    top = form.infinity if form.infinity is not None else form.nan
    limit = np.full(len(values), form.largest if clamp or top is None else top)
    if away is not None and not clamp:
        limit = np.where(away, limit, form.largest)
    magnitude = np.where(beyond, limit, magnitude)
    infinite = np.isinf(values)
    if infinite.any():
        magnitude = np.where(infinite, form.largest if saturates or top is None else top, magnitude)
    result = magnitude | negative.astype(np.int64) << form.sign_bit
    if relu:
        result = np.where(negative, 0, result)
    missing = np.isnan(values)
    if missing.any():
        result = np.where(missing, form.nan if form.nan is not None else form.largest, result)
    final: NDArray[np.int64] = result
    return final
