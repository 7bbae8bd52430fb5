"""Functions that fold or accumulate along axes.

Sums of float16 and bfloat16 are taken in float32 and rounded once.
Source: Python array API standard 2024.12, "Statistical functions" and "Utility functions".
"""

# The standard's names are those of Python's own functions.
# ruff: noqa: A001
# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, axes_of, axis_of
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import is_complex, magnitude
from mlirhlo.numpy.errors import HloValueError, problem
from mlirhlo.numpy.manipulation import concat
from mlirhlo.numpy.operands import as_array, checked

Axes = tuple[int, ...]


def kept(x: Array, axes: Axes, keepdims: bool, shape: tuple[int, ...]) -> Array:
    """A reduced array, with its dimensions as size 1 when they are kept."""
    if not keepdims:
        return x
    return ops.reshape(x, tuple(1 if d in axes else size for d, size in enumerate(shape)))


def _wide(dtype: DType) -> DType:
    return dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype


def _reduction(name: str, opcode: str) -> Callable[..., Array]:
    """The kernel of a fold by `opcode`."""

    def record(x: Array, *, axes: Axes, keepdims: bool, dtype: DType) -> Array:
        work = _wide(dtype) if opcode in ("add", "multiply") else dtype
        found = ops.convert(ops.reduce(opcode, ops.convert(x, work), axes), dtype)
        return kept(found, axes, keepdims, x.shape)

    record.__name__ = name
    return kernel(record)


def sum_dtype(dtype: DType) -> DType:
    """The type of sums: integers add up in 64 bits."""
    return {"b": dt.int64, "i": dt.int64, "u": dt.uint64}.get(dt.kind_of(dtype), dtype)


