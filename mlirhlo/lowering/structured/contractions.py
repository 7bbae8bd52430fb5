"""Instructions that sum products: dots and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    Window,
    WindowDimension,
)
from mlirhlo.dialects.hlo.element_types import (
    BF16,
    F16,
    F32,
    F64,
    PRED,
    PRIMITIVE_TYPES,
    S64,
    PrimitiveType,
)
from mlirhlo.dialects.hlo.ops.linear_algebra import (
    ConvolutionOp,
    DotOp,
    RaggedDotOp,
    ScaledDotOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.quick import region_of
from mlirhlo.dialects.structured import ContractOp, ScanOp, identity_map, sizes_of
from mlirhlo.dialects.structured.index_maps import reversed_index, simplified_map
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.dot import accumulator as numpy_type
from mlirhlo.lowering.memory_order import physical_dimensions
from mlirhlo.lowering.structured.bodies import Body, passing_body
from mlirhlo.lowering.structured.bodies import element_of as element
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    element_of,
    in_memory_order,
    logical,
    no_form,
    static_shape,
    tensor,
    tensor_of,
)
from mlirhlo.lowering.structured.folds import is_padded, padded, window_indices


def accumulator(lhs: PrimitiveType, rhs: PrimitiveType, result: PrimitiveType) -> PrimitiveType:
    """The type in which products of these types are summed."""
    dtype: np.dtype[Any] = numpy_type(lhs, rhs, result)
    return next(t for t in PRIMITIVE_TYPES.values() if t.is_array and t.dtype == dtype)


def _contract(
    kernel: Kernel,
    op: DotOp | ConvolutionOp | RaggedDotOp | ScaledDotOp,
    inputs: Sequence[SSAValue],
    indices: Sequence[Sequence[AffineExpr]],
    sizes: Sequence[int],
    body: Block,
    sums: PrimitiveType | None = None,
) -> Sequence[SSAValue]:
    """`indices` into the inputs, in the order of memory."""
    shape = static_shape(op.shape)
    space = (*physical_dimensions(shape), *sizes)
    maps = [simplified_map(AffineMap(len(space), 0, tuple(e)), space) for e in indices]
    if sums is None:
        sums = accumulator(element_of(inputs[0]), element_of(inputs[1]), shape.element_type)
    assert sums.mlir is not None
    return kernel.add(ContractOp(inputs, maps, sizes, sums.mlir, tensor_of(shape), region_of(body)))


def _dot_indices(
    op: DotOp | RaggedDotOp | ScaledDotOp,
    lhs: ArrayShape,
    rhs: ArrayShape,
    results: Sequence[AffineExpr],
    contracted: Sequence[AffineExpr],
    rhs_only: Sequence[int] = (),
) -> tuple[list[AffineExpr], list[AffineExpr]]:
    """Logical indices into both operands: batch dimensions lead the result, then those of each that are free.

    `rhs_only`: dimensions of the right-hand side that are neither.
    """
    rest = iter(results)
    at_lhs: list[AffineExpr] = [AffineExpr.constant(0)] * lhs.rank
    at_rhs: list[AffineExpr] = [AffineExpr.constant(0)] * rhs.rank
    for left, right in zip(op.lhs_batch_dims, op.rhs_batch_dims, strict=True):
        at_lhs[left] = at_rhs[right] = next(rest)
    for dim in range(lhs.rank):
        if dim not in op.lhs_batch_dims and dim not in op.lhs_contracting_dims:
            at_lhs[dim] = next(rest)
    for dim in range(rhs.rank):
        taken = (*op.rhs_batch_dims, *op.rhs_contracting_dims, *rhs_only)
        if dim not in taken:
            at_rhs[dim] = next(rest)
    for index, left, right in zip(
        contracted, op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True
    ):
        at_lhs[left] = at_rhs[right] = index
    return at_lhs, at_rhs


def _folded(shape: ArrayShape, count: int) -> list[AffineExpr]:
    return [AffineExpr.dimension(shape.rank + number) for number in range(count)]


@converts("dot")
def convert_dot(kernel: Kernel, op: DotOp) -> Sequence[SSAValue]:
    """A contraction; an algorithm that multiplies in a narrower format rounds in the body."""
    if not op.is_dense:
        raise no_form(op, "its operands are sparse or scaled in blocks")
    shape = static_shape(op.shape)
    lhs, rhs = static_shape(op.input_shapes[0]), static_shape(op.input_shapes[1])
    sizes = [lhs.dimensions[dim] for dim in op.lhs_contracting_dims]
    at_lhs, at_rhs = _dot_indices(op, lhs, rhs, logical(shape), _folded(shape, len(sizes)))
    body = Body([lhs.element_type, rhs.element_type])
    factors = [_rounded(body, value, op.algorithm.lower()) for value in body.arguments]
    indices = [in_memory_order(lhs, at_lhs), in_memory_order(rhs, at_rhs)]
    inputs = [kernel.array(op.lhs), kernel.array(op.rhs)]
    return _contract(kernel, op, inputs, indices, sizes, body.finish(factors))


def _rounded(body: Body, value: SSAValue, algorithm: str) -> SSAValue:
    """A factor rounded to the format that an algorithm multiplies in."""
    type_ = element(value)
    if type_ not in (F32, F64) or "_x" in algorithm:
        return value  # several products of parts make up for the rounding
    if "bf16" in algorithm:
        return body.convert(body.convert(value, BF16), F32)
    if "tf32" in algorithm:
        properties = {"exponent_bits": integer(8), "mantissa_bits": integer(10)}
        return body.emit("reduce-precision", [body.convert(value, F32)], F32, properties)
    if "f16" in algorithm:
        return body.convert(body.convert(value, F16), F32)
    return value


@converts("scaled-dot")
def convert_scaled_dot(kernel: Kernel, op: ScaledDotOp) -> Sequence[SSAValue]:
    """A contraction whose factors are elements times the scales of their blocks."""
    shape = static_shape(op.shape)
    lhs, lhs_scale, rhs, rhs_scale = (static_shape(s) for s in op.input_shapes)
    sizes = [lhs.dimensions[dim] for dim in op.lhs_contracting_dims]
    at_lhs, at_rhs = _dot_indices(op, lhs, rhs, logical(shape), _folded(shape, len(sizes)))
    sums = F64 if work_dtype(shape.element_type) == F64.dtype else F32
    body = Body([s.element_type for s in (lhs, lhs_scale, rhs, rhs_scale)])
    left, left_scale, right, right_scale = (body.convert(v, sums) for v in body.arguments)
    factors = [
        body.emit("multiply", [left, left_scale], sums),
        body.emit("multiply", [right, right_scale], sums),
    ]
    indices = [
        in_memory_order(lhs, at_lhs),
        _block_indices(at_lhs, lhs, lhs_scale),
        in_memory_order(rhs, at_rhs),
        _block_indices(at_rhs, rhs, rhs_scale),
    ]
    inputs = [kernel.array(value) for value in op.inputs]
    return _contract(kernel, op, inputs, indices, sizes, body.finish(factors), sums)


def _block_indices(
    indices: Sequence[AffineExpr], array: ArrayShape, scale: ArrayShape
) -> list[AffineExpr]:
    found = [
        index // (size // scale.dimensions[dim]) if 0 < scale.dimensions[dim] < size else index
        for dim, (index, size) in enumerate(zip(indices, array.dimensions, strict=True))
    ]
    return in_memory_order(scale, found) if scale.rank else []


@converts("convolution")
def convert_convolution(kernel: Kernel, op: ConvolutionOp) -> Sequence[SSAValue]:
    """A contraction of window positions and features; padding and gaps of the input hold zeros."""
    if not op.is_dense:
        raise no_form(op, "its operands are sparse or scaled in blocks")
    labels = op.dim_labels
    assert labels is not None
    shape = static_shape(op.shape)
    lhs, rhs = static_shape(op.input_shapes[0]), static_shape(op.input_shapes[1])
    spatial = labels.input_spatial_dimensions
    window = op.window or Window((WindowDimension(),) * len(spatial))
    value = kernel.array(op.lhs)
    if is_padded(window):
        rows = [WindowDimension()] * lhs.rank
        for dim, row in zip(spatial, window.dimensions, strict=True):
            rows[dim] = row
        value = padded(
            kernel, value, in_memory_order(lhs, rows), kernel.scalar(lhs.element_type, 0)
        )
    sizes = [
        *(d.size for d in window.dimensions),
        rhs.dimensions[labels.kernel_input_feature_dimension],
    ]
    at_lhs, at_rhs = _convolution_indices(op, labels, window, _folded(shape, len(sizes)))
    return _contract(
        kernel,
        op,
        [value, kernel.array(op.rhs)],
        [in_memory_order(lhs, at_lhs), in_memory_order(rhs, at_rhs)],
        sizes,
        passing_body([lhs.element_type, rhs.element_type]),
    )


def _convolution_indices(
    op: ConvolutionOp,
    labels: ConvolutionDimensionNumbers,
    window: Window,
    folded: Sequence[AffineExpr],
) -> tuple[list[AffineExpr], list[AffineExpr]]:
    """Logical indices into the padded input and the kernel; folded are positions in the window, then features."""
    shape = static_shape(op.shape)
    lhs, rhs = static_shape(op.input_shapes[0]), static_shape(op.input_shapes[1])
    results, (*taps, feature) = logical(shape), folded
    depth = rhs.dimensions[labels.kernel_input_feature_dimension]
    batch = results[labels.output_batch_dimension]
    output = results[labels.output_feature_dimension]
    outputs = shape.dimensions[labels.output_feature_dimension]
    at_lhs: list[AffineExpr] = [AffineExpr.constant(0)] * lhs.rank
    positions = [results[dim] for dim in labels.output_spatial_dimensions]
    reads = window_indices(_forward(window), positions, taps)
    for dim, index in zip(labels.input_spatial_dimensions, reads, strict=True):
        at_lhs[dim] = index
    groups = op.feature_group_count
    group = output // max(1, outputs // groups) if groups > 1 else AffineExpr.constant(0)
    at_lhs[labels.input_feature_dimension] = group * depth + feature
    if op.batch_group_count > 1:
        part = lhs.dimensions[labels.input_batch_dimension] // op.batch_group_count
        batch = (output // max(1, outputs // op.batch_group_count)) * part + batch
    at_lhs[labels.input_batch_dimension] = batch
    at_rhs: list[AffineExpr] = [AffineExpr.constant(0)] * rhs.rank
    at_rhs[labels.kernel_output_feature_dimension] = output
    at_rhs[labels.kernel_input_feature_dimension] = feature
    for dim, tap, row in zip(
        labels.kernel_spatial_dimensions, taps, window.dimensions, strict=True
    ):
        at_rhs[dim] = reversed_index(tap, row.size) if row.window_reversal else tap
    return at_lhs, at_rhs


def _forward(window: Window) -> Window:
    """The window without reversal: that of a convolution is of the kernel."""
    return Window(
        tuple(
            WindowDimension(
                d.size, d.stride, d.padding_low, d.padding_high, d.window_dilation, d.base_dilation
            )
            for d in window.dimensions
        )
    )


@converts("ragged-dot")
def convert_ragged_dot(kernel: Kernel, op: RaggedDotOp) -> Sequence[SSAValue]:
    """A contraction in which elements of other groups count as zeros.

    A free ragged dimension: groups are contracted too, before all else. A contracted one: the result's first dimension
    is the group. A batch dimension: groups make no difference.
    """
    shape = static_shape(op.shape)
    lhs, rhs = static_shape(op.input_shapes[0]), static_shape(op.input_shapes[1])
    (ragged,) = op.lhs_ragged_dims
    sizes = [lhs.dimensions[dim] for dim in op.lhs_contracting_dims]
    results = logical(shape)
    is_free = ragged not in (*op.lhs_contracting_dims, *op.lhs_batch_dims)
    folded = _folded(shape, len(sizes) + is_free)
    position, group = AffineExpr.constant(0), folded.pop(0) if is_free else folded[0]
    if ragged in op.lhs_contracting_dims:
        group, *results = results
        position = folded[op.lhs_contracting_dims.index(ragged)]
    others: Sequence[int] = () if ragged in op.lhs_batch_dims else op.rhs_group_dims
    at_lhs, at_rhs = _dot_indices(op, lhs, rhs, results, folded, others)
    inputs = [kernel.array(op.lhs), kernel.array(op.rhs)]
    elements = [lhs.element_type, rhs.element_type]
    if ragged in op.lhs_batch_dims:
        indices = [in_memory_order(lhs, at_lhs), in_memory_order(rhs, at_rhs)]
        return _contract(kernel, op, inputs, indices, sizes, passing_body(elements))
    bounds = _group_bounds(kernel, op.group_sizes)
    inner = op.lhs_contracting_dims
    if is_free:
        at_rhs[op.rhs_group_dims[0]] = group
        position = at_lhs[ragged]
        sizes.insert(0, sizes_of(bounds[0])[-1])
        inner = tuple(_free(op, lhs))
    prefix = [*op.lhs_batch_dims, *(dim for dim in inner if dim < ragged)]
    leading = [at_lhs[dim] for dim in prefix[: len(sizes_of(bounds[0])) - 1]]
    indices = [in_memory_order(lhs, at_lhs), in_memory_order(rhs, at_rhs)]
    indices += [[*leading, group]] * 2
    block = _body_of_group(elements, cast(AffineDimExpr, position).position)
    return _contract(kernel, op, [*inputs, *bounds], indices, sizes, block)


def _body_of_group(elements: Sequence[PrimitiveType], dim: int) -> Block:
    """Both factors where the index along a dimension is in a group, from its start to its end; else zeros."""
    body = Body([*elements, S64, S64])
    start, end = body.arguments[2:]
    index = body.index(dim, wide=True)
    inside = body.emit(
        "and", [body.compare("GE", index, start), body.compare("LT", index, end)], PRED
    )
    return body.finish(
        [
            body.emit("select", [inside, value, body.constant(type_, 0)], type_)
            for value, type_ in zip(body.arguments, elements, strict=False)
        ]
    )


def _free(op: RaggedDotOp, lhs: ArrayShape) -> list[int]:
    taken = (*op.lhs_batch_dims, *op.lhs_contracting_dims)
    return [dim for dim in range(lhs.rank) if dim not in taken]


def _group_bounds(kernel: Kernel, group_sizes: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where groups begin and end along the ragged dimension, s64."""
    counts = kernel.as_type(kernel.row_major(group_sizes), S64)
    sizes = sizes_of(counts)
    zero = kernel.map(tensor(S64, sizes[:-1]), [kernel.scalar(S64, 0)], [[]], passing_body([S64]))
    body = Body([S64, S64])
    total = body.emit("add", list(body.arguments), S64)
    scan = ScanOp(
        [counts],
        [zero],
        len(sizes) - 1,
        [counts.type, zero.type],
        region_of(body.finish([total, total])),
        associative=True,
    )
    ends = kernel.add(scan)[0]
    body = Body([S64, S64])
    start = body.emit("subtract", list(body.arguments), S64)
    identity = identity_map(len(sizes)).results
    starts = kernel.map(
        tensor(S64, sizes), [ends, counts], [identity, identity], body.finish([start])
    )
    return starts, ends
