"""Vectors in other shapes: reshape, transpose, slices, concatenation, iota, rotation."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_index
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, Signedness

from mlirhlo.mosaic.language.elements import BOOL, F32, I32, DTypeLike, as_dtype, kind_of, promoted
from mlirhlo.mosaic.language.faults import bad_index, bad_shape, bad_spec, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import (
    broadcast_to,
    cast,
    cast_bool,
    from_bool,
    pair,
    where,
)
from mlirhlo.mosaic.language.trace import emit_one, int_attr, ints, vector_type
from mlirhlo.mosaic.language.value import ON_NUMPY, ArrayLike, Value, as_value, constant


def normal_axis(axis: Any, rank: int) -> int:
    """A dimension's number from the front. Raises `HloError` HLO0721."""
    number = as_index(axis)
    if not -rank <= number < rank:
        raise bad_shape(f"there is no dimension {number} of {rank}")
    return number % rank


def normal_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Dimensions from the front, in order; all for None."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, Sequence) else [axis]
    return tuple(sorted({normal_axis(one, rank) for one in given}))


def reshape(x: ArrayLike, shape: Any, *more: Any) -> Value:
    """The elements, row-major, in another shape; one size may be -1."""
    value = as_value(x)
    sizes = [as_index(n) for n in (shape if isinstance(shape, Sequence) else [shape, *more])]
    if sizes.count(-1) == 1:
        known = -prod(sizes)
        sizes[sizes.index(-1)] = value.size // known if known else 0
    target = tuple(sizes)
    if prod(target) != value.size or any(size < 0 for size in target):
        raise bad_shape(
            f"{list(value.shape)} has {value.size} elements, {list(target)} has {prod(target)}"
        )
    if target == value.shape:
        return value
    if not value.shape:
        return broadcast_to(value, target)
    if not target:
        flat = reshape(value, (1, 1))
        return element(flat, (0, 0))
    if value.dtype == BOOL:
        return cast_bool(reshape(from_bool(value, I32), target))
    type_ = vector_type(target, value.dtype)
    return Value(emit_one("vector.shape_cast", [value.ssa], type_), target, value.dtype)


def element(value: Value, position: Sequence[int]) -> Value:
    """One element, as a scalar."""
    if value.dtype == BOOL:
        return cast_bool(element(from_bool(value, I32), position))
    ssa = emit_one(
        "vector.extract",
        [value.ssa],
        vector_type((), value.dtype),
        {"static_position": ints(list(position))},
    )
    return Value(ssa, (), value.dtype)


def expand_dims(x: ArrayLike, axis: Any) -> Value:
    """With new dimensions of size one, at their numbers in the result."""
    value = as_value(x)
    given = axis if isinstance(axis, Sequence) else [axis]
    rank = value.ndim + len(given)
    new = {normal_axis(one, rank) for one in given}
    rest = iter(value.shape)
    return reshape(value, [1 if dim in new else next(rest) for dim in range(rank)])


def squeeze(x: ArrayLike, axis: Any = None) -> Value:
    """Without dimensions of size one."""
    value = as_value(x)
    gone = (
        tuple(dim for dim, size in enumerate(value.shape) if size == 1)
        if axis is None
        else normal_axes(axis, value.ndim)
    )
    if any(value.shape[dim] != 1 for dim in gone):
        raise bad_shape(f"dimensions {list(gone)} of {list(value.shape)} are not all of size 1")
    return reshape(value, [n for dim, n in enumerate(value.shape) if dim not in gone])


def transpose(x: ArrayLike, axes: Any = None) -> Value:
    """The dimensions in another order, reversed for None."""
    value = as_value(x)
    order = (
        [*range(value.ndim)][::-1]
        if axes is None
        else [normal_axis(axis, value.ndim) for axis in axes]
    )
    if sorted(order) != [*range(value.ndim)]:
        raise bad_shape(f"{order} is no order of {value.ndim} dimensions")
    if order == [*range(value.ndim)]:
        return value
    if value.dtype == BOOL:
        return cast_bool(transpose(from_bool(value, I32), order))
    shape = tuple(value.shape[dim] for dim in order)
    type_ = vector_type(shape, value.dtype)
    ssa = emit_one("tpu.transpose", [value.ssa], type_, {"permutation": ints(order)})
    return Value(ssa, shape, value.dtype)


def swapaxes(x: ArrayLike, axis1: int, axis2: int) -> Value:
    """With two dimensions exchanged."""
    value = as_value(x)
    order = [*range(value.ndim)]
    a, b = normal_axis(axis1, value.ndim), normal_axis(axis2, value.ndim)
    order[a], order[b] = b, a
    return transpose(value, order)


