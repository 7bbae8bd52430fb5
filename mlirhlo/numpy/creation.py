"""Arrays from nothing, from Python objects and from other libraries.

Source: Python array API standard 2024.12, "Creation functions".
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, check_device
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import floor, real
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.manipulation import astype, broadcast_to, reshape, stack
from mlirhlo.numpy.operands import as_array, default_of, is_scalar, scalar_data, shape_of


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Array:
    """An array of a scalar, of nested sequences, or of another array.

    Python numbers become bool, int64, float64 or complex128. Raises HLO0625 for objects without an
    element type, and for `copy=False` where a copy is needed.
    """
    check_device(device)
    wanted = None if dtype is None else dt.as_dtype(dtype)
    if isinstance(obj, Array):
        if wanted is not None and wanted != obj.dtype:
            if copy is False:
                raise _needs_copy()
            if dt.kind_of(obj.dtype) == "c" and dt.kind_of(wanted) in "iuf":
                # As numpy, also for its own arrays; `astype` is what the standard has raise.
                message = f"asarray: {obj.dtype} to {wanted} discards the imaginary part"
                warnings.warn(message, np.exceptions.ComplexWarning, stacklevel=2)
                obj = real(obj)
            return astype(obj, wanted)
        return obj.snapshot() if copy else obj
    if isinstance(obj, (list, tuple)) and _has_traced(cast("Sequence[Any]", obj)):
        return _stacked(cast("Sequence[Any]", obj), wanted)
    if is_scalar(obj):
        if copy is False:
            raise _needs_copy()
        return Array.concrete(scalar_data(obj, wanted or default_of(obj), "asarray"))
    try:
        # numpy finds the type of nested sequences, buffers and `__array__`.
        data: Any = np.asarray(obj, dtype=wanted)
    except (TypeError, ValueError, OverflowError) as error:
        raise problem(HloTypeError, "HLO0625", f"asarray: {error}") from None
    if data.dtype.kind == "O":
        raise problem(
            HloTypeError, "HLO0625", f"asarray: cannot make an array of {type(obj).__name__}"
        )
    dt.primitive(data.dtype)
    shares = data is obj or data.base is not None
    if copy is False and not shares:
        raise _needs_copy()
    # What shares memory with the caller would change under us.
    return Array.concrete(data.copy() if shares and copy is not False else data)


def _needs_copy() -> HloError:
    return problem(
        HloValueError,
        "HLO0625",
        "asarray: copy=False, but this object cannot be taken without a copy",
        help="leave copy away",
    )


def _has_traced(parts: Sequence[Any]) -> bool:
    return any(
        isinstance(part, Array)
        or (isinstance(part, (list, tuple)) and _has_traced(cast("Sequence[Any]", part)))
        for part in parts
    )


def _stacked(parts: Sequence[Any], dtype: DType | None) -> Array:
    arrays = [asarray(part) if not isinstance(part, Array) else part for part in parts]
    found = stack(arrays, axis=0)
    return found if dtype is None else astype(found, dtype)


@kernel
def _arange(start: Array, step: Array, *, count: int) -> Array:
    shape = (count,)
    places = ops.iota(start.dtype, shape, 0)
    scaled = ops.binary("multiply", places, ops.broadcast_to(step, shape))
    return ops.binary("add", scaled, ops.broadcast_to(start, shape))


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Array:
    """start, start + step, … below stop; up to `start` from 0 when it is alone."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    numbers = [_number(value, "arange") for value in (start, stop, step)]
    if numbers[2] == 0:
        raise problem(HloValueError, "HLO0626", "arange: the step is 0")
    if dtype is None:
        wanted = dt.float64 if any(isinstance(n, float) for n in numbers) else dt.int64
    else:
        wanted = dt.as_dtype(dtype)
    first, last, by = numbers
    if all(isinstance(n, int) for n in numbers):
        count = max(0, -((first - last) // by))
    else:
        count = max(0, math.ceil((last - first) / by))
    if dt.kind_of(wanted) in "iu" and any(isinstance(n, float) for n in numbers):
        # Elements are rounded, not the numbers they are made of.
        return Array.concrete(np.arange(first, last, by).astype(wanted))
    if count == 0:
        return zeros((0,), dtype=wanted)
    if count == 1:
        by = 0  # a step that nobody takes may be beyond the type
    arrays = [Array.concrete(_wrapped(n, wanted)) for n in (first, by)]
    return _arange(*arrays, count=count)


def _wrapped(number: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """A number in a type; a negative step of an unsigned type wraps, as its sums do."""
    if dt.kind_of(dtype) == "u" and number < 0:
        number += 1 << (8 * dtype.itemsize)
    return scalar_data(number, dtype, "arange")


def _number(value: Any, what: str) -> Any:
    if isinstance(value, (Array, np.ndarray, np.generic)):
        array = as_array(value, what)
        return array.known("a bound", "bounds of arange are static").item()
    if not isinstance(value, (int, float)):
        raise problem(HloTypeError, "HLO0625", f"{what}: {value!r} is no number")
    return int(value) if isinstance(value, int) else value


@kernel
def _linspace(start: Array, stop: Array, *, count: int, endpoint: bool) -> Array:
    shape, dtype = (count,), start.dtype
    parts = count - 1 if endpoint else count
    # Each half is counted from its own end, so that both ends are exact and nothing overflows.
    share = ops.binary(
        "divide",
        ops.convert(ops.iota(dt.real_of(dtype), shape, 0), dtype),
        ops.splat(max(parts, 1), dtype, shape),
    )
    rest = ops.binary("subtract", ops.splat(1, dtype, shape), share)
    a, b = ops.broadcast_to(start, shape), ops.broadcast_to(stop, shape)
    mixed = ops.binary("add", ops.binary("multiply", a, rest), ops.binary("multiply", b, share))
    places = ops.iota(dt.int64, shape, 0)
    found = ops.select(ops.compare("EQ", places, ops.like(0, places)), a, mixed)
    if not endpoint or count == 1:
        return found
    return ops.select(ops.compare("EQ", places, ops.like(parts, places)), b, found)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Array:
    """`num` numbers from start to stop, at equal distances."""
    check_device(device)
    (count,) = shape_of(num, "linspace")
    ends = [as_array(end, "linspace") for end in (start, stop)]
    wanted = None if dtype is None else dt.as_dtype(dtype)
    common = dt.floating(dt.promote(tuple(end.dtype for end in ends)))
    if wanted is not None and dt.kind_of(wanted) == "c":
        common = dt.complex128
    work = dt.float64 if dt.kind_of(common) == "f" else dt.complex128
    a, b = (astype(end, work) for end in ends)
    found = _linspace(a, b, count=count, endpoint=endpoint)
    if wanted is not None and dt.kind_of(wanted) in "iu":
        found = floor(found)
    return astype(found, wanted or common)


@kernel
def _full(value: Array, *, shape: tuple[int, ...]) -> Array:
    return ops.broadcast_to(value, shape)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """One value in every place of an array."""
    check_device(device)
    sizes = shape_of(shape, "full")
    value = as_array(fill_value, "full", None if dtype is None else dt.as_dtype(dtype))
    if dtype is not None:
        value = astype(value, dt.as_dtype(dtype))
    return _full(value, shape=sizes)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """As `full`, with the shape and type of an array."""
    array = as_array(x, "full_like")
    return full(array.shape, fill_value, dtype=dtype or array.dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros; float64 unless said otherwise."""
    return full(shape, 0, dtype=dtype or dt.float64, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros, with the shape and type of an array."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones; float64 unless said otherwise."""
    return full(shape, 1, dtype=dtype or dt.float64, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones, with the shape and type of an array."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros: HLO has no uninitialised memory."""
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros, with the shape and type of an array."""
    return zeros_like(x, dtype=dtype, device=device)


def band(shape: tuple[int, ...], direction: str, k: int = 0) -> Array:
    """Whether column - row compares with `k` as `direction` says, for matrices of a stack."""
    rank = len(shape)
    rows, columns = (ops.iota(dt.int64, shape, d) for d in (rank - 2, rank - 1))
    rows = ops.binary("add", rows, ops.like(k, rows)) if k else rows
    return ops.compare(direction, columns, rows)


@kernel
def _eye(*, shape: tuple[int, ...], k: int, dtype: DType) -> Array:
    return ops.convert(band(shape, "EQ", k), dtype)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """Ones on diagonal `k`, zeros elsewhere."""
    check_device(device)
    shape = shape_of((n_rows, n_rows if n_cols is None else n_cols), "eye")
    return _eye(shape=shape, k=_diagonal(k), dtype=dt.as_dtype(dtype or dt.float64))


def _diagonal(k: int) -> int:
    # Beyond any size all is the same; a number that int64 cannot hold would not be a constant.
    return max(-(2**31), min(2**31, int(k)))


@kernel
def _triangle(x: Array, *, direction: str, k: int) -> Array:
    return ops.select(band(x.shape, direction, k), x, ops.like(0, x))


def _triangle_of(x: Any, what: str, direction: str, k: int) -> Array:
    array = as_array(x, what)
    if array.ndim < 2:
        raise problem(HloValueError, "HLO0626", f"{what}: takes matrices, not {array.describe()}")
    return _triangle(array, direction=direction, k=_diagonal(k))


def tril(x: Any, /, *, k: int = 0) -> Array:
    """Matrices with zeros above diagonal `k`."""
    return _triangle_of(x, "tril", "LE", k)


def triu(x: Any, /, *, k: int = 0) -> Array:
    """Matrices with zeros below diagonal `k`."""
    return _triangle_of(x, "triu", "GE", k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid; `xy` has the first two dimensions exchanged, `ij` has not."""
    if indexing not in ("xy", "ij"):
        raise problem(
            HloValueError, "HLO0626", f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}"
        )
    axes = [as_array(array, "meshgrid") for array in arrays]
    if any(axis.ndim > 1 for axis in axes):
        raise problem(HloValueError, "HLO0626", "meshgrid: takes arrays of rank 1")
    order = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        order[:2] = [1, 0]
    shape = [0] * len(axes)
    for place, axis in zip(order, axes, strict=True):
        shape[place] = axis.size
    found: list[Array] = []
    for place, axis in zip(order, axes, strict=True):
        sizes = tuple(axis.size if d == place else 1 for d in range(len(axes)))
        found.append(broadcast_to(reshape(axis, sizes), tuple(shape)))
    return tuple(found)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, through DLPack."""
    check_device(device)
    if isinstance(x, Array):
        return asarray(x, copy=copy)
    data = np.from_dlpack(x)
    dt.primitive(data.dtype)
    return Array.concrete(data if copy is False else data.copy())
