"""Dots and convolutions on tiles: contracted dimensions leave partial sums, borders are fetched."""

from __future__ import annotations

from dataclasses import replace

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowAttr
from mlirhlo.dialects.hlo.ops import ConvolutionOp
from mlirhlo.rewrites.spmd.emit import Value
from mlirhlo.rewrites.spmd.factors import sizes_of
from mlirhlo.rewrites.spmd.halo import fetch
from mlirhlo.rewrites.spmd.reducers import addition
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Work, handles, plain
from mlirhlo.rewrites.spmd.windowed_einsum import windowed


@handles("dot")
def dot(work: Work) -> list[Leaf]:
    """A dot of tiles; partial sums along the axes that cut contracted dimensions."""
    if (overlapped := windowed(work)) is not None:
        return overlapped
    operands = [
        work.cleared(k).value if work.partial and k < 2 else work.value(k)
        for k in range(len(work.operands))
    ]
    value = work.emit.like(work.op, operands, work.local_result(), work.op.properties)
    return work.parts(value, addition(work))


@handles("convolution", shifts=True)
def convolution(work: Work) -> list[Leaf]:
    """A convolution of tiles. Along cut spatial dimensions each device fetches what its windows see,
    padding included, and convolves without padding there.
    """
    op = work.op
    assert isinstance(op, ConvolutionOp)
    labels, window = op.dim_labels, op.window
    if labels is None or window is None or len(op.inputs) != 2:
        return plain(work)
    lhs = work.cleared(0) if work.partial else work.part(0)
    rhs = work.cleared(1) if work.partial else work.part(1)
    value: Value = lhs.value
    dimensions = list(window.dimensions)
    zero = work.emit.constant(0, lhs.shape.element_type)
    placement = lhs.placement
    spatial = zip(labels.input_spatial_dimensions, labels.output_spatial_dimensions, strict=True)
    for k, (dim, result) in enumerate(spatial):
        axes = placement.dims[dim]
        (factor,) = work.factors.operands[0][dim]
        if not axes or factor not in work.factors.shifted:
            continue
        w = dimensions[k]
        tile = -(-sizes_of(op.shape)[result] // placement.grid.product(axes))
        extent = (tile - 1) * w.stride + (w.size - 1) * w.window_dilation + 1
        step, low = tile * w.stride, w.padding_low
        here = replace(lhs, value=value, known=[])
        value = fetch(here, dim, -low, step, extent, zero, work.emit)
        dimensions[k] = replace(w, padding_low=0, padding_high=0)
    properties = {**op.properties, "window": WindowAttr(Window(tuple(dimensions)))}
    grouped = {
        "feature_group_count": (op.feature_group_count, labels.input_feature_dimension),
        "batch_group_count": (op.batch_group_count, labels.input_batch_dimension),
    }
    for key, (count, dim) in grouped.items():
        factors = work.factors.operands[0][dim]
        if count > 1 and len(factors) > 1:
            cut = work.grid.product(work.cuts.get(factors[0], ()))
            properties[key] = integer(count // cut)
            if count == cut:
                del properties[key]
    found = work.emit.like(op, (value, rhs.value), work.local_result(), properties)
    return work.parts(found, addition(work))
