"""What `jax.lax` has under other parameters, or with another meaning, than `jax.numpy` of the same name."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import accumulate
from math import prod
from typing import Any

from mlirhlo.mosaic.language import control
from mlirhlo.mosaic.language.elements import I32, DTypeLike, as_dtype
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions import reductions, shapes
from mlirhlo.mosaic.language.functions.arithmetic import (
    broadcast_to,
    cast,
    maximum,
    minimum,
    round_,
    unary,
    where,
)
from mlirhlo.mosaic.language.functions.products import dot as _dot
from mlirhlo.mosaic.language.functions.products import dot_general
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


class RoundingMethod(Enum):
    """Where halves go."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(  # noqa: A001  (jax's name)
    x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO
) -> Value:
    """The nearest whole number; halves away from zero, unless they are to go to even ones."""
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return round_(x)
    return unary("round_away", x)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Value:
    """x, at least `min` and at most `max`."""
    return minimum(maximum(x, min), max)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Value:
    """Elements of one vector where `pred` holds, of the other elsewhere."""
    return where(pred, on_true, on_false)


def reshape(
    operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> Value:
    """The elements, row-major, in another shape; of its dimensions in another order, if one is given."""
    value = as_value(operand)
    ordered = value if dimensions is None else shapes.transpose(value, dimensions)
    return shapes.reshape(ordered, new_sizes)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Value:
    """The dimensions in another order."""
    return shapes.transpose(operand, permutation)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Value:
    """Without those dimensions, which are of size one."""
    return shapes.squeeze(array, dimensions)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Value:
    """With new dimensions of size one, at their numbers in the result."""
    return shapes.expand_dims(array, dimensions)


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Value:
    """One vector after the other along a dimension."""
    return shapes.concatenate(operands, dimension)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Value]:
    """Into parts of those sizes along a dimension. Raises `HloError` HLO0721 where they do not add up."""
    value = as_value(operand)
    total = value.shape[shapes.normal_axis(axis, value.ndim)]
    if sum(sizes) != total:
        raise bad_shape(
            f"parts of {list(sizes)} elements of a dimension of {total}",
            "sizes add up to the dimension; jnp.split takes positions",
        )
    return shapes.split(value, [*accumulate(sizes)][:-1], axis)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Value:
    """Repeated as a whole along dimensions."""
    return shapes.tile(operand, reps)


def full_like(
    x: Any, fill_value: ArrayLike, dtype: DTypeLike = None, shape: Sequence[int] | None = None
) -> Value:
    """A vector of one number, in the shape and type of another, where no others are given."""
    return shapes.full_like(x, fill_value, dtype, shape)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike = I32) -> Value:
    """The first place of the greatest element along a dimension."""
    return cast(reductions.argmax(operand, axis), as_dtype(index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike = I32) -> Value:
    """The first place of the least element along a dimension."""
    return cast(reductions.argmin(operand, axis), as_dtype(index_dtype))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Value:
    """The sum up to each element along a dimension, or from each one to the end."""
    return reductions.cumsum(operand, axis, reverse=reverse)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """The product of matrices or vectors, or that of `dot_general` where dimensions are given."""
    if dimension_numbers is None:
        return _dot(lhs, rhs, precision=precision, preferred_element_type=preferred_element_type)
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Value:
    """Products of stacks of matrices."""
    return _dot(lhs, rhs, precision=precision)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Value:
    """With the dimensions from one up to another as one."""
    value = as_value(operand)
    begin, end, _ = slice(start_dimension, stop_dimension).indices(value.ndim)
    lead, tail = value.shape[:begin], value.shape[end:]
    return shapes.reshape(value, (*lead, prod(value.shape[begin:end]), *tail))


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Value:
    """One part along a dimension."""
    value = as_value(operand)
    dim = shapes.normal_axis(axis, value.ndim)
    found = value[(*(slice(None),) * dim, index)]
    return shapes.expand_dims(found, dim) if keepdims else found


def broadcast_to_rank(x: ArrayLike, rank: int) -> Value:
    """With dimensions of size one in front."""
    value = as_value(x)
    return shapes.reshape(value, (1,) * (rank - value.ndim) + value.shape)


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = None,
) -> Any:
    """What one of two functions gives for the operands."""
    given = operands if operand is None else (operand,)
    return control.cond(pred, true_fun, false_fun, *given)


def broadcast_like(x: ArrayLike, like: Any) -> Value:
    """In the shape of another."""
    return broadcast_to(as_value(x), like.shape)
