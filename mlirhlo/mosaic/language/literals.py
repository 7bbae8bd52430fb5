"""Numbers as attributes of MLIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from mlirhlo.dialects.stablehlo.elements import dense
from mlirhlo.mosaic.language.elements import DType, bits_of, element_type, kind_of
from mlirhlo.mosaic.language.faults import bad_type

if TYPE_CHECKING:
    from xdsl.ir import Attribute


def literal(number: Any, dtype: DType, shape: Sequence[int], type_: Attribute) -> Attribute:
    """The `value` of an `arith.constant`. Raises HLO0722 for numbers the type cannot hold."""
    kind = kind_of(dtype)
    if kind in "iu" and not isinstance(number, bool):
        number = _integer(number, dtype)
    if shape:
        stored = np.asarray(number).astype(_stored(dtype))
        return dense(stored, type_)
    element: Any = element_type(dtype)
    if kind == "f":
        return FloatAttr(float(np.asarray(number).astype(dtype)), element)
    return IntegerAttr(int(number), element)


def _stored(dtype: DType) -> DType:
    """The signed type with the bits of an unsigned one: kernels have integers without sign."""
    if kind_of(dtype) != "u":
        return dtype
    import ml_dtypes

    name = dtype.name.removeprefix("u")
    stored: DType = np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    return stored


def _integer(number: Any, dtype: DType) -> int:
    """The number, or with the sign that its bits have in a type without sign."""
    value = int(number)
    if value != number:
        raise bad_type(f"{number} is no {dtype.name}")
    bits = bits_of(dtype)
    low, high = (0, (1 << bits) - 1)
    if kind_of(dtype) == "i":
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if not low <= value <= high:
        raise bad_type(f"{value} does not fit into {dtype.name}", f"it holds {low} to {high}")
    return value - (1 << bits) if value >= 1 << (bits - 1) else value
