"""Sums of products: dot, ragged-dot, scaled-dot.

f16, bf16 and smaller floats accumulate in f32 and round once; integers wrap; pred is or of ands.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.element_types import BF16, F32, F64, Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.numerics import unsupported, work_dtype, wrap
from mlirhlo.interp.ops.elementwise import element_type
from mlirhlo.interp.ops.elementwise_convert import convert, reduce_precision
from mlirhlo.interp.registry import Array, Frame, Program, Run, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.linear_algebra import DotOp, RaggedDotOp, ScaledDotOp


@dataclass(frozen=True, slots=True)
class DotDimensions:
    """Which dimensions of the operands are batched and contracted, in matching order."""

    lhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    @staticmethod
    def of(op: DotOp | RaggedDotOp | ScaledDotOp) -> DotDimensions:
        """The dimension numbers of an instruction."""
        return DotDimensions(
            op.lhs_batch_dims, op.lhs_contracting_dims, op.rhs_batch_dims, op.rhs_contracting_dims
        )


def accumulator(lhs: PrimitiveType, rhs: PrimitiveType, result: PrimitiveType) -> np.dtype[Any]:
    """The numpy type in which products of these types are summed."""
    if result.kind is Kind.PRED:
        return np.dtype(np.bool_)
    types = [work_dtype(t) for t in (lhs, rhs, result)]
    if result.is_float or result.is_complex:
        return np.result_type(*types)
    # Sums that wrap are right in the low bits whatever the width, but floats must truncate last.
    return np.result_type(*types) if lhs.is_float or rhs.is_float else types[2]


def matmul(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """`lhs @ rhs` summed in `dtype`; small integers go through f64 when that is exact."""
    if dtype.kind in "iu" and lhs.dtype.itemsize <= 2 and rhs.dtype.itemsize <= 2:
        width = 8 * (lhs.dtype.itemsize + rhs.dtype.itemsize)
        if lhs.shape[-1] << width <= 1 << 53:
            exact = np.matmul(lhs.astype(np.float64), rhs.astype(np.float64))
            return exact.astype(np.int64).astype(dtype)
    return np.matmul(lhs.astype(dtype, copy=False), rhs.astype(dtype, copy=False))


def dot_general(lhs: Array, rhs: Array, dims: DotDimensions, dtype: np.dtype[Any]) -> Array:
    """Batch dimensions, then the free ones of the left, then of the right; summed in `dtype`."""
    lhs_free = _free(lhs.ndim, dims.lhs_batch, dims.lhs_contracting)
    rhs_free = _free(rhs.ndim, dims.rhs_batch, dims.rhs_contracting)
    batch = tuple(lhs.shape[dim] for dim in dims.lhs_batch)
    rows = tuple(lhs.shape[dim] for dim in lhs_free)
    columns = tuple(rhs.shape[dim] for dim in rhs_free)
    depth = math.prod(lhs.shape[dim] for dim in dims.lhs_contracting)
    left = lhs.transpose((*dims.lhs_batch, *lhs_free, *dims.lhs_contracting))
    right = rhs.transpose((*dims.rhs_batch, *dims.rhs_contracting, *rhs_free))
    count = math.prod(batch)
    product = matmul(
        left.reshape(count, math.prod(rows), depth),
        right.reshape(count, depth, math.prod(columns)),
        dtype,
    )
    return product.reshape((*batch, *rows, *columns))


def _free(rank: int, batch: Sequence[int], contracting: Sequence[int]) -> tuple[int, ...]:
    return tuple(dim for dim in range(rank) if dim not in batch and dim not in contracting)


def _rounded_operand(array: Array, type_: PrimitiveType, algorithm: str) -> Array:
    """An operand as `algorithm` sees it: rounded to the format that it multiplies in."""
    if type_ not in (F32, F64) or "_x" in algorithm:
        return array  # several products of parts make up for the rounding
    if "bf16" in algorithm:
        return convert(array, type_, BF16).astype(np.float32)
    if "tf32" in algorithm:
        return reduce_precision(array.astype(np.float32), 8, 10)
    if "f16" in algorithm:
        return array.astype(np.float16).astype(np.float32)
    return array


@prepares("dot")
def dot(op: DotOp, program: Program) -> Run:
    """Sums of products over contracting dimensions, batched.

    Raises HLO0307 for block scaling, whose operands have no meaning here.
    """
    lhs_type, rhs_type = element_type(op, 0), element_type(op, 1)
    result = cast(ArrayShape, op.shape).element_type
    if not op.is_dense:
        raise unsupported("dot with block scaling or sparsity", lhs_type, rhs_type)
    dims, dtype = DotDimensions.of(op), accumulator(lhs_type, rhs_type, result)
    algorithm = op.algorithm.lower()

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        lhs = _rounded_operand(inputs[0], lhs_type, algorithm)
        rhs = _rounded_operand(inputs[1], rhs_type, algorithm)
        return rounded(dot_general(_workable(lhs), _workable(rhs), dims, dtype), result)

    return run


def _workable(array: Array) -> Array:
    """ml_dtypes arrays in a type that numpy multiplies fast."""
    if array.dtype.kind != "V" and array.dtype.name in np.sctypeDict:
        return array
    name = array.dtype.name
    if name.startswith(("int", "uint")):
        return array.astype(np.int8 if name.startswith("int") else np.uint8)
    return array.astype(np.float32)


def rounded(array: Array, type_: PrimitiveType) -> Array:
    """An accumulated result in its own type."""
    return array if array.dtype == type_.dtype else wrap(array, type_.dtype)


@prepares("ragged-dot")
def ragged_dot(op: RaggedDotOp, program: Program) -> Run:
    """Dot in which groups of consecutive lhs places meet different right-hand sides.

    The ragged lhs dimension may be free (rhs has a group dimension), contracting (the result gets
    a leading group dimension) or a batch dimension (then groups make no difference). Places beyond
    the last group give zeros.
    """
    lhs_type, rhs_type = element_type(op, 0), element_type(op, 1)
    result = cast(ArrayShape, op.shape).element_type
    dims, dtype = DotDimensions.of(op), accumulator(lhs_type, rhs_type, result)
    (ragged,) = op.lhs_ragged_dims
    group_dims = op.rhs_group_dims

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        lhs, rhs = _workable(inputs[0]), _workable(inputs[1])
        return rounded(
            ragged_dot_general(lhs, rhs, inputs[2], dims, ragged, group_dims, dtype), result
        )

    return run


def ragged_dot_general(
    lhs: Array,
    rhs: Array,
    sizes: Array,
    dims: DotDimensions,
    ragged: int,
    group_dims: Sequence[int],
    dtype: np.dtype[Any],
) -> Array:
    """`ragged-dot` of groups of `sizes` along the dimension `ragged` of the lhs, summed in `dtype`."""
    sizes = sizes.astype(np.int64)
    if ragged in dims.lhs_batch:
        return dot_general(lhs, rhs, dims, dtype)
    masks = _masks(sizes, lhs, ragged, dims)
    if ragged in dims.lhs_contracting:
        other = dims.rhs_contracting[dims.lhs_contracting.index(ragged)]
        return np.stack(
            [
                dot_general(_kept(lhs, mask, ragged), _kept(rhs, mask, other), dims, dtype)
                for mask in masks
            ]
        )
    (group_dim,) = group_dims
    inner = DotDimensions(
        dims.lhs_batch,
        dims.lhs_contracting,
        tuple(d - (d > group_dim) for d in dims.rhs_batch),
        tuple(d - (d > group_dim) for d in dims.rhs_contracting),
    )
    free = _free(lhs.ndim, dims.lhs_batch, dims.lhs_contracting)
    at = len(dims.lhs_batch) + free.index(ragged)
    total: Array | None = None
    for group, mask in enumerate(masks):
        product = dot_general(lhs, rhs.take(group, axis=group_dim), inner, dtype)
        spread = [1] * product.ndim
        spread[at] = product.shape[at]
        for position, dim in enumerate(dims.lhs_batch):
            spread[position] = mask.shape[dim]
        for position, dim in enumerate(free):
            spread[len(dims.lhs_batch) + position] = mask.shape[dim]
        order = (*dims.lhs_batch, *free, *dims.lhs_contracting)
        chosen = mask.transpose(order).reshape(spread)
        total = np.zeros_like(product) if total is None else total
        total = np.where(chosen, product, total)
    assert total is not None
    return total


def _masks(sizes: Array, lhs: Array, ragged: int, dims: DotDimensions) -> list[Array]:
    """Per group, whether a place of the ragged dimension belongs to it; broadcasts to `lhs`.

    `sizes` is [groups], or has the leading batch (then free or contracting) dimensions of the lhs
    that come before the ragged one in front.
    """
    ends = np.cumsum(sizes, axis=-1)
    starts = ends - sizes
    inner = (
        dims.lhs_contracting
        if ragged in dims.lhs_contracting
        else _free(lhs.ndim, dims.lhs_batch, dims.lhs_contracting)
    )
    prefix = (*dims.lhs_batch, *(d for d in inner if d < ragged))[: sizes.ndim - 1]
    place = np.arange(lhs.shape[ragged]).reshape(
        [-1 if dim == ragged else 1 for dim in range(lhs.ndim)]
    )
    masks: list[Array] = []
    for group in range(sizes.shape[-1]):
        spread = [1] * lhs.ndim
        for dim, size in zip(prefix, sizes.shape[:-1], strict=True):
            spread[dim] = size
        low, high = (bound[..., group].reshape(spread) for bound in (starts, ends))
        masks.append((place >= low) & (place < high))
    return masks


def _kept(array: Array, mask: Array, dim: int) -> Array:
    """The places of dimension `dim` that a mask keeps; the others zero, as they must not count."""
    if mask.size == mask.shape[np.argmax(mask.shape)] and mask.size == array.shape[dim]:
        return array.take(np.flatnonzero(mask.reshape(-1)), axis=dim)
    if mask.ndim == array.ndim:
        return np.where(mask, array, np.zeros((), array.dtype))
    return array


@prepares("scaled-dot")
def scaled_dot(op: ScaledDotOp, program: Program) -> Run:
    """Dot of operands multiplied by block scales; a scale stands for size / scale size places."""
    result = cast(ArrayShape, op.shape).element_type
    dims = DotDimensions.of(op)
    dtype = np.result_type(np.float32, work_dtype(result))

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        lhs, lhs_scale, rhs, rhs_scale = (value.astype(dtype) for value in inputs)
        left, right = scaled(lhs, lhs_scale), scaled(rhs, rhs_scale)
        return rounded(dot_general(left, right, dims, dtype), result)

    return run


def scaled(array: Array, scale: Array) -> Array:
    """Each number times the scale of its block; a scale without dimensions is that of all."""
    if scale.ndim == 0:
        return np.asarray(array * scale)
    for dim, size in enumerate(array.shape):
        if 0 < scale.shape[dim] < size:
            scale = np.repeat(scale, size // scale.shape[dim], axis=dim)
    return np.asarray(array * scale)
