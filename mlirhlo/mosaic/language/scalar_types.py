"""Element types that convert what they are called with, as those of `jax.numpy` do."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from mlirhlo.mosaic.language.elements import DType
from mlirhlo.mosaic.language.functions.arithmetic import cast
from mlirhlo.mosaic.language.value import Value, as_value


class _ScalarType(type):
    """A subclass of numpy's type of scalars that is equal to it."""

    base: Any

    def __call__(cls, x: Any = 0) -> Any:
        dtype = np.dtype(cls.base)
        return cast(as_value(x), dtype) if isinstance(x, Value) else converted(x, dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, np.dtype):
            return bool(other == np.dtype(cls.base))
        return other is cls or other is cls.base or getattr(other, "base", None) is cls.base

    def __hash__(cls) -> int:
        return hash(cls.base)


def scalar_type(base: Any) -> Any:
    """A type that stands for numpy's, and converts values of a kernel and arrays."""
    named = {"base": base, "__doc__": f"Elements of {base.__name__}; called, a conversion to them."}
    return _ScalarType(base.__name__, (base,), named)


def converted(x: Any, dtype: DType) -> Any:
    """Numbers as elements of another type; integers are the nearest that there are, as XLA converts floats."""
    array = np.asarray(x)
    if array.dtype.kind in "fV" and dtype.kind in "iu":
        info = ml_dtypes.iinfo(dtype)
        wide = np.nan_to_num(array.astype(np.float64), posinf=np.inf, neginf=-np.inf)
        array = np.clip(wide, float(info.min), float(info.max))
    return array.astype(dtype)[()]


__all__ = ["converted", "scalar_type"]
