"""Ops that move elements: broadcasts, reshapes, slices, padding, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import (
    Padding,
    PaddingAttr,
    PaddingDimension,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout, array
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import integer, integers, number, numbers
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, joined_shape, lowers, result_shape
from mlirhlo.rewrites.stablehlo_to_hlo.ops.elementwise import laid_out


def array_shape(value: SSAValue) -> ArrayShape:
    """Shape of an array value."""
    shape = shape_of(value.type)
    assert isinstance(shape, ArrayShape)
    return shape


def spread(
    body: Body, operand: SSAValue, result: ArrayShape, dimensions: Sequence[int]
) -> SSAValue:
    """`operand` broadcast into `result`: dimensions of size 1 that grow are dropped in between."""
    given = array_shape(operand)
    sizes = list(result.dimensions)
    dynamic = list(result.dynamic or (False,) * result.rank)
    for dim, into in enumerate(dimensions):
        sizes[into] = given.dimensions[dim]
        dynamic[into] = given.is_dynamic_dimension(dim)
    first = array(result.element_type, sizes, dynamic)
    value = body.emit("broadcast", (operand,), first, {"dimensions": integers(tuple(dimensions))})
    if first.dimensions == result.dimensions:
        return value
    kept = [
        dim for dim in range(result.rank) if sizes[dim] == result.dimensions[dim] or sizes[dim] != 1
    ]
    squeezed = array(result.element_type, [sizes[d] for d in kept], [dynamic[d] for d in kept])
    if len(kept) < result.rank:
        value = body.emit("reshape", (value,), squeezed)
    return body.emit("broadcast", (value,), result, {"dimensions": integers(tuple(kept))})


@lowers("stablehlo.broadcast_in_dim", "chlo.broadcast_in_dim")
def broadcast_in_dim(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`broadcast`, with a `reshape` where dimensions of size 1 grow."""
    (operand,) = body.inputs(op)
    result = cast(ArrayShape, result_shape(op))
    return (spread(body, operand, result, numbers(op, "broadcast_dimensions")),)


