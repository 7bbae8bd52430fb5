"""Shapes of slices: static, dynamic, and updates of them."""

from __future__ import annotations

from dataclasses import replace

from mlirhlo.analysis.shape_inference.base import (
    Given,
    dimension,
    infers,
    plain,
    same_type,
)
from mlirhlo.analysis.shape_inference.data_movement import with_type
from mlirhlo.dialects.hlo.attributes.dimensions import Slice
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, array


@infers(
    "slice",
    c1="the operand is an array",
    c2="there is one range for each dimension",
    c3="starts are not negative",
    c4="limits are within the operand",
    c5="limits are not below starts",
    c6="strides are positive",
)
def slice_(given: Given) -> Shape:
    """`ceil((limit - start) / stride)` in every dimension."""
    x = given.array(0, "slice")
    ranges = (given.value("slice", Slice) or Slice(())).dimensions
    if len(ranges) != x.rank:  # slice_c2
        raise given.error(
            2, f"{len(ranges)} ranges are given for the {x.rank} of {plain(x)}", attribute="slice"
        )
    sizes: list[int] = []
    flags: list[bool] = []
    for dim, r in enumerate(ranges):
        size, dynamic = dimension(x, dim)
        if r.start < 0:  # slice_c3
            raise given.error(
                3,
                f"Negative start index to slice: {r.start} in dimension {dim}.",
                attribute="slice",
            )
        if r.limit > size and size != UNBOUNDED:  # slice_c4
            raise given.error(
                4,
                f"Limit index ({r.limit}) must be less than or equal to dimension size ({size}) in"
                f" dimension {dim} of {plain(x)}.",
                attribute="slice",
            )
        if r.limit < r.start:  # slice_c5
            raise given.error(
                5,
                f"Limit index ({r.limit}) must be greater or equal to start index ({r.start}) in"
                f" dimension {dim}.",
                attribute="slice",
            )
        if r.stride <= 0:  # slice_c6
            raise given.error(
                6, f"Stride ({r.stride}) must be positive in dimension {dim}.", attribute="slice"
            )
        sizes.append(-(-(r.limit - r.start) // r.stride))
        flags.append(dynamic and (r.start, r.limit, r.stride) == (0, size, 1))
    return array(x.element_type, sizes, flags)


def _check_indices(given: Given, x: ArrayShape, first: int, number: int) -> None:
    """Start indices from operand `first` on: one integer scalar a dimension, of one type, or one
    vector of as many (constraint `number`)."""
    indices = given.operands[first:]
    if len(indices) == 1:
        shape = indices[0]
        if (
            isinstance(shape, ArrayShape)
            and shape.rank == 1
            and shape.element_type.is_integer
            and shape.dimensions == (x.rank,)
        ):
            return
    if len(indices) != x.rank:
        raise given.error(
            number,
            f"{len(indices)} start indices are given for the {x.rank} dimensions of {plain(x)}",
            operand=first if indices else 0,
        )
    for index, shape in enumerate(indices, first):
        if not (
            isinstance(shape, ArrayShape) and shape.is_scalar and shape.element_type.is_integer
        ):
            raise given.error(
                number, f"a start index is an integer scalar, not {plain(shape)}", operand=index
            )
        if shape.element_type is not getattr(indices[0], "element_type", None):
            raise given.error(
                number,
                f"all start indices have one type; found {plain(indices[0])} and {plain(shape)}",
                operand=index,
            )


_INDICES = "start indices are integer scalars of one type, one a dimension, or a vector of them"


@infers(
    "dynamic-slice",
    c1="the operand is an array",
    c2=_INDICES,
    c3="there is one slice size for each dimension",
    c4="slice sizes are between 0 and the operand's sizes",
)
def dynamic_slice(given: Given) -> Shape:
    """The slice sizes."""
    x = given.array(0, "dynamic slice")
    _check_indices(given, x, 1, 2)  # dynamic-slice_c2
    sizes = given.ints("dynamic_slice_sizes")
    if len(sizes) != x.rank:  # dynamic-slice_c3
        raise given.error(
            3,
            f"{len(sizes)} slice sizes are given for the {x.rank} dimensions of {plain(x)}",
            attribute="dynamic_slice_sizes",
        )
    for dim, (size, whole) in enumerate(zip(sizes, x.dimensions, strict=True)):
        if size < 0 or (whole != UNBOUNDED and size > whole):  # dynamic-slice_c4
            raise given.error(
                4,
                f"slice size {size} is not between 0 and {whole}, dimension {dim} of {plain(x)}",
                attribute="dynamic_slice_sizes",
            )
    flags = [x.is_dynamic_dimension(d) and sizes[d] == x.dimensions[d] for d in range(x.rank)]
    return array(x.element_type, sizes, flags)


@infers(
    "dynamic-update-slice",
    c1="operand and update are arrays",
    c2=_INDICES,
    c3="operand and update have one rank",
    c4="the element types are equal, or floating point of any precision",
    c5="the update is not greater than the operand",
)
def dynamic_update_slice(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of dynamic update slice")
    update = given.array(1, "update of dynamic update slice")
    _check_indices(given, x, 2, 2)  # dynamic-update-slice_c2
    if x.rank != update.rank:  # dynamic-update-slice_c3
        raise given.error(
            3, f"the update {plain(update)} must have the rank of {plain(x)}", operand=1
        )
    if not same_type(x.element_type, update.element_type):  # dynamic-update-slice_c4
        raise given.error(
            4, f"the element types differ: {plain(x)} and update {plain(update)}", operand=1
        )
    for dim, (size, whole) in enumerate(zip(update.dimensions, x.dimensions, strict=True)):
        if UNBOUNDED not in (size, whole) and size > whole:  # dynamic-update-slice_c5
            raise given.error(
                5,
                f"the update {plain(update)} is greater than {plain(x)} in dimension {dim}",
                operand=1,
            )
    shape = with_type(x, update.element_type)
    if not update.dynamic:
        return shape
    flags = shape.dynamic or (False,) * shape.rank
    return replace(shape, dynamic=tuple(map(max, flags, update.dynamic)))
