"""What the namespace says of itself, and its constants."""

from __future__ import annotations

import math
from typing import Any

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy.array import DEVICE, check_device
from mlirhlo.numpy.dtypes import DType

SUPPORTED_VERSIONS = ("2022.12", "2023.12", "2024.12")
"""Versions of the standard that are offered."""

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None


class Info:
    """Capabilities, types and devices; see `__array_namespace_info__` of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Outside of `jit` shapes may depend on values; inside they may not."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The one device."""
        return DEVICE

    def devices(self) -> list[str]:
        """The one device."""
        return [DEVICE]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The types that arrays get when nobody says which."""
        check_device(device)
        return {
            "real floating": dt.float64,
            "complex floating": dt.complex128,
            "integral": dt.int64,
            "indexing": dt.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's types by name, all or of a kind."""
        check_device(device)
        everything = (dt.bool, *dt.KINDS["numeric"])
        return {d.name: d for d in everything if kind is None or dt.isdtype(d, kind)}


def namespace_info() -> Info:
    """What the namespace says of itself."""
    return Info()
