"""Types of PTX as numpy types."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPES: dict[str, Any] = {
    "pred": np.dtype(np.bool_),
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    # Formats that numpy lacks, and packed pairs, are kept as their bits.
    "bf16": np.dtype(np.uint16),
    "tf32": np.dtype(np.uint32),
    **{name: np.dtype(np.uint32) for name in ("f16x2", "bf16x2", "u16x2", "s16x2", "f16x2x2")},
    "f32x2": np.dtype(np.uint64),
    **{name: np.dtype(np.uint8) for name in ("e4m3", "e5m2", "e2m3", "e3m2", "ue8m0", "e2m1x2")},
    **{
        name: np.dtype(np.uint16)
        for name in ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "e2m1x4")
    },
    **{
        name: np.dtype(np.uint32)
        for name in ("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "u8x4", "s8x4")
    },
}
"""The type of the elements of a register that holds a PTX type."""


def is_float(name: str) -> bool:
    """Whether a scalar PTX type is a floating-point type."""
    return name in ("f16", "bf16", "tf32", "f32", "f64")


def is_signed(name: str) -> bool:
    """Whether a PTX type is a signed integer."""
    return name.startswith("s") and name[1:].isdigit()


def bits_of(name: str) -> int:
    """Bits of a PTX type in memory."""
    return 128 if name == "b128" else DTYPES[name].itemsize * 8
