"""Numbers and nested arrays as XLA prints them; works on raw little-endian element data.

Source: HLO text, "Printing numbers": the digits of every element type, NaN payloads, blanks inside
braces, and the `/*i0=1*/` marks of arrays of rank four and more. Nothing here needs numpy, so
that small modules print without importing it; big arrays are formatted by C loops.
"""

from __future__ import annotations

import functools
import math
import struct
from array import array
from collections.abc import Sequence

from mlirhlo.dialects.hlo.element_types import F32, Kind, PrimitiveType

WORD_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""`struct` code of an unsigned word of so many bytes."""

MANTISSA_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52, "f8e5m2": 2, "f8e4m3": 3, "f8e3m4": 4}
"""Mantissa width of the types whose NaNs carry a payload."""


def format_elements(type_: PrimitiveType, data: bytes, scalar: bool = False) -> Sequence[str]:
    """Text of every element. `data` is little-endian, sub-byte elements one per byte.

    A `scalar` pred prints `true` or `false`, one inside an array `1` or `0`.
    """
    match type_.kind:
        case Kind.PRED:
            names = ("false", "true") if scalar else ("0", "1")
            return [names[byte] for byte in data]
        case Kind.SIGNED | Kind.UNSIGNED:
            return _format_integers(type_, data)
        case Kind.COMPLEX:
            parts = _format_wide_floats(type_.real, data)
            return [f"({re}, {im})" for re, im in zip(parts[::2], parts[1::2], strict=True)]
        case _:
            if type_.bits >= 32:
                return _format_wide_floats(type_, data)
            if type_.bits < 16:
                table = _small_float_texts(type_)
                return [table[byte] for byte in data]
            words = memoryview(data).cast("H")
            texts = {word: _small_float_text(type_, word) for word in set(words)}
            return [texts[word] for word in words]


def _format_integers(type_: PrimitiveType, data: bytes) -> list[str]:
    if type_.bits < 8:
        half = 1 << (type_.bits - 1) if type_.is_signed else 1 << type_.bits
        return [str(byte if byte < half else byte - 2 * half) for byte in data]
    code = WORD_CODES[type_.byte_size]
    return list(map(str, array(code.lower() if type_.is_signed else code, data)))


def _format_wide_floats(type_: PrimitiveType, data: bytes) -> list[str]:
    """`%.6g`, or `%.9g` where that does not read back (f32); `%.15g` or `%.17g` (f64)."""
    if not data:
        return []
    code, short, long = ("f", "%.6g", "%.9g") if type_ is F32 else ("d", "%.15g", "%.17g")
    values = array(code, data)
    texts = ("\n".join([short] * len(values)) % tuple(values)).split("\n")
    back = array(code, map(float, texts))
    if back.tobytes() != data:
        words = array(WORD_CODES[type_.byte_size], data)
        for index, (value, again) in enumerate(zip(values, back, strict=True)):
            if value != again:
                texts[index] = long % value if value == value else nan_text(type_, words[index])
    return texts


@functools.lru_cache(maxsize=1024)
def _small_float_texts(type_: PrimitiveType) -> tuple[str, ...]:
    return tuple(_small_float_text(type_, word) for word in range(1 << type_.bits))


def _small_float_text(type_: PrimitiveType, word: int) -> str:
    value = decode_small_float(type_, word)
    return nan_text(type_, word) if value != value else f"%.{type_.digits}g" % value


def decode_small_float(type_: PrimitiveType, word: int) -> float:
    """Value of one element of at most 16 bits."""
    if type_.name == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", word << 16))[0])
    if type_.name == "f16":
        return float(struct.unpack("<e", struct.pack("<H", word))[0])
    return _small_float_values(type_)[word]


@functools.lru_cache(maxsize=1024)
def _small_float_values(type_: PrimitiveType) -> tuple[float, ...]:
    import numpy as np

    words = np.arange(1 << type_.bits, dtype=np.uint8)
    return tuple(words.view(type_.dtype).astype(np.float64).tolist())


def nan_text(type_: PrimitiveType, word: int) -> str:
    """`nan` or `-nan`; a payload that is not the quiet NaN's follows as `(0x…)`."""
    sign = "-" if word >> (type_.bits - 1) and type_.name != "f8e8m0fnu" else ""
    mantissa = MANTISSA_BITS.get(type_.name)
    if mantissa is None:
        return sign + "nan"
    payload = word & ((1 << mantissa) - 1)
    return sign + "nan" + ("" if payload == 1 << (mantissa - 1) else f"(0x{payload:x})")


def format_nested(dimensions: Sequence[int], texts: Sequence[str]) -> str:
    """Braces around `texts`, the elements of an array in row-major order."""
    if not dimensions:
        return texts[0]
    size, rank = dimensions[-1], len(dimensions)
    if rank == 1:
        return "{" + ", ".join(texts) + "}"
    rows = math.prod(dimensions[:-1])
    blank = " " if size > 1 else ""
    level = [
        f"{{{blank}{', '.join(texts[row * size : (row + 1) * size])}{blank}}}"
        for row in range(rows)
    ]
    for depth in range(rank - 2, -1, -1):
        size, rows = dimensions[depth], math.prod(dimensions[:depth])
        groups = [", ".join(level[row * size : (row + 1) * size]) for row in range(rows)]
        if rank > 3 and depth > 0:
            # Deep arrays say which element of the enclosing dimension a brace opens.
            outer, name = dimensions[depth - 1], f"i{depth - 1}"
            level = [
                f"{{ /*{name}={row % outer}*/ {group} }}"
                if group
                else f"{{ /*{name}={row % outer}*/ }}"
                for row, group in enumerate(groups)
            ]
        else:
            level = [f"{{ {group} }}" for group in groups]
    return level[0]
