"""Functions that move elements about, and `astype`.

Source: Python array API standard 2024.12, "Manipulation functions".
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mlirhlo.diagnostics import HloError
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array, axes_of, axis_of, check_device
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.operands import as_array, broadcast_shapes, common_dtype, shape_of


@kernel
def _astype(x: Array, *, dtype: DType) -> Array:
    return ops.convert(x, dtype)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """The elements in another type. Raises HLO0625 for complex numbers in a real type."""
    check_device(device)
    array, wanted = as_array(x, "astype"), dt.as_dtype(dtype)
    if array.dtype == wanted:
        same = array.snapshot() if copy else array
        if same.weak is not None and same.trace is not None:
            return Array.traced(same.trace, same.value, wanted, same.shape)
        return same
    if dt.kind_of(array.dtype) == "c" and dt.kind_of(wanted) in "iuf":
        raise problem(
            HloTypeError,
            "HLO0625",
            f"astype: {array.dtype} to {wanted} would lose the imaginary part",
            help="take real(x), imag(x) or abs(x)",
        )
    return _astype(array, dtype=wanted)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type that arrays, types and Python scalars promote to. Raises HLO0625."""
    if not arrays_and_dtypes:
        raise problem(HloValueError, "HLO0625", "result_type: takes at least one array or type")
    given = [
        one
        if isinstance(one, (Array, np.ndarray, np.generic, bool, int, float, complex))
        else _Typed(dt.as_dtype(one))
        for one in arrays_and_dtypes
    ]
    return common_dtype("result_type", "any", tuple(given))


class _Typed:
    """A dtype among operands."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


@kernel
def _broadcast_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    return ops.broadcast_to(x, shape)


def broadcast_to(x: Any, /, shape: Any) -> Array:
    """The array repeated along dimensions of size 1 and new ones. Raises HLO0626."""
    array, wanted = as_array(x, "broadcast_to"), shape_of(shape, "broadcast_to")
    if broadcast_shapes("broadcast_to", array.shape, wanted) != wanted:
        raise problem(
            HloValueError,
            "HLO0626",
            f"broadcast_to: {array.describe()} does not broadcast to {list(wanted)}",
        )
    return _broadcast_to(array, shape=wanted)


def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Arrays brought to one shape."""
    given = [as_array(array, "broadcast_arrays") for array in arrays]
    shape = broadcast_shapes("broadcast_arrays", *(array.shape for array in given))
    return tuple(_broadcast_to(array, shape=shape) for array in given)


def shapes_broadcast(*shapes: Any) -> tuple[int, ...]:
    """The shape that shapes broadcast to. Raises HLO0626."""
    return broadcast_shapes("broadcast_shapes", *(shape_of(s, "broadcast_shapes") for s in shapes))