@lowers("stablehlo.broadcast")
def broadcast(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`broadcast` of new leading dimensions."""
    (operand,) = body.inputs(op)
    result = cast(ArrayShape, result_shape(op))
    rank = array_shape(operand).rank
    dimensions = tuple(range(result.rank - rank, result.rank))
    return (body.emit("broadcast", (operand,), result, {"dimensions": integers(dimensions)}),)


@lowers("stablehlo.iota")
def iota(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`iota` of one dimension, and a `broadcast` of it into more."""
    result = cast(ArrayShape, result_shape(op))
    dim = number(op, "iota_dimension")
    if result.rank < 2:
        return (body.emit("iota", (), result, {"iota_dimension": integer(dim)}),)
    line = array(
        result.element_type, (result.dimensions[dim],), (result.is_dynamic_dimension(dim),)
    )
    value = body.emit("iota", (), line, {"iota_dimension": integer(0)})
    return (body.emit("broadcast", (value,), result, {"dimensions": integers((dim,))}),)


@lowers("stablehlo.reshape")
def reshape(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`reshape`."""
    return (body.emit("reshape", body.inputs(op), result_shape(op)),)


@lowers("stablehlo.bitcast_convert")
def bitcast_convert(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`bitcast-convert`."""
    (operand,) = body.inputs(op)
    return (body.emit("bitcast-convert", (operand,), laid_out(result_shape(op), operand)),)


@lowers("stablehlo.reverse")
def reverse(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`reverse`."""
    (operand,) = body.inputs(op)
    dimensions = integers(numbers(op, "dimensions"))
    shape = laid_out(result_shape(op), operand)
    return (body.emit("reverse", (operand,), shape, {"dimensions": dimensions}),)


@lowers("stablehlo.transpose")
def transpose(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`transpose`; the result's layout is the operand's, so that no byte moves."""
    (operand,) = body.inputs(op)
    return (transposed(body, operand, numbers(op, "permutation"), result_shape(op)),)


def transposed(
    body: Body, operand: SSAValue, permutation: Sequence[int], shape: object = None
) -> SSAValue:
    """`operand` with its dimensions permuted."""
    given = array_shape(operand)
    result = shape if isinstance(shape, ArrayShape) else None
    if result is None:
        result = array(
            given.element_type,
            [given.dimensions[d] for d in permutation],
            [given.is_dynamic_dimension(d) for d in permutation],
        )
    place = {dim: position for position, dim in enumerate(permutation)}
    assert given.layout is not None
    order = Layout(tuple(place[d] for d in given.layout.minor_to_major))
    return body.emit(
        "transpose",
        (operand,),
        result.with_layout(order),
        {"dimensions": integers(tuple(permutation))},
    )


@lowers("stablehlo.slice")
def slice_(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`slice`."""
    bounds = zip(
        numbers(op, "start_indices"),
        numbers(op, "limit_indices"),
        numbers(op, "strides"),
        strict=True,
    )
    value = SliceAttr(Slice(tuple(SliceDimension(*one) for one in bounds)))
    return (body.emit("slice", body.inputs(op), result_shape(op), {"slice": value}),)


@lowers("stablehlo.pad")
def pad(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`pad`."""
    edges = zip(
        numbers(op, "edge_padding_low"),
        numbers(op, "edge_padding_high"),
        numbers(op, "interior_padding"),
        strict=True,
    )
    value = PaddingAttr(Padding(tuple(PaddingDimension(*one) for one in edges)))
    return (body.emit("pad", body.inputs(op), result_shape(op), {"padding": value}),)


@lowers("stablehlo.concatenate")
def concatenate(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`concatenate`."""
    dimensions = integers((number(op, "dimension"),))
    properties = {"dimensions": dimensions}
    return (body.emit("concatenate", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.dynamic_slice")
def dynamic_slice(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`dynamic-slice`."""
    properties = {"dynamic_slice_sizes": integers(numbers(op, "slice_sizes"))}
    return (body.emit("dynamic-slice", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.dynamic_update_slice")
def dynamic_update_slice(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`dynamic-update-slice`."""
    operands = body.inputs(op)
    return (body.emit("dynamic-update-slice", operands, result_shape(op)),)


@lowers("stablehlo.get_dimension_size")
def get_dimension_size(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`get-dimension-size`."""
    properties = {"dimensions": integers((number(op, "dimension"),))}
    return (body.emit("get-dimension-size", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.set_dimension_size")
def set_dimension_size(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`set-dimension-size`."""
    operands = body.inputs(op)
    properties = {"dimensions": integers((number(op, "dimension"),))}
    return (body.emit("set-dimension-size", operands, result_shape(op), properties),)


@lowers("stablehlo.dynamic_reshape")
def dynamic_reshape(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`dynamic-reshape` of a bounded array: the sizes become operands of their own."""
    operand, sizes = body.inputs(op)
    result = cast(ArrayShape, result_shape(op))
    given = array_shape(sizes)
    parts: list[SSAValue] = []
    for dim in range(result.rank):
        one = SliceAttr(Slice((SliceDimension(dim, dim + 1),)))
        part = body.emit("slice", (sizes,), array(given.element_type, (1,)), {"slice": one})
        part = body.emit("reshape", (part,), array(given.element_type))
        if given.element_type.name != "s32":
            part = body.emit("convert", (part,), array("s32"))
        parts.append(part)
    return (body.emit("dynamic-reshape", (operand, *parts), result),)


@lowers("stablehlo.tuple")
def tuple_(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`tuple`."""
    return (body.emit("tuple", body.inputs(op), result_shape(op)),)


@lowers("stablehlo.get_tuple_element")
def get_tuple_element(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`get-tuple-element`."""
    (operand,) = body.inputs(op)
    return (body.element(operand, number(op, "index")),)


@lowers("stablehlo.optimization_barrier")
def optimization_barrier(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`opt-barrier`, of a tuple when there are several operands."""
    operands = body.inputs(op)
    if len(operands) == 1:
        return (body.emit("opt-barrier", operands, joined_shape(op)),)
    whole = body.tuple(operands)
    value = body.emit("opt-barrier", (whole,), shape_of(whole.type))
    return body.split(value, len(operands))
