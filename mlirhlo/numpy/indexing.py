"""Reading and writing elements: `x[key]`, `x[key] = v`, `take`, `take_along_axis`.

Keys are integers (also traced ones), slices, `...`, `None`, integer arrays, and boolean arrays.
A boolean array alone reads a result whose shape depends on values, outside of `jit` only; writing
through it is a choice by element, which compiles.
Source: Python array API standard 2024.12, "Indexing"; mixed keys as numpy has them.
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, axis_of
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.errors import HloIndexError, HloTypeError, HloValueError, problem
from mlirhlo.numpy.manipulation import astype, broadcast_to, data_dependent, reshape
from mlirhlo.numpy.operands import as_array, broadcast_shapes, is_scalar, scalar_data
from mlirhlo.numpy.tracing.trace import current

Range = tuple[int, int, int]


@dataclass(slots=True)
class Basic:
    """The static part of a key."""

    ranges: list[Range] = field(default_factory=list[Range])
    """Start, stop and step of every dimension; steps may be negative."""
    shape: list[int] = field(default_factory=list[int])
    """Shape of what is read: without the dimensions of integers, with new ones."""
    arrays: list[tuple[int, int, Array]] = field(default_factory=list[tuple[int, int, Array]])
    """Dimension of `shape`, place in the key, and index array."""


def _is_mask(part: Any) -> bool:
    if isinstance(part, Array):
        return part.dtype == dt.bool
    return isinstance(part, (bool, np.bool_)) or (
        isinstance(part, np.ndarray) and part.dtype == np.bool_
    )


def _parts(key: Any, shape: tuple[int, ...], what: str) -> list[Any]:
    """The parts of a key, one for each dimension or `None`: `...` spelt out, masks as indices.

    Raises HLO0627 for too many, HLO0621 for traced masks.
    """
    given = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    used = sum(_dimensions(part) for part in given)
    gaps = [place for place, part in enumerate(given) if part is Ellipsis]
    if used > len(shape) or len(gaps) > 1:
        reason = "more than one ..." if len(gaps) > 1 else f"{used} indices"
        raise problem(
            HloIndexError, "HLO0627", f"{what}: {reason} for an array of {len(shape)} dimensions"
        )
    gap = gaps[0] if gaps else len(given)
    given[gap : gap + 1] = [slice(None)] * (len(shape) - used)
    found: list[Any] = []
    dim = 0
    for part in given:
        if _is_mask(part):
            found += _places(part, shape[dim : dim + part.ndim], what)
        else:
            found.append(part)
        dim += _dimensions(part)
    return found


def _part(part: Any) -> Any:
    """A part of a key, with lists, numpy's arrays and booleans as arrays."""
    if isinstance(part, list):
        part = np.asarray(part, dtype=None if part else np.int64)
    if isinstance(part, (np.ndarray, bool, np.bool_)):
        return as_array(part, "an index")
    return part


def _dimensions(part: Any) -> int:
    """How many dimensions a part of a key is for."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if _is_mask(part) else 1


def _places(mask: Array, sizes: tuple[int, ...], what: str) -> list[Array]:
    """The indices of a mask's elements. Raises HLO0627 for one that does not fit its dimensions."""
    if mask.data is None:
        raise data_dependent(
            "x[mask]", "use where(mask, x, y), or x[mask] = value, or count with sum(mask)"
        )
    _check_mask(mask, sizes, what)
    return [Array.concrete(index) for index in np.nonzero(mask.data)]


def _check_mask(mask: Array, sizes: tuple[int, ...], what: str) -> None:
    """Raises HLO0627 unless a mask has the sizes of its dimensions, or no elements."""
    fits = len(sizes) == mask.ndim and all(
        size in (other, 0) for size, other in zip(mask.shape, sizes, strict=True)
    )
    if not fits:
        raise problem(
            HloIndexError,
            "HLO0627",
            f"{what}: a mask of shape {list(mask.shape)} does not fit dimensions {list(sizes)}",
        )


