"""Instructions that read or write at indices that are data."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.ops.data_movement import DynamicSliceOp, GatherOp, ScatterOp
from mlirhlo.dialects.hlo.ops.reduction import SelectAndScatterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import region_of
from mlirhlo.dialects.structured import GatherOp as StructuredGatherOp
from mlirhlo.dialects.structured import ScatterOp as StructuredScatterOp
from mlirhlo.dialects.structured import SelectAndScatterOp as StructuredSelectAndScatterOp
from mlirhlo.dialects.structured.base import ints_attribute
from mlirhlo.dialects.structured.index_maps import simplified_map
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.structured.bodies import applied
from mlirhlo.lowering.structured.conversion import (
    Kernel,
    converts,
    element_of,
    in_memory_order,
    logical,
    parts_of,
    static_shape,
    tensor_of,
)
from mlirhlo.lowering.structured.movement import start_indices


def _map(sizes: Sequence[int], exprs: Sequence[AffineExpr]) -> AffineMap:
    return simplified_map(AffineMap(len(sizes), 0, tuple(exprs)), sizes)


@converts("dynamic-slice")
def convert_dynamic_slice(kernel: Kernel, op: DynamicSliceOp) -> Sequence[SSAValue]:
    """A gather at scalar indices; those of dimensions that are read whole are 0."""
    shape = static_shape(op.shape)
    source = static_shape(shape_of(op.inputs[0].type))
    sizes = physical_dimensions(shape)
    starts = start_indices(kernel, op.inputs[1:], source.rank)
    chosen: list[SSAValue] = []
    dimensions: list[int] = []
    limits: list[int] = []
    for position, dim in enumerate(physical_order(source)):
        limit = source.dimensions[dim] - shape.dimensions[dim]
        if limit > 0 and shape.element_count:
            chosen.append(starts[dim])
            dimensions.append(position)
            limits.append(limit)
    offsets = _map(sizes, in_memory_order(source, logical(shape)))
    maps = [AffineMap(len(sizes), 0, ())] * len(chosen)
    array = kernel.array(op.inputs[0])
    type_ = tensor_of(shape, source.element_type)
    return kernel.add(StructuredGatherOp(array, chosen, maps, dimensions, limits, offsets, type_))


def _components(
    indices: ArrayShape, vector_dim: int, count: int, batch: Sequence[AffineExpr]
) -> list[list[AffineExpr]]:
    """Where the index array holds each component of the index vector, by indices of its other dimensions."""
    found: list[list[AffineExpr]] = []
    for component in range(count):
        rest = iter(batch)
        exprs = [
            AffineExpr.constant(component) if dim == vector_dim else next(rest)
            for dim in range(indices.rank)
        ]
        found.append(in_memory_order(indices, exprs))
    return found


@converts("gather")
def convert_gather(kernel: Kernel, op: GatherOp) -> Sequence[SSAValue]:
    """A gather; batching dimensions are indices of the result."""
    shape = static_shape(op.shape)
    source, starts = static_shape(op.input_shapes[0]), static_shape(op.input_shapes[1])
    sizes, indices = physical_dimensions(shape), logical(shape)
    batch = [indices[dim] for dim in range(shape.rank) if dim not in op.offset_dims]
    offsets: list[AffineExpr] = [AffineExpr.constant(0)] * source.rank
    dropped = {*op.collapsed_slice_dims, *op.operand_batching_dims}
    kept = [dim for dim in range(source.rank) if dim not in dropped]
    for dim, result_dim in zip(kept, op.offset_dims, strict=True):
        offsets[dim] = indices[result_dim]
    for dim, own in zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True):
        offsets[dim] = batch[own - (op.index_vector_dim < own)]
    order = physical_order(source)
    limits = [source.dimensions[dim] - op.slice_sizes[dim] for dim in op.start_index_map]
    places = _components(starts, op.index_vector_dim, len(op.start_index_map), batch)
    chosen = [n for n, limit in enumerate(limits) if limit > 0 and shape.element_count]
    array = kernel.array(op.start_indices)
    return kernel.add(
        StructuredGatherOp(
            kernel.array(op.operand),
            [array] * len(chosen),
            [_map(sizes, places[number]) for number in chosen],
            [order.index(op.start_index_map[number]) for number in chosen],
            [limits[number] for number in chosen],
            _map(sizes, in_memory_order(source, offsets)),
            tensor_of(shape, source.element_type),
        )
    )


@converts("scatter")
def convert_scatter(kernel: Kernel, op: ScatterOp) -> Sequence[SSAValue]:
    """A scatter; every target is in the memory order of the first, every update likewise, unless that would change
    the order of windows."""
    count = len(op.inputs) // 2
    first = static_shape(op.input_shapes[0])
    update = static_shape(op.input_shapes[count + 1])
    outside = [dim for dim in physical_order(update) if dim not in op.update_window_dims]
    if outside != sorted(outside):
        update = ArrayShape(update.element_type, update.dimensions)
    targets = [kernel.as_laid_out(value, first) for value in op.inputs[:count]]
    offsets, batch, widths = _written_indices(op, first, update)
    indexed = op.scatter_dims_to_operand_dims
    limits = [first.dimensions[dim] - widths[dim] for dim in indexed]
    results: Sequence[SSAValue] = targets
    if min(limits, default=0) >= 0 and update.element_count and first.element_count:
        elements = [element_of(value) for value in targets]
        given = [
            kernel.as_type(kernel.as_laid_out(value, update), element)
            for value, element in zip(op.inputs[count + 1 :], elements, strict=True)
        ]
        combiner = applied(
            kernel.computations[op.to_apply], [*elements, *elements], kernel.computations, elements
        )
        starts, sizes = static_shape(op.input_shapes[count]), physical_dimensions(update)
        places = _components(starts, op.index_vector_dim, len(indexed), batch)
        results = kernel.add(
            StructuredScatterOp(
                targets,
                [kernel.array(op.inputs[count])] * len(indexed),
                given,
                [_map(sizes, exprs) for exprs in places],
                [physical_order(first).index(dim) for dim in indexed],
                limits,
                _map(sizes, in_memory_order(first, offsets)),
                region_of(combiner),
                unique_indices=op.unique_indices,
                indices_are_sorted=op.indices_are_sorted,
            )
        )
    return [
        kernel.read(value, first, logical(part), physical_dimensions(part))
        for value, part in zip(results, parts_of(op.shape), strict=True)
    ]


def _written_indices(
    op: ScatterOp, target: ArrayShape, update: ArrayShape
) -> tuple[list[AffineExpr], list[AffineExpr], list[int]]:
    """Of an update element: the logical indices written, without those that are data; its indices outside of
    the window; and the sizes of windows along each dimension of the target."""
    indices = logical(update)
    batch = [indices[dim] for dim in range(update.rank) if dim not in op.update_window_dims]
    offsets: list[AffineExpr] = [AffineExpr.constant(0)] * target.rank
    dropped = {*op.inserted_window_dims, *op.input_batching_dims}
    kept = [dim for dim in range(target.rank) if dim not in dropped]
    widths = [1] * target.rank
    for dim, update_dim in zip(kept, op.update_window_dims, strict=True):
        offsets[dim] = indices[update_dim]
        widths[dim] = update.dimensions[update_dim]
    for dim, own in zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True):
        offsets[dim] = batch[own - (op.index_vector_dim < own)]
    return offsets, batch, widths


@converts("select-and-scatter")
def convert_select_and_scatter(kernel: Kernel, op: SelectAndScatterOp) -> Sequence[SSAValue]:
    """The same, dimensions in order: of equal elements the first one of a window is selected."""
    assert not isinstance(op.shape, TupleShape)
    shape = static_shape(op.shape)
    operand = kernel.row_major(op.operand)
    element = element_of(operand)
    source = kernel.as_type(kernel.row_major(op.source), element)
    init = kernel.as_type(kernel.array(op.init_value), element)
    window = op.window.dimensions
    computations = kernel.computations
    select = applied(computations[op.select], [element] * 2, computations, [PRED])
    combiner = applied(computations[op.scatter], [element] * 2, computations, [element])
    made = StructuredSelectAndScatterOp(
        operands=[operand, source, init],
        result_types=[operand.type],
        properties={
            "window_sizes": ints_attribute(d.size for d in window),
            "window_strides": ints_attribute(d.stride for d in window),
            "window_dilations": ints_attribute(d.window_dilation for d in window),
            "base_dilations": ints_attribute(d.base_dilation for d in window),
            "padding_low": ints_attribute(d.padding_low for d in window),
        },
        regions=[region_of(select), region_of(combiner)],
    )
    return [
        kernel.laid_out(
            kernel.add(made)[0], ArrayShape(element, shape.dimensions, (), shape.layout)
        )
    ]