def sliced(value: Value, index: Any) -> Value:
    """`value[index]`: numbers, slices without steps, `...` and None, all known to Python."""
    items: list[Any] = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(item, Value) for item in items):
        raise bad_index(
            "a value is indexed by one that is known when the kernel runs",
            "index a reference, ref[pl.ds(start, size)], or use take_along_axis within a register",
        )
    named = sum(item is not None and item is not Ellipsis for item in items)
    at = next((at for at, item in enumerate(items) if item is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * (value.ndim - named)
    if named > value.ndim:
        raise bad_index(f"{named} indices of a vector of {value.ndim} dimensions")
    offsets, sizes, shape, dim = [], [], [], 0
    for item in items:
        if item is None:
            shape.append(1)
            continue
        start, size = _static_part(item, value.shape[dim])
        offsets.append(start)
        sizes.append(size)
        if isinstance(item, slice):
            shape.append(size)
        dim += 1
    if not shape:
        return element(value, offsets)
    return reshape(strided_slice(value, offsets, sizes), shape)


def _static_part(item: Any, size: int) -> tuple[int, int]:
    if isinstance(item, slice):
        start, stop, step = item.indices(size)
        if step != 1:
            raise bad_index(
                f"a vector cannot be sliced with step {step}",
                "load with pl.ds(start, size, stride) from the reference",
            )
        return start, max(0, stop - start)
    if isinstance(item, Value):
        raise bad_index(
            "a vector cannot be indexed by a value that is known when the kernel runs",
            "index the reference it was loaded from, or use take_along_axis",
        )
    number = as_index(item)
    if not -size <= number < size:
        raise bad_index(f"index {number} of a dimension of size {size}")
    return number % size, 1


def strided_slice(value: Value, offsets: Sequence[int], sizes: Sequence[int]) -> Value:
    """A box of a vector."""
    if tuple(sizes) == value.shape:
        return value
    if prod(sizes) == 0:
        raise bad_shape(f"a slice of shape {list(sizes)} has no elements")
    if value.dtype == BOOL:
        return cast_bool(strided_slice(from_bool(value, I32), offsets, sizes))
    wide = IntegerType(64)
    lists = {
        "offsets": offsets,
        "sizes": sizes,
        "strides": [1] * len(offsets),
    }
    attributes = {
        name: ArrayAttr([IntegerAttr(number, wide) for number in numbers])
        for name, numbers in lists.items()
    }
    type_ = vector_type(sizes, value.dtype)
    ssa = emit_one("vector.extract_strided_slice", [value.ssa], type_, attributes)
    return Value(ssa, sizes, value.dtype)


def concatenate(
    arrays: Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike = None
) -> Value:
    """One vector after the other along a dimension; all elements in a line for None."""
    values = [as_value(array) for array in arrays]
    if not values:
        raise bad_shape("there is nothing to concatenate")
    if axis is None:
        axis, values = 0, [reshape(value, (-1,)) for value in values]
    kind = values[0].dtype if dtype is None else as_dtype(dtype)
    for value in values[1:] if dtype is None else ():
        kind = promoted(kind, value.dtype)
    dim = normal_axis(axis, values[0].ndim)
    rests = {value.shape[:dim] + value.shape[dim + 1 :] for value in values}
    if len(rests) != 1 or len({value.ndim for value in values}) != 1:
        shapes = ", ".join(str(list(value.shape)) for value in values)
        raise bad_shape(f"shapes {shapes} differ outside of dimension {dim}")
    values = [cast(value, kind) for value in values]
    if len(values) == 1:
        return values[0]
    shape = list(values[0].shape)
    shape[dim] = sum(value.shape[dim] for value in values)
    operands = [value.ssa for value in values]
    type_ = vector_type(shape, kind)
    ssa = emit_one("tpu.concatenate", operands, type_, {"dimension": int_attr(dim)})
    return Value(ssa, shape, kind)


def stack(arrays: Sequence[ArrayLike], axis: int = 0, dtype: DTypeLike = None) -> Value:
    """Vectors of one shape along a new dimension."""
    return concatenate([expand_dims(array, axis) for array in arrays], axis, dtype)


def split(x: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    """Into equal parts, or at positions."""
    parts = indices_or_sections
    value = as_value(x)
    dim = normal_axis(axis, value.ndim)
    size = value.shape[dim]
    if isinstance(parts, int):
        if size % parts:
            raise bad_shape(f"{size} elements are not {parts} equal parts")
        ends = [size // parts * (i + 1) for i in range(parts)]
    else:
        ends = [*parts, size]
    found, start = [], 0
    for end in ends:
        index = [slice(None)] * value.ndim
        index[dim] = slice(start, end)
        found.append(sliced(value, tuple(index)))
        start = end
    return found


def tile(x: ArrayLike, reps: Any) -> Value:
    """Repeated as a whole along dimensions."""
    value = as_value(x)
    times = [reps] if isinstance(reps, int) else list(reps)
    times = [1] * (value.ndim - len(times)) + times
    for dim, count in enumerate(times):
        value = concatenate([value] * count, dim) if count > 1 else value
    return value


def iota(dtype: DTypeLike, shape: Sequence[int], dimension: Any) -> Value:
    """Numbers from 0 along a dimension; 32-bit ones are made first where others are asked for."""
    target = tuple(shape)
    if len(target) < 2:
        raise bad_shape(
            f"iota of shape {list(target)}: registers have two dimensions",
            "make it with two dimensions, and reshape",
        )
    dims = normal_axes(dimension, len(target))
    type_ = vector_type(target, I32)
    ssa = emit_one("tpu.iota", [], type_, {"dimensions": ints(dims, 32)})
    return cast(Value(ssa, target, I32), as_dtype(dtype))


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Value:
    """As `iota`; JAX's name."""
    return iota(dtype, shape, dimension)


def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike = None) -> Value:
    """A vector of one number."""
    target = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if isinstance(fill_value, Value):
        made = fill_value if dtype is None else cast(fill_value, as_dtype(dtype))
        return broadcast_to(made, target)
    kind = as_value(fill_value).dtype if dtype is None else as_dtype(dtype)
    return constant(fill_value, kind, target)


def zeros(shape: Any, dtype: DTypeLike = F32) -> Value:
    """A vector of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: DTypeLike = F32) -> Value:
    """A vector of ones."""
    return full(shape, 1, dtype)


def full_like(x: Any, fill_value: ArrayLike, dtype: DTypeLike = None, shape: Any = None) -> Value:
    """A vector of one number, in the shape and type of another or of a reference, where no others are given."""
    sizes = x.shape if shape is None else shape
    return full(sizes, fill_value, x.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: DTypeLike = None, shape: Any = None) -> Value:
    """A vector of zeros, in the shape and type of another or of a reference."""
    return full_like(x, 0, dtype, shape)


def ones_like(x: Any, dtype: DTypeLike = None, shape: Any = None) -> Value:
    """A vector of ones, in the shape and type of another or of a reference."""
    return full_like(x, 1, dtype, shape)


def roll(
    x: ArrayLike,
    shift: ArrayLike,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Value:
    """Element i moves to i + shift, around the end; with `stride`, row j of `stride_axis` by
    `stride * j` more.
    """
    value = as_value(x)
    dim = normal_axis(axis, value.ndim)
    amount = as_value(shift % value.shape[dim] if isinstance(shift, int) else shift, I32)
    if amount.shape or kind_of(amount.dtype) not in "iu":
        raise bad_type("a rotation is by one integer")
    signed = IntegerType(32, Signedness.SIGNED)
    attributes: dict[str, Any] = {"dimension": IntegerAttr(dim, signed)}
    if (stride is None) != (stride_axis is None):
        raise bad_shape("stride and stride_axis belong together")
    if stride is not None:
        attributes["stride"] = IntegerAttr(stride, signed)
        attributes["stride_dimension"] = IntegerAttr(normal_axis(stride_axis, value.ndim), signed)
    ssa = emit_one("tpu.dynamic_rotate", [value.ssa, amount.ssa], value.type, attributes)
    return Value(ssa, value.shape, value.dtype)


def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int, mode: str | None = None) -> Value:
    """Element `indices[i, j]` of each row (`axis` 1) or column (0).

    There are no indices out of bounds, as in `promise_in_bounds`: a TPU wraps them around. Raises `HloError`
    HLO0726 for other modes.
    """
    if mode not in (None, "promise_in_bounds", "wrap"):
        raise bad_spec(
            f"take_along_axis with mode={mode!r}", "clip the indices, or mask the result"
        )
    value, where_ = as_value(x), as_value(indices)
    dim = normal_axis(axis, value.ndim)
    if where_.shape != value.shape:
        raise bad_shape(f"indices of shape {list(where_.shape)} for {list(value.shape)}")
    ssa = emit_one(
        "tpu.dynamic_gather", [value.ssa, where_.ssa], value.type, {"dimensions": ints([dim], 32)}
    )
    return Value(ssa, value.shape, value.dtype)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Value:
    """The first of two cases where `which` is false, the second where it holds."""
    if len(cases) != 2:
        raise bad_shape("select_n takes two cases")
    off, on = pair(cases[0], cases[1])
    return where(which, on, off)


def _broadcast_to(x: ArrayLike, shape: Any) -> Value:
    return broadcast_to(x, shape if isinstance(shape, Sequence) else (shape,))


ON_NUMPY.update(
    {
        np.reshape: reshape,
        np.transpose: transpose,
        np.swapaxes: swapaxes,
        np.expand_dims: expand_dims,
        np.squeeze: squeeze,
        np.concatenate: concatenate,
        np.stack: stack,
        np.split: split,
        np.tile: tile,
        np.broadcast_to: _broadcast_to,
        np.full_like: full_like,
        np.zeros_like: zeros_like,
        np.ones_like: ones_like,
        np.roll: roll,
        np.take_along_axis: take_along_axis,
    }
)
