"""Reductions on tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mlirhlo.dialects.hlo.attributes.base import integers, symbol
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowAttr
from mlirhlo.dialects.hlo.ops import AllReduceOp, ReduceOp, ReduceScatterOp, ReduceWindowOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.spmd.emit import Value, array_of
from mlirhlo.rewrites.spmd.factors import leaves, sizes_of
from mlirhlo.rewrites.spmd.halo import fetch
from mlirhlo.rewrites.spmd.part import Part, mask
from mlirhlo.rewrites.spmd.reducers import combination, identity, is_identity, opcode_of
from mlirhlo.rewrites.spmd.tiles.local import Leaf, Work, handles, plain


@handles("reduce")
def reduce(work: Work) -> list[Leaf]:
    """A reduce of tiles, then of what the devices found.

    Sums, products, extremes and bits become partial results, to be joined where they are needed. Anything
    else (an argmax) is gathered, one element a device, and reduced again by the same computation.
    """
    op = work.op
    assert isinstance(op, ReduceOp)
    if not work.partial:
        return plain(work)
    count = len(op.inputs) // 2
    opcode = opcode_of(work.computations[op.to_apply]) if count == 1 else None
    type_ = cast(ArrayShape, leaves(op.shape)[0]).element_type
    neutral = identity(opcode, type_) if opcode is not None else None
    inits = [work.value(count + k) for k in range(count)]
    fills: list[Value] = inits
    if opcode is not None and neutral is not None and not is_identity(inits[0], opcode, type_):
        fills = [work.emit.constant(neutral, type_)]
    operands: list[Value] = []
    for k in range(count):
        part = work.part(k)
        for dim in op.dimensions:
            part = mask(part, dim, fills[k], work.emit)
        operands.append(part.value)
    value = work.emit.like(op, (*operands, *fills), work.local_result(), op.properties)
    if opcode is None or neutral is None:
        return _again(work, op, value, inits)
    partial = work.parts(value, combination(work, opcode, type_))
    if is_identity(inits[0], opcode, type_):
        return partial
    part = cast(Part, partial[0])
    done = replace(part, partial=(), combine="", known=[])
    joined = work.emit.all_reduce(part.value, work.grid, part.partial, part.combine)
    wide = work.emit.broadcast(inits[0], array_of(joined))
    return [replace(done, value=work.emit.binary(opcode, wide, joined))]


def _again(work: Work, op: ReduceOp, value: Value, inits: list[Value]) -> list[Leaf]:
    """Gathers the results of all devices along a new first dimension, and reduces that."""
    emit = work.emit
    tuple_shape = work.local_result()
    found = emit.elements(value) if isinstance(tuple_shape, TupleShape) else (value,)
    rows: list[Value] = []
    for each in found:
        shape = array_of(each)
        row = emit.reshape(each, (1, *shape.dimensions))
        rows.append(emit.all_gather(row, work.grid, work.partial, 0))
    properties = {**op.properties, "dimensions": integers((0,))}
    properties.pop("metadata", None)
    result = emit.make("reduce", (*rows, *inits), tuple_shape, properties)
    return work.parts(result)


@handles("reduce-window", shifts=True)
def reduce_window(work: Work) -> list[Leaf]:
    """Windows on tiles: along cut dimensions each device fetches what its windows see."""
    op = work.op
    assert isinstance(op, ReduceWindowOp)
    window = op.window
    count = len(op.inputs) // 2
    cut = {d for d, axes in enumerate(work.placement(work.factors.operands[0]).dims) if axes}
    if not cut:
        return plain(work)
    dimensions = list(window.dimensions)
    result = sizes_of(leaves(op.shape)[0])
    inits = [work.value(count + k) for k in range(count)]
    operands: list[Value] = []
    for k in range(count):
        part = work.part(k)
        for dim in sorted(cut):
            (factor,) = work.factors.operands[k][dim]
            if factor not in work.factors.shifted:
                continue
            w = window.dimensions[dim]
            tile = -(-result[dim] // part.placement.tiles(dim))
            extent = (tile - 1) * w.stride + (w.size - 1) * w.window_dilation + 1
            step, low = tile * w.stride, w.padding_low
            value = fetch(part, dim, -low, step, extent, inits[k], work.emit)
            part = replace(part, value=value, known=[])
            dimensions[dim] = replace(w, padding_low=0, padding_high=0)
        operands.append(part.value)
    properties = {**op.properties, "window": WindowAttr(Window(tuple(dimensions)))}
    value = work.emit.like(op, (*operands, *inits), work.local_result(), properties)
    return work.parts(value)


@handles("all-reduce", "reduce-scatter")
def manual_reduction(work: Work) -> list[Leaf]:
    """A reduction that the program itself asks for; equal computations are one."""
    op = work.op
    assert isinstance(op, AllReduceOp | ReduceScatterOp)
    opcode = opcode_of(work.computations[op.to_apply])
    shape = leaves(op.shape)[0]
    if opcode is None or not isinstance(shape, ArrayShape):
        return plain(work)
    name = work.emit.module.binary(opcode, shape.element_type)
    return plain(work, {**op.properties, "to_apply": symbol(name)})