def _basic(x: Array, key: Any, what: str) -> Basic:
    basic = Basic()
    dim = 0
    parts = _parts(key, x.shape, what)
    advanced = any(isinstance(part, Array) for part in parts)
    for place, part in enumerate(parts):
        if part is None:
            basic.shape.append(1)
            continue
        size = x.shape[dim]
        dim += 1
        if isinstance(part, slice):
            start, stop, step = _bounds(part, size)
            basic.ranges.append((start, stop, step))
            basic.shape.append(len(range(start, stop, step)))
            continue
        if isinstance(part, Array):
            if dt.kind_of(part.dtype) not in "iu":
                raise problem(HloIndexError, "HLO0627", f"{what}: {part.describe()} is no index")
            index = part
        else:
            number = _integer(part, size, dim - 1, what)
            if not advanced:
                basic.ranges.append((number, number + 1, 1))
                continue
            index = Array.concrete(np.asarray(number))
        basic.ranges.append((0, size, 1))
        basic.arrays.append((len(basic.shape), place, _within(index, size, dim - 1, what)))
        basic.shape.append(size)
    return basic


def _bounds(part: slice, size: int) -> Range:
    try:
        return part.indices(size)
    except TypeError as error:
        raise problem(HloTypeError, "HLO0627", f"a slice: {error}") from None
    except ValueError as error:
        raise problem(HloValueError, "HLO0627", f"a slice: {error}") from None


def _integer(part: Any, size: int, dim: int, what: str) -> int:
    try:
        number = part.__index__()
    except AttributeError:
        raise problem(HloIndexError, "HLO0627", f"{what}: {part!r} is no index") from None
    if not -size <= number < size:
        raise problem(
            HloIndexError,
            "HLO0627",
            f"{what}: index {number} is out of range for dimension {dim} of size {size}",
        )
    return int(number % size)


def _within(index: Array, size: int, dim: int, what: str) -> Array:
    """An index array as int64 from 0 on; values of concrete ones are checked."""
    data = index.data
    if data is not None:
        if data.size and (int(data.min()) < -size or int(data.max()) >= size):
            raise problem(
                HloIndexError,
                "HLO0627",
                f"{what}: an index is out of range for dimension {dim} of size {size}",
            )
        wide = data.astype(np.int64)
        return Array.concrete(np.where(wide < 0, wide + size, wide))
    return _wrapped(index, size=size)


@kernel
def _wrapped(index: Array, *, size: int) -> Array:
    wide = ops.convert(index, dt.int64)
    is_negative = ops.compare("LT", wide, ops.like(0, wide))
    return ops.select(is_negative, ops.binary("add", wide, ops.like(size, wide)), wide)


def _read_ranges(x: Array, ranges: Sequence[Range]) -> Array:
    """`x[start:stop:step]` in every dimension; backward ones turned round."""
    forward = [_forward(one) for one in ranges]
    backward = tuple(d for d, (_, _, step) in enumerate(ranges) if step < 0)
    return ops.reverse(ops.slice_(x, forward), backward)


def _forward(one: Range) -> Range:
    """The same places with a positive step."""
    start, stop, step = one
    places = range(start, stop, step)
    if not places:
        return (0, 0, 1)
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    return (low, high + 1, abs(step))


@kernel
def _getitem(x: Array, *, ranges: tuple[Range, ...], shape: tuple[int, ...]) -> Array:
    return ops.reshape(_read_ranges(x, ranges), shape)


