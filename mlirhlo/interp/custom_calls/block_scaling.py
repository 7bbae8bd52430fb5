"""Matrix products of numbers that share scales by blocks: `__op$block_scaled_dot` and its cuDNN form.

A block of neighbours along the last dimension has one scale. Both operands are dequantized in the result's
type: each number times its block's scale; then rows meet rows, batch by batch. cuDNN's form has its scales
padded to tiles of 128 rows and 4 columns, a tile's rows in four groups of 32, turned.
Source: XLA's block-scaling-rewriter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, unfit
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.ops.dot import DotDimensions, accumulator, dot_general, rounded
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

_BLOCKS = {"f8e8m0fnu": 32, "f8e4m3fn": 16}
"""How many numbers share a scale of a type, where the shapes no longer say it."""


def dequantized(x: Any, scale: Any, type_: PrimitiveType) -> Array:
    """Each number times its block's scale, in a type."""
    block = x.shape[-1] // scale.shape[-1]
    factors = np.repeat(scale.astype(type_.dtype), block, axis=-1)
    work = work_dtype(type_)
    return rounded(x.astype(type_.dtype).astype(work) * factors.astype(work), type_)


def _product(lhs: Array, rhs: Array, shape: ArrayShape) -> Array:
    rank, type_ = lhs.ndim, shape.element_type
    batch = tuple(range(rank - 2))
    dims = DotDimensions(batch, (rank - 1,), batch, (rank - 1,))
    work = work_dtype(type_)
    made = dot_general(lhs.astype(work), rhs.astype(work), dims, accumulator(type_, type_, type_))
    return rounded(made, type_)


@computes("__op$dequantize")
def dequantize(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Numbers and the scales of their blocks as one array."""
    return dequantized(inputs[0], inputs[1], cast(ArrayShape, op.shape).element_type)


@computes("__op$block_scaled_dot")
def block_scaled_dot(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Product of lhs and rhs with the scales of lhs, and of rhs if there is a fourth operand."""
    shape = cast(ArrayShape, op.shape)
    lhs, rhs, *scales = inputs
    lhs = dequantized(lhs, scales[0], shape.element_type)
    if len(scales) > 1:
        rhs = dequantized(rhs, scales[1], shape.element_type)
    return _product(lhs, rhs.astype(shape.element_type.dtype), shape)


@computes("__cudnn$blockScaledDot")
def cudnn_block_scaled_dot(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(product, workspace)` of lhs, rhs and their scales in tiles. Raises HLO0355."""
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    shape = cast(ArrayShape, parts[0])
    operands: list[Array] = []
    for k in (0, 1):
        x, tiles = inputs[k], inputs[k + 2]
        scale_type = cast(ArrayShape, op.input_shapes[k + 2]).element_type
        block = _BLOCKS.get(scale_type.name)
        if block is None:
            raise unfit(
                op, f"how many numbers share a scale of type {scale_type.name} is not known"
            )
        scale = out_of_tiles(tiles)[..., : x.shape[-2], : x.shape[-1] // block]
        operands.append(dequantized(x, scale, shape.element_type))
    lhs, rhs = operands
    values: tuple[Value, ...] = (_product(lhs, rhs, shape), *map(zeros, parts[1:]))
    return values if isinstance(op.shape, TupleShape) else values[0]


def out_of_tiles(tiles: Array) -> Array:
    """Scales in their rows and columns."""
    *batch, rows, columns = tiles.shape
    split = tiles.reshape(-1, rows // 128, columns // 4, 32, 4, 4)
    return split.transpose(0, 1, 4, 3, 2, 5).reshape(*batch, rows, columns)