@kernel
def _concat(*arrays: Array, axis: int, dtype: DType) -> Array:
    return ops.concatenate([ops.convert(array, dtype) for array in arrays], axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Arrays one after the other along an axis; flattened first for `axis=None`."""
    given = [as_array(array, "concat") for array in arrays]
    if not given:
        raise problem(HloValueError, "HLO0626", "concat: takes at least one array")
    if axis is None:
        given, axis = [reshape(array, (-1,)) for array in given], 0
    place = axis_of(axis, given[0].ndim, "concat")
    for array in given[1:]:
        ok = array.ndim == given[0].ndim and all(
            a == b or d == place
            for d, (a, b) in enumerate(zip(array.shape, given[0].shape, strict=True))
        )
        if not ok:
            raise problem(
                HloValueError,
                "HLO0626",
                f"concat: {given[0].describe()} and {array.describe()} differ beside axis {place}",
            )
    dtype = common_dtype("concat", "any", tuple(given))
    return _concat(*given, axis=place, dtype=dtype)


@kernel
def _reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    return ops.reshape(x, shape)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Array:
    """The same elements in row-major order under another shape; one size may be -1."""
    array = as_array(x, "reshape")
    given: Sequence[Any] = shape if isinstance(shape, (tuple, list)) else (shape,)
    sizes = [int(size.__index__()) for size in given]
    if sizes.count(-1) == 1:
        rest = math.prod(size for size in sizes if size != -1)
        if rest and array.size % rest == 0:
            sizes[sizes.index(-1)] = array.size // rest
    if any(size < 0 for size in sizes) or math.prod(sizes) != array.size:
        raise problem(
            HloValueError,
            "HLO0626",
            f"reshape: {array.size} elements of {array.describe()} do not fill {list(sizes)}",
        )
    wanted = tuple(sizes)
    return array.snapshot() if array.shape == wanted else _reshape(array, shape=wanted)


@kernel
def _permute_dims(x: Array, *, axes: tuple[int, ...]) -> Array:
    return ops.transpose(x, axes)


def permute_dims(x: Any, /, axes: Any) -> Array:
    """Result dimension i is dimension `axes[i]`."""
    array = as_array(x, "permute_dims")
    order = tuple(axis_of(axis, array.ndim, "permute_dims") for axis in axes)
    if sorted(order) != list(range(array.ndim)):
        raise problem(
            HloValueError,
            "HLO0626",
            f"permute_dims: {axes} is no order of {array.ndim} dimensions",
        )
    return _permute_dims(array, axes=order)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Array:
    """Dimensions moved to other places; the rest keep their order."""
    array = as_array(x, "moveaxis")
    sources, places = (
        [
            axis_of(axis, array.ndim, "moveaxis")
            for axis in (given if isinstance(given, (tuple, list)) else (given,))
        ]
        for given in (source, destination)
    )
    if (
        len(sources) != len(places)
        or len(set(sources)) != len(sources)
        or (len(set(places)) != len(places))
    ):
        raise problem(HloValueError, "HLO0626", f"moveaxis: {source} cannot move to {destination}")
    order = [d for d in range(array.ndim) if d not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return _permute_dims(array, axes=tuple(order))


def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """New dimensions of size 1, at places in the result."""
    array = as_array(x, "expand_dims")
    count = len(cast("Sequence[Any]", axis)) if isinstance(axis, (tuple, list)) else 1
    places = axes_of(axis, array.ndim + count, "expand_dims")
    sizes = list(array.shape)
    for place in places:
        sizes.insert(place, 1)
    return _reshape(array, shape=tuple(sizes))


def squeeze(x: Any, /, axis: Any) -> Array:
    """Dimensions of size 1 taken away. Raises HLO0626 for others."""
    array = as_array(x, "squeeze")
    places = axes_of(axis, array.ndim, "squeeze") if axis != () else ()
    for place in places:
        if array.shape[place] != 1:
            raise problem(
                HloValueError,
                "HLO0626",
                f"squeeze: axis {place} of {array.describe()} has not size 1",
            )
    sizes = tuple(size for d, size in enumerate(array.shape) if d not in places)
    return _reshape(array, shape=sizes)


@kernel
def _flip(x: Array, *, axes: tuple[int, ...]) -> Array:
    return ops.reverse(x, axes)


def flip(x: Any, /, *, axis: Any = None) -> Array:
    """Dimensions turned round; all of them for `axis=None`."""
    array = as_array(x, "flip")
    return _flip(array, axes=axes_of(axis, array.ndim, "flip"))


@kernel
def _roll(x: Array, *, shifts: tuple[tuple[int, int], ...]) -> Array:
    for axis, shift in shifts:
        size = x.shape[axis]
        cut = (-shift) % size if size else 0
        if cut:
            parts = [ops.slice_axis(x, axis, cut, size), ops.slice_axis(x, axis, 0, cut)]
            x = ops.concatenate(parts, axis)
    return x


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Array:
    """Elements moved on by `shift` places along axes, the last ones to the front."""
    array = as_array(x, "roll")
    if axis is None:
        if isinstance(shift, (tuple, list)):
            raise problem(HloValueError, "HLO0626", "roll: several shifts need several axes")
        flat = roll(reshape(array, (-1,)), shift, axis=0)
        return reshape(flat, array.shape)
    axes = list(cast("Sequence[Any]", axis)) if isinstance(axis, (tuple, list)) else [axis]
    shifts = list(cast("Sequence[Any]", shift)) if isinstance(shift, (tuple, list)) else [shift]
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        raise problem(HloValueError, "HLO0626", f"roll: {len(shifts)} shifts for {len(axes)} axes")
    pairs = tuple(
        (axis_of(one, array.ndim, "roll"), int(by)) for one, by in zip(axes, shifts, strict=True)
    )
    return _roll(array, shifts=pairs)


def data_dependent(what: str, help: str) -> HloError:
    """HLO0621: a shape that hangs on values that are traced."""
    return problem(
        HloTypeError,
        "HLO0621",
        f"{what}: the shape of the result depends on values, which are not known before the program"
        " runs",
        help=help,
    )


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Arrays of one shape along a new axis."""
    given = [as_array(array, "stack") for array in arrays]
    if not given:
        raise problem(HloValueError, "HLO0626", "stack: takes at least one array")
    for array in given[1:]:
        if array.shape != given[0].shape:
            raise problem(
                HloValueError,
                "HLO0626",
                f"stack: {given[0].describe()} and {array.describe()} have different shapes",
            )
    place = axis_of(axis, given[0].ndim + 1, "stack")
    return concat([expand_dims(array, axis=place) for array in given], axis=place)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    array = as_array(x, "unstack")
    place = axis_of(axis, array.ndim, "unstack")
    before = (slice(None),) * place
    return tuple(array[(*before, index)] for index in range(array.shape[place]))


def tile(x: Any, repetitions: Any, /) -> Array:
    """The array repeated along each dimension."""
    array = as_array(x, "tile")
    counts = list(shape_of(repetitions, "tile"))
    rank = max(array.ndim, len(counts))
    sizes = [1] * (rank - array.ndim) + list(array.shape)
    counts = [1] * (rank - len(counts)) + counts
    pairs = tuple(n for count, size in zip(counts, sizes, strict=True) for n in (count, size))
    lone = tuple(n for size in sizes for n in (1, size))
    wide = _broadcast_to(_reshape(array, shape=lone), shape=pairs)
    whole = tuple(count * size for count, size in zip(counts, sizes, strict=True))
    return _reshape(wide, shape=whole)
