"""Convolution: every layout, padding, stride, dilation, reversal, feature and batch groups.

Windows of the padded input become rows of a matrix (strided views, no copy until the product), one
product per group. Types: as dot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.numerics import unsupported, work_dtype
from mlirhlo.interp.ops.data_movement import padded
from mlirhlo.interp.ops.dot import accumulator, matmul, rounded
from mlirhlo.interp.ops.elementwise import element_type
from mlirhlo.interp.ops.windows import WindowPlaces
from mlirhlo.interp.registry import Array, Frame, Program, Run, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.linear_algebra import ConvolutionOp

_LARGEST_MATRIX = 1 << 25
"""Most elements of the matrix of windows made at once; larger ones go batch by batch."""


@prepares("convolution")
def convolution(op: ConvolutionOp, program: Program) -> Run:
    """Sums of products of a sliding, dilated, grouped window.

    Raises HLO0307 for sparse operands and block scaling.
    """
    lhs_type, rhs_type = element_type(op, 0), element_type(op, 1)
    result = cast(ArrayShape, op.shape).element_type
    if not op.is_dense:
        raise unsupported("convolution with block scaling or sparsity", lhs_type, rhs_type)
    labels = op.dim_labels
    assert labels is not None
    window = op.window or Window((WindowDimension(),) * len(labels.input_spatial_dimensions))
    features, batches = op.feature_group_count, op.batch_group_count
    dtype = accumulator(lhs_type, rhs_type, result)
    lhs_order = (
        labels.input_batch_dimension,
        labels.input_feature_dimension,
        *labels.input_spatial_dimensions,
    )
    rhs_order = (
        labels.kernel_output_feature_dimension,
        labels.kernel_input_feature_dimension,
        *labels.kernel_spatial_dimensions,
    )
    out_order = (
        labels.output_batch_dimension,
        labels.output_feature_dimension,
        *labels.output_spatial_dimensions,
    )
    back = tuple(out_order.index(dim) for dim in range(len(out_order)))
    flipped = tuple(2 + i for i, d in enumerate(window.dimensions) if d.window_reversal)

    def run(inputs: Sequence[Any], frame: Frame) -> Array:
        lhs = inputs[0].transpose(lhs_order).astype(work_dtype(lhs_type), copy=False)
        rhs = inputs[1].transpose(rhs_order).astype(work_dtype(rhs_type), copy=False)
        if flipped:
            rhs = np.flip(rhs, flipped)
        groups = features
        if batches > 1:
            # A batch group is a feature group whose features come from its part of the batch.
            part = lhs.shape[0] // batches
            lhs = lhs.reshape(batches, part, *lhs.shape[1:]).swapaxes(0, 1)
            lhs = lhs.reshape(part, batches * lhs.shape[2], *lhs.shape[3:])
            groups = batches
        return rounded(convolve(lhs, rhs, window, groups, dtype), result).transpose(back)

    return run


def convolve(lhs: Array, rhs: Array, window: Window, groups: int, dtype: np.dtype[Any]) -> Array:
    """[batch, feature, spatial…] with [out, in, spatial…] to [batch, out, spatial…].

    `window` without reversal; `groups` parts of the features meet their parts of the outputs.
    """
    plain = Window(
        tuple(
            WindowDimension(
                d.size, d.stride, d.padding_low, d.padding_high, d.window_dilation, d.base_dilation
            )
            for d in window.dimensions
        )
    )
    places = WindowPlaces(plain, lhs.shape[2:])
    counts = places.counts
    batch, channels = lhs.shape[:2]
    outputs, depth = rhs.shape[0], rhs.shape[1]
    taps = math.prod(d.size for d in plain.dimensions)
    positions = math.prod(counts)
    if 0 in (batch, outputs, positions):
        return np.zeros((batch, outputs, *counts), dtype=dtype)
    filled = padded(lhs, np.zeros((), lhs.dtype), [(0, 0, 0), (0, 0, 0), *places.edges])
    weights = rhs.reshape(groups, outputs // groups, depth * taps).swapaxes(1, 2)
    rank = len(counts)
    each = Window((WindowDimension(), WindowDimension(), *plain.dimensions))
    step = max(1, min(batch, _LARGEST_MATRIX // max(1, positions * channels * taps)))
    parts: list[Array] = []
    for start in range(0, batch, step):
        piece = np.ascontiguousarray(filled[start : start + step])
        size = piece.shape[0]
        view = WindowPlaces(each, (size, channels, *places.sizes)).windows(piece)
        # batch, feature, places…, 1, 1, taps… -> group, batch, places…, feature in group, taps…
        view = view.reshape(size, groups, depth, *counts, *(d.size for d in plain.dimensions))
        order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
        matrix = view.transpose(order).reshape(groups, size * positions, depth * taps)
        product = matmul(matrix, weights, dtype).reshape(groups, size, *counts, outputs // groups)
        ordered = product.transpose(1, 0, 2 + rank, *range(2, 2 + rank))
        parts.append(ordered.reshape(size, outputs, *counts))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