@kernel
def _getitem_at(x: Array, *starts: Array, sizes: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    return ops.reshape(ops.dynamic_slice(x, starts, sizes), shape)


def _starts(ranges: Sequence[Range]) -> list[Array] | None:
    """Starts as arrays, where a module outside of `jit` can serve all places of a slice.

    None inside of `jit`, where what is static shall be seen, and for slices with steps.
    """
    if current() is not None or not all(step == 1 for _, _, step in ranges):
        return None
    return [Array.concrete(np.asarray(start)) for start, _, _ in ranges]


def _sizes(ranges: Sequence[Range]) -> tuple[int, ...]:
    return tuple(len(range(*one)) for one in ranges)


def _vectors(indices: Sequence[Array]) -> Array:
    """Index arrays of one shape as vectors along a last dimension."""
    shape = (*indices[0].shape, 1)
    return ops.concatenate([ops.reshape(index, shape) for index in indices], len(shape) - 1)


@kernel
def _gather(x: Array, *indices: Array, axes: tuple[int, ...], at: int) -> Array:
    return ops.gather(x, _vectors(indices), axes, at)


def _advanced(basic: Basic) -> tuple[list[Array], tuple[int, ...], int, tuple[int, ...]]:
    """Index arrays of one shape, their dimensions, where their own dimensions stand, their shape."""
    places = [place for _, place, _ in basic.arrays]
    axes = tuple(dim for dim, _, _ in basic.arrays)
    shape = broadcast_shapes("an index", *(index.shape for _, _, index in basic.arrays))
    indices = [broadcast_to(index, shape) for _, _, index in basic.arrays]
    # Neighbours leave their dimensions where they were, others at the front.
    together = places == list(range(places[0], places[0] + len(places)))
    return indices, axes, axes[0] if together else 0, shape


def get_item(x: Array, key: Any) -> Array:
    """`x[key]`. Raises HLO0627 for keys that do not fit, HLO0621 for a mask inside of `jit`."""
    dynamic = _dynamic_integer(x, key)
    if dynamic is not None:
        return _pick(x, dynamic)
    if _is_mask(key) and (mask := as_array(key, "a mask")).ndim == 0 and mask.data is not None:
        # A mask of rank 0 adds a dimension that holds all or nothing.
        return get_item(x, (None, slice(None)) if x.ndim else None)[: int(bool(mask))]
    basic = _basic(x, key, "x[key]")
    ranges = tuple(basic.ranges)
    shape = tuple(basic.shape)
    whole = all(one == (0, size, 1) for one, size in zip(ranges, x.shape, strict=True))
    if not (whole and shape == x.shape):
        starts = _starts(ranges)
        if starts is None:
            x = _getitem(x, ranges=ranges, shape=shape)
        else:
            x = _getitem_at(x, *starts, sizes=_sizes(ranges), shape=shape)
    if not basic.arrays:
        return x
    indices, axes, at, _ = _advanced(basic)
    return _gather(x, *indices, axes=axes, at=at)


def _dynamic_integer(x: Array, key: Any) -> Array | None:
    """The index of `x[i]` with a traced scalar."""
    if isinstance(key, Array) and key.data is None and not key.shape and x.ndim:
        if dt.kind_of(key.dtype) in "iu":
            return _within(key, x.shape[0], 0, "x[key]")
    return None


@kernel
def _pick(x: Array, index: Array) -> Array:
    zero = ops.constant(0, dt.int64)
    starts = [index, *[zero] * (x.ndim - 1)]
    return ops.reshape(ops.dynamic_slice(x, starts, (1, *x.shape[1:])), x.shape[1:])


# ------------------------------------------------------------------ writing


@kernel
def _setitem(x: Array, value: Array, *, ranges: tuple[Range, ...], shape: tuple[int, ...]) -> Array:
    update = ops.reshape(ops.broadcast_to(value, shape), _sizes(ranges))
    update = ops.reverse(update, tuple(d for d, one in enumerate(ranges) if one[2] < 0))
    forward = [_forward(one) for one in ranges]
    if update.shape == x.shape:
        return update
    if all(step == 1 for _, _, step in forward):
        starts = [ops.constant(start, dt.int64) for start, _, _ in forward]
        return ops.dynamic_update_slice(x, update, starts)
    # Steps leave gaps: the update is spread out, and chosen where it has something.
    padding = [
        (start, size - limit, step - 1)
        for (start, limit, step), size in zip(forward, x.shape, strict=True)
    ]
    spread = ops.pad(update, ops.constant(0, x.dtype), padding)
    mask = ops.splat(True, dt.bool, update.shape)
    return ops.select(ops.pad(mask, ops.constant(False, dt.bool), padding), spread, x)


@kernel
def _setitem_at(
    x: Array, value: Array, *starts: Array, sizes: tuple[int, ...], shape: tuple[int, ...]
) -> Array:
    update = ops.reshape(ops.broadcast_to(value, shape), sizes)
    return ops.dynamic_update_slice(x, update, starts)


@kernel
def _scatter(
    x: Array, value: Array, *indices: Array, axes: tuple[int, ...], at: int, shape: tuple[int, ...]
) -> Array:
    return ops.scatter(x, _vectors(indices), ops.broadcast_to(value, shape), axes, at)


@kernel
def _masked(x: Array, mask: Array, value: Array) -> Array:
    whole = ops.broadcast(mask, x.shape, tuple(range(mask.ndim)))
    return ops.select(whole, ops.broadcast_to(value, x.shape), x)


def _value_for(x: Array, value: Any) -> Array:
    if is_scalar(value):
        return Array.concrete(scalar_data(value, x.dtype, "x[key] = value"))
    array = as_array(value, "x[key] = value")
    if array.dtype != x.dtype:
        ranks = "biufc"
        kinds = dt.kind_of(array.dtype), dt.kind_of(x.dtype)
        if ranks.index(kinds[0]) > ranks.index(kinds[1]) and set(kinds) != {"i", "u"}:
            raise problem(
                HloTypeError,
                "HLO0625",
                f"x[key] = value: {array.dtype} does not fit into an array of {x.dtype}",
                help="convert it: mlirhlo.numpy.astype(value, x.dtype)",
            )
        array = astype(array, x.dtype)
    return array


def set_item(x: Array, key: Any, value: Any) -> Array:
    """The array with `value` at the places of `key`. Raises HLO0625, HLO0626, HLO0627."""
    filler = _value_for(x, value)
    if _is_mask(key):
        mask = as_array(key, "a mask")
        _check_mask(mask, x.shape[: mask.ndim], "x[mask] = value")
        if 0 in mask.shape:
            return x.snapshot()
        if filler.ndim == 0 or mask.data is None:
            if filler.ndim > x.ndim - mask.ndim:
                raise data_dependent("x[mask] = array", "use where(mask, array, x)")
            return _masked(x, mask, filler)
    dynamic = _dynamic_integer(x, key)
    if dynamic is not None:
        return _put(x, dynamic, broadcast_to(_fitted(filler, x.shape[1:]), x.shape[1:]))
    basic = _basic(x, key, "x[key] = value")
    shape = tuple(basic.shape)
    if not basic.arrays:
        filler = _fitted(filler, shape)
        if 0 in shape:
            return x.snapshot()
        starts = _starts(basic.ranges)
        if starts is not None:
            return _setitem_at(x, filler, *starts, sizes=_sizes(basic.ranges), shape=shape)
        return _setitem(x, filler, ranges=tuple(basic.ranges), shape=shape)
    return _set_advanced(x, basic, filler)


def _set_advanced(x: Array, basic: Basic, filler: Array) -> Array:
    ranges, shape = tuple(basic.ranges), tuple(basic.shape)
    part = _getitem(x, ranges=ranges, shape=shape)
    indices, axes, at, batch = _advanced(basic)
    rest = [size for d, size in enumerate(part.shape) if d not in axes]
    updates = (*rest[:at], *batch, *rest[at:])
    filler = _fitted(filler, updates)
    part = _scatter(part, filler, *indices, axes=axes, at=at, shape=updates)
    whole = all(one == (0, size, 1) for one, size in zip(ranges, x.shape, strict=True))
    if whole:
        return reshape(part, x.shape)
    return _setitem(x, part, ranges=ranges, shape=shape)


def _fitted(value: Array, shape: tuple[int, ...]) -> Array:
    """A value that broadcasts to `shape`, without dimensions of size 1 in front of it."""
    extra = max(value.ndim - len(shape), 0)
    inner = value.shape[extra:]
    fits = all(size == 1 for size in value.shape[:extra])
    if not fits or broadcast_shapes("x[key] = value", inner, shape) != shape:
        raise problem(
            HloValueError,
            "HLO0626",
            f"x[key] = value: {value.describe()} does not fill {list(shape)}",
        )
    return reshape(value, inner)


@kernel
def _put(x: Array, index: Array, value: Array) -> Array:
    zero = ops.constant(0, dt.int64)
    starts = [index, *[zero] * (x.ndim - 1)]
    return ops.dynamic_update_slice(x, ops.reshape(value, (1, *x.shape[1:])), starts)


# ------------------------------------------------------------------ functions


def _index_array(indices: Any, what: str) -> Array:
    array = as_array(indices, what)
    if dt.kind_of(array.dtype) not in "iu":
        raise problem(HloTypeError, "HLO0625", f"{what}: indices are integers, not {array.dtype}")
    return array


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array:
    """The slices along an axis at indices."""
    array, places = as_array(x, "take"), _index_array(indices, "take")
    if axis is None:
        if array.ndim != 1:
            raise problem(
                HloValueError, "HLO0626", "take: needs an axis for more than one dimension"
            )
        axis = 0
    dim = axis_of(axis, array.ndim, "take")
    places = _within(places, array.shape[dim], dim, "take")
    return _gather(array, places, axes=(dim,), at=dim)


@kernel
def _take_along_axis(x: Array, indices: Array, *, axis: int, shape: tuple[int, ...]) -> Array:
    wanted = (*shape[:axis], indices.shape[axis], *shape[axis + 1 :])
    source = ops.broadcast_to(x, (*shape[:axis], x.shape[axis], *shape[axis + 1 :]))
    vectors = [
        ops.broadcast_to(indices, wanted) if dim == axis else ops.iota(dt.int64, wanted, dim)
        for dim in range(len(shape))
    ]
    return ops.gather(source, _vectors(vectors), tuple(range(len(shape))), 0)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """The elements along an axis at indices, other dimensions matched."""
    array, places = as_array(x, "take_along_axis"), _index_array(indices, "take_along_axis")
    if array.ndim != places.ndim:
        raise problem(
            HloValueError,
            "HLO0626",
            f"take_along_axis: {array.describe()} and {places.describe()} differ in rank",
        )
    dim = axis_of(axis, array.ndim, "take_along_axis")
    others = [(*a.shape[:dim], 1, *a.shape[dim + 1 :]) for a in (array, places)]
    shape = broadcast_shapes("take_along_axis", *others)
    places = _within(places, array.shape[dim], dim, "take_along_axis")
    return _take_along_axis(array, places, axis=dim, shape=shape)


@kernel
def _repeat(x: Array, *, count: int, axis: int) -> Array:
    shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    wide = ops.broadcast(x, shape, tuple(d for d in range(len(shape)) if d != axis + 1))
    size = x.shape[axis] * count
    return ops.reshape(wide, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element repeated along an axis, `repeats` times or `repeats[i]` times.

    Raises HLO0621 for repeats that are traced: the shape of the result hangs on them.
    """
    array = as_array(x, "repeat")
    if axis is None:
        array, axis = reshape(array, (-1,)), 0
    place = axis_of(axis, array.ndim, "repeat")
    if isinstance(repeats, Array) and repeats.data is None:
        raise data_dependent("repeat", "give the repeats as Python integers or as a concrete array")
    counts: Any = np.asarray(repeats)
    if counts.ndim == 0 or counts.shape == (1,):
        return _repeat(array, count=int(counts.reshape(())), axis=place)
    if counts.shape != (array.shape[place],):
        raise problem(
            HloValueError,
            "HLO0626",
            f"repeat: {counts.size} repeats for {array.shape[place]} elements along axis {place}",
        )
    indices = np.repeat(np.arange(array.shape[place]), counts)
    return take(array, Array.concrete(indices), axis=place)
