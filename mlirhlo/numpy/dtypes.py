"""Data types of the array API standard: numpy's dtype objects, and who promotes to whom.

Types of one kind promote as the standard's table says. Mixed kinds, which the standard leaves open,
promote as numpy does; Python scalars take the type of the array beside them where its kind can
hold them. Defaults are numpy's: float64, int64, complex128.

With `JAX_ENABLE_X64=0`, read when this module is imported, types of 64 bits are those of 32, as in JAX:
`float64` is another name of `float32`.
"""

# The standard's names are those of Python's own functions.
# ruff: noqa: A001
# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from mlirhlo.debug.options.jax_era import jax_settings
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem

DType: TypeAlias = "np.dtype[Any]"
Data: TypeAlias = "np.ndarray[Any, Any]"

bool = np.dtype(np.bool_)
_WIDEST = 64 if jax_settings().enable_x64 else 32
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, _WIDEST))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, _WIDEST))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, _WIDEST))
complex64, complex128 = np.dtype(np.complex64), np.dtype(f"complex{2 * _WIDEST}")
bfloat16: DType = np.dtype(ml_dtypes.bfloat16)
"""float16 and bfloat16 are beyond the standard: HLO has them."""

_NARROWED: dict[DType, DType] = {
    np.dtype(wide): narrow
    for wide, narrow in (
        (np.int64, int64), (np.uint64, uint64), (np.float64, float64), (np.complex128, complex128)
    )
    if np.dtype(wide) != narrow
}  # fmt: skip
"""What stands for types that there are not."""

SIGNED = tuple(dict.fromkeys((int8, int16, int32, int64)))
UNSIGNED = tuple(dict.fromkeys((uint8, uint16, uint32, uint64)))
FLOATS = tuple(dict.fromkeys((float32, float64)))
COMPLEX = tuple(dict.fromkeys((complex64, complex128)))
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + FLOATS + COMPLEX,
}
"""The standard's kinds of types, as `isdtype` and `__array_namespace_info__` name them."""

_NARROW = (float16, bfloat16)
_BY_DTYPE: dict[DType, PrimitiveType] = {
    row.dtype: row for row in PRIMITIVE_TYPES.values() if row.numpy_name
}
PythonScalar: TypeAlias = "complex | float | int"


def primitive(dtype: DType) -> PrimitiveType:
    """The element type of HLO. Raises HLO0625 for a type that HLO lacks (strings, objects, …)."""
    found = _BY_DTYPE.get(dtype)
    if found is None:
        raise problem(HloTypeError, "HLO0625", f"arrays of {dtype} have no element type in HLO")
    return found


def as_dtype(given: Any) -> DType:
    """A dtype object from what a user passes as `dtype=`. Raises HLO0625."""
    try:
        dtype: DType = np.dtype(given)
    except TypeError:
        raise problem(HloTypeError, "HLO0625", f"{given!r} is no data type") from None
    primitive(dtype)
    return _NARROWED.get(dtype, dtype)


def available(data: Data) -> Data:
    """Elements in the type that stands for theirs: the same array, unless there are no 64 bits."""
    if _NARROWED and (narrow := _NARROWED.get(data.dtype)) is not None:
        return data.astype(narrow)
    return data


def kind_of(dtype: DType) -> str:
    """`b`, `i`, `u`, `f` or `c`; ml_dtypes' own types by what they are."""
    kind = primitive(dtype).kind.value
    return {"pred": "b", "signed": "i", "unsigned": "u", "float": "f", "complex": "c"}[kind]


def is_floating(dtype: DType) -> Any:
    """Real or complex floating point."""
    return kind_of(dtype) in "fc"


def real_of(dtype: DType) -> DType:
    """The type of the parts of a complex type; other types as they are."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex type whose parts have a type."""
    return dtype if kind_of(dtype) == "c" else complex128 if dtype == float64 else complex64


def floating(dtype: DType) -> DType:
    """The type in which a function of floats works on a type: integers become the default float."""
    return dtype if is_floating(dtype) else float64


@functools.lru_cache(maxsize=4096)
def promote(kinds: tuple[DType | type, ...]) -> DType:
    """The common type; Python's own types stand for scalars. Raises `TypeError` where none is."""
    # numpy's rule for Python scalars does not see the value, only its type.
    samples: dict[Any, Any] = {int: 1, float: 1.0, complex: 1j}
    found: DType = np.result_type(*(samples.get(k, k) if isinstance(k, type) else k for k in kinds))
    return _NARROWED.get(found, found)


@dataclass(frozen=True)
class finfo_object:  # noqa: N801  (the standard's name)
    """What is to know of a floating type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class iinfo_object:  # noqa: N801  (the standard's name)
    """What is to know of an integer type."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(given: Any) -> DType:
    return (
        given.dtype if hasattr(given, "dtype") and not isinstance(given, type) else as_dtype(given)
    )


def finfo(type: Any, /) -> finfo_object:
    """Limits of a floating type, or of an array's."""
    dtype = real_of(_dtype_of(type))
    if kind_of(dtype) != "f":
        raise problem(HloValueError, "HLO0625", f"finfo: {dtype} is no floating-point type")
    info: Any = ml_dtypes.finfo(dtype)
    return finfo_object(
        dtype.itemsize * 8,
        float(info.eps),
        float(info.max),
        float(info.min),
        float(info.smallest_normal),
        dtype,
    )


def iinfo(type: Any, /) -> iinfo_object:
    """Limits of an integer type, or of an array's."""
    dtype = _dtype_of(type)
    if kind_of(dtype) not in "iu":
        raise problem(HloValueError, "HLO0625", f"iinfo: {dtype} is no integer type")
    info: Any = ml_dtypes.iinfo(dtype)
    return iinfo_object(int(info.bits), int(info.max), int(info.min), dtype)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether type promotion leads from a type, or an array's, to a type."""
    source, target = _dtype_of(from_), as_dtype(to)
    if source == target:
        return True
    mixed = {kind_of(source), kind_of(target)}
    if len(mixed) > 1 and mixed not in ({"i", "u"}, {"f", "c"}):
        return False
    return promote((source, target)) == target


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a type is of a kind: a dtype, a name of `KINDS`, or a tuple of them."""
    dtype = as_dtype(dtype)
    if isinstance(kind, tuple):
        parts: Iterable[Any] = kind
        return any(isdtype(dtype, part) for part in parts)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise problem(
                HloValueError,
                "HLO0625",
                f"isdtype: no kind {kind!r}",
                help=f"one of {', '.join(KINDS)}",
            )
        return dtype in KINDS[kind] or (dtype in _NARROW and kind in ("real floating", "numeric"))
    return dtype == as_dtype(kind)