def _folding(name: str, opcode: str, summary: str) -> Callable[..., Array]:
    reduce = _reduction(name, opcode)

    def function(
        x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        array = as_array(x, name)
        wanted = sum_dtype(array.dtype) if dtype is None else dt.as_dtype(dtype)
        axes = axes_of(axis, array.ndim, name)
        return reduce(array, axes=axes, keepdims=keepdims, dtype=wanted)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def _extreme(name: str, opcode: str, summary: str) -> Callable[..., Array]:
    reduce = _reduction(name, opcode)

    def function(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        array = as_array(x, name)
        dtype = checked(name, "real", array.dtype)
        axes = axes_of(axis, array.ndim, name)
        if builtins.any(array.shape[d] == 0 for d in axes):
            raise problem(
                HloValueError, "HLO0626", f"{name}: nothing to choose from in {array.describe()}"
            )
        return reduce(array, axes=axes, keepdims=keepdims, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def _connective(name: str, opcode: str, summary: str) -> Callable[..., Array]:
    reduce = _reduction(name, opcode)

    def function(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        array = as_array(x, name)
        axes = axes_of(axis, array.ndim, name)
        return reduce(array, axes=axes, keepdims=keepdims, dtype=dt.bool)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


all = _connective("all", "and", "Whether all elements are not 0.")
any = _connective("any", "or", "Whether some element is not 0.")
max = _extreme("max", "maximum", "The greatest element; NaN wins.")
min = _extreme("min", "minimum", "The least element; NaN wins.")
prod = _folding("prod", "multiply", "The product; integers multiply in 64 bits.")
sum = _folding("sum", "add", "The sum; integers add up in 64 bits.")


@kernel
def _mean(x: Array, *, axes: Axes, keepdims: bool, dtype: DType) -> Array:
    return ops.convert(_mean_of(ops.convert(x, _wide(dtype)), axes, keepdims), dtype)


def _mean_of(x: Array, axes: Axes, keepdims: bool) -> Array:
    total = ops.reduce("add", x, axes)
    count = math.prod(x.shape[d] for d in axes)
    return kept(ops.binary("divide", total, ops.like(count, total)), axes, keepdims, x.shape)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The arithmetic mean."""
    array = as_array(x, "mean")
    dtype = dt.floating(array.dtype)
    axes = axes_of(axis, array.ndim, "mean")
    return _mean(array, axes=axes, keepdims=keepdims, dtype=dtype)


@kernel
def _var(
    x: Array, *, axes: Axes, keepdims: bool, dtype: DType, correction: float, root: bool
) -> Array:
    work = ops.convert(x, _wide(dtype))
    distance = ops.binary(
        "subtract", work, ops.broadcast_to(_mean_of(work, axes, keepdims=True), x.shape)
    )
    if is_complex(distance):
        distance = magnitude(distance)
    squares = ops.reduce("add", ops.binary("multiply", distance, distance), axes)
    degrees = math.prod(x.shape[d] for d in axes) - correction
    found = ops.binary("divide", squares, ops.like(builtins.max(0.0, degrees), squares))
    if root:
        found = ops.unary("sqrt", found)
    return kept(ops.convert(found, dt.real_of(dtype)), axes, keepdims, x.shape)


def _spread(x: Any, axis: Any, correction: float, keepdims: bool, *, root: bool) -> Array:
    name = "std" if root else "var"
    array = as_array(x, name)
    return _var(
        array,
        axes=axes_of(axis, array.ndim, name),
        keepdims=keepdims,
        dtype=dt.floating(array.dtype),
        correction=float(correction),
        root=root,
    )


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation, with `correction` degrees of freedom taken off."""
    return _spread(x, axis, correction, keepdims, root=True)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance, with `correction` degrees of freedom taken off."""
    return _spread(x, axis, correction, keepdims, root=False)


def running(opcode: str, x: Array, axis: int) -> Array:
    """`x` folded up to each place along an axis, in log2(n) steps over the whole array."""
    size, reach = x.shape[axis], 1
    while reach < size:
        head = ops.slice_axis(x, axis, 0, reach)
        tail = ops.binary(
            opcode,
            ops.slice_axis(x, axis, 0, size - reach),
            ops.slice_axis(x, axis, reach, size),
        )
        x = ops.concatenate([head, tail], axis)
        reach *= 2
    return x


@kernel
def _cumulative(x: Array, *, opcode: str, axis: int, dtype: DType, initial: bool) -> Array:
    found = ops.convert(running(opcode, ops.convert(x, _wide(dtype)), axis), dtype)
    if not initial:
        return found
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    first = ops.splat(0 if opcode == "add" else 1, dtype, shape)
    return ops.concatenate([first, found], axis)


def _accumulating(name: str, opcode: str, summary: str) -> Callable[..., Array]:
    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Array:
        array = as_array(x, name)
        if axis is None:
            if array.ndim != 1:
                raise problem(
                    HloValueError,
                    "HLO0626",
                    f"{name}: needs an axis for an array of {array.ndim} dimensions",
                )
            axis = 0
        return _cumulative(
            array,
            opcode=opcode,
            axis=axis_of(axis, array.ndim, name),
            dtype=sum_dtype(array.dtype) if dtype is None else dt.as_dtype(dtype),
            initial=include_initial,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


cumulative_prod = _accumulating("cumulative_prod", "multiply", "Products up to each element.")
cumulative_sum = _accumulating("cumulative_sum", "add", "Sums up to each element.")


@kernel
def _count_nonzero(x: Array, *, axes: Axes, keepdims: bool) -> Array:
    flags = ops.convert(ops.convert(x, dt.bool), dt.int64)
    return kept(ops.reduce("add", flags, axes), axes, keepdims, x.shape)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """How many elements are not 0."""
    array = as_array(x, "count_nonzero")
    axes = axes_of(axis, array.ndim, "count_nonzero")
    return _count_nonzero(array, axes=axes, keepdims=keepdims)


@kernel
def _diff(x: Array, *, axis: int, n: int) -> Array:
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        high, low = ops.slice_axis(x, axis, 1, size), ops.slice_axis(x, axis, 0, size - 1)
        x = (
            ops.compare("NE", high, low)
            if x.dtype == dt.bool
            else ops.binary("subtract", high, low)
        )
    return x


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Array:
    """The n-th differences along an axis."""
    array = as_array(x, "diff")
    place = axis_of(axis, array.ndim, "diff")
    if n < 0:
        raise problem(HloValueError, "HLO0626", f"diff: n is {n}")
    parts = [part for part in (prepend, array, append) if part is not None]
    if len(parts) > 1:
        array = concat(parts, axis=place)
    return _diff(array, axis=place, n=n)
