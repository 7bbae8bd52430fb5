"""Element types. The names are those of `jax.dtypes`."""

from __future__ import annotations

import ml_dtypes

from mlirhlo.mosaic.language.elements import DType, DTypeLike, as_dtype
from mlirhlo.mosaic.language.elements import bits_of as _bits_of
from mlirhlo.mosaic.language.functions.derived import issubdtype, result_type

bfloat16 = ml_dtypes.bfloat16
finfo, iinfo = ml_dtypes.finfo, ml_dtypes.iinfo


def itemsize_bits(dtype: DTypeLike) -> int:
    """The width of an element in bits."""
    return (
        max(_bits_of(as_dtype(dtype)), 8)
        if as_dtype(dtype).kind == "b"
        else _bits_of(as_dtype(dtype))
    )


def canonicalize_dtype(dtype: DTypeLike, **_: object) -> DType:
    """The dtype. Raises `HloError` HLO0722 for those that kernels have not."""
    return as_dtype(dtype)


__all__ = [
    "bfloat16",
    "canonicalize_dtype",
    "finfo",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "result_type",
]
