"""Folds along dimensions, running folds, and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import mlirhlo.numpy as hnp
from mlirhlo.integrations.torch.aten.rules import Call, accumulator, axes, axis, rule
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.dtypes import DType


def _fold(function: Callable[..., Array], x: Array, dim: Any, keepdim: bool, dtype: DType) -> Array:
    """A fold in the type in which PyTorch accumulates."""
    wide = ops.convert(x, accumulator(dtype))
    result = function(wide, axis=axes(dim, x.ndim), keepdims=keepdim) if x.ndim else wide
    return ops.convert(result, dtype)


@rule("sum.default")
def _sum_all(call: Call, x: Array, *, dtype: Any = None) -> Array:
    return _fold(hnp.sum, x, None, False, call.dtype)


@rule("sum.dim_IntList")
def _sum(call: Call, x: Array, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return _fold(hnp.sum, x, dim, keepdim, call.dtype)


@rule("mean.default")
def _mean_all(call: Call, x: Array, *, dtype: Any = None) -> Array:
    return _fold(hnp.mean, x, None, False, call.dtype)


@rule("mean.dim")
def _mean(call: Call, x: Array, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return _fold(hnp.mean, x, dim, keepdim, call.dtype)


@rule("prod.default")
def _prod_all(call: Call, x: Array, *, dtype: Any = None) -> Array:
    return _fold(hnp.prod, x, None, False, call.dtype)


@rule("prod.dim_int")
def _prod(call: Call, x: Array, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return _fold(hnp.prod, x, dim, keepdim, call.dtype)


@rule("amax.default", "max.default")
def _amax(call: Call, x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return hnp.max(x, axis=axes(dim, x.ndim), keepdims=keepdim) if x.ndim else x


@rule("amin.default", "min.default")
def _amin(call: Call, x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return hnp.min(x, axis=axes(dim, x.ndim), keepdims=keepdim) if x.ndim else x


@rule("any.default", "any.dim", "any.dims")
def _any(call: Call, x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return hnp.any(x, axis=axes(dim, x.ndim), keepdims=keepdim) if x.ndim else call.cast(x)


@rule("all.default", "all.dim", "all.dims")
def _all(call: Call, x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return hnp.all(x, axis=axes(dim, x.ndim), keepdims=keepdim) if x.ndim else call.cast(x)


def _position(function: Callable[..., Array], x: Array, dim: int | None, keepdim: bool) -> Array:
    if x.ndim == 0:
        return ops.constant(0, dt.int64)
    at = None if dim is None else axis(dim, x.ndim)
    return ops.convert(function(x, axis=at, keepdims=keepdim), dt.int64)


@rule("argmax.default")
def _argmax(call: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return _position(hnp.argmax, x, dim, keepdim)


@rule("argmin.default")
def _argmin(call: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    return _position(hnp.argmin, x, dim, keepdim)


@rule("max.dim")
def _max_dim(call: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return _amax(call, x, dim, keepdim), _argmax(call, x, dim, keepdim)


@rule("min.dim")
def _min_dim(call: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return _amin(call, x, dim, keepdim), _argmin(call, x, dim, keepdim)


def _variance(x: Array, dim: Any, correction: float, keepdim: bool) -> tuple[Array, Array]:
    wide = ops.convert(x, accumulator(x.dtype))
    along = axes(dim, x.ndim)
    mean = hnp.mean(wide, axis=along, keepdims=True)
    variance = hnp.var(wide, axis=along, correction=correction, keepdims=keepdim)
    mean = mean if keepdim else hnp.squeeze(mean, axis=along)
    return ops.convert(variance, x.dtype), ops.convert(mean, x.dtype)


@rule("var.correction")
def _var(
    call: Call, x: Array, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False
) -> Array:
    return _variance(x, dim, 1 if correction is None else correction, keepdim)[0]


@rule("var_mean.correction")
def _var_mean(
    call: Call, x: Array, dim: Any = None, *, correction: float | None = 1, keepdim: bool = False
) -> tuple[Array, Array]:
    return _variance(x, dim, 1 if correction is None else correction, keepdim)


@rule("cumsum.default")
def _cumsum(call: Call, x: Array, dim: int, *, dtype: Any = None) -> Array:
    wide = ops.convert(x, accumulator(call.dtype))
    along = axis(dim, x.ndim)
    return ops.convert(hnp.cumulative_sum(wide, axis=along), call.dtype) if x.ndim else call.cast(x)


@rule("cumprod.default")
def _cumprod(call: Call, x: Array, dim: int, *, dtype: Any = None) -> Array:
    wide = ops.convert(x, accumulator(call.dtype))
    along = axis(dim, x.ndim)
    return (
        ops.convert(hnp.cumulative_prod(wide, axis=along), call.dtype) if x.ndim else call.cast(x)
    )


# ------------------------------------------------------------------ softmax


@rule("_softmax.default")
def _softmax(call: Call, x: Array, dim: int, half_to_float: bool) -> Array:
    wide = ops.convert(x, accumulator(x.dtype))
    along = axis(dim, x.ndim)
    powers = hnp.exp(wide - hnp.max(wide, axis=along, keepdims=True))
    return call.cast(powers / hnp.sum(powers, axis=along, keepdims=True))


@rule("_log_softmax.default")
def _log_softmax(call: Call, x: Array, dim: int, half_to_float: bool) -> Array:
    wide = ops.convert(x, accumulator(x.dtype))
    along = axis(dim, x.ndim)
    shifted = wide - hnp.max(wide, axis=along, keepdims=True)
    return call.cast(shifted - hnp.log(hnp.sum(hnp.exp(shifted), axis=along, keepdims=True)))


@rule("logsumexp.default")
def _logsumexp(call: Call, x: Array, dim: Any, keepdim: bool = False) -> Array:
    along = axes(dim, x.ndim)
    most = hnp.max(x, axis=along, keepdims=True)
    shift = hnp.where(hnp.isfinite(most), most, ops.constant(0, x.dtype))
    total = hnp.log(hnp.sum(hnp.exp(x - shift), axis=along, keepdims=True)) + shift
    return total if keepdim else hnp.squeeze(total, axis=along)


# ------------------------------------------------------------------ sorting


def _sorted(x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, ops.constant(0, dt.int64)
    at = axis(dim, x.ndim)
    values, order = ops.sort((x, ops.iota(dt.int64, x.shape, at)), at, descending=descending)
    return values, order


@rule("sort.default")
def _sort(call: Call, x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    return _sorted(x, dim, descending)


@rule("sort.stable")
def _sort_stable(
    call: Call, x: Array, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Array, Array]:
    return _sorted(x, dim, descending)


@rule("median.dim")
def _median_dim(call: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower of the two in the middle; NaN where there is one."""
    if x.ndim == 0:
        return x, ops.constant(0, dt.int64)
    at = axis(dim, x.ndim)
    both = _sorted(x, at, False)
    middle = ops.constant((x.shape[at] - 1) // 2, dt.int64)
    if dt.kind_of(x.dtype) == "f":  # those are last
        count = hnp.sum(hnp.astype(hnp.isnan(x), dt.int64), axis=at, keepdims=True)
        last = ops.constant(x.shape[at] - 1, dt.int64)
        middle = hnp.where(hnp.greater(count, 0), last - count + 1, middle)
    index = ops.broadcast_to(middle, tuple(1 if d == at else n for d, n in enumerate(x.shape)))
    values, order = (hnp.take_along_axis(part, index, axis=at) for part in both)
    return (
        (values, order) if keepdim else (hnp.squeeze(values, axis=at), hnp.squeeze(order, axis=at))
    )


@rule("median.default")
def _median(call: Call, x: Array) -> Array:
    return _median_dim(call, ops.reshape(x, (prod(x.shape),)), 0)[0]


@rule("topk.default")
def _topk(
    call: Call, x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sequence[Array]:
    at = axis(dim, x.ndim)
    both = _sorted(x, dim, largest)
    return [ops.slice_axis(part, at, 0, k) if part.ndim else part for part in both]
