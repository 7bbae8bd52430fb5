"""Instructions that apply a computation to elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of, ints
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import boolean, integer, integers, window
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.reduction import (
        MapOp,
        ReduceOp,
        ReduceWindowOp,
        SelectAndScatterOp,
        SortOp,
    )


def window_of(op: Instruction) -> Window:
    """The window of an instruction; of size 1 everywhere when it has none."""
    found = op.properties.get("window")
    if found is None:
        shape = op.input_shapes[0]
        rank = shape.rank if isinstance(shape, ArrayShape) else 0
        return Window((WindowDimension(),) * rank)
    return cast(Window, found.data)  # type: ignore[attr-defined]


@converts("map")
def map_(op: Instruction, scope: Scope) -> Tree:
    """`map`."""
    shape = op.shape
    rank = shape.rank if isinstance(shape, ArrayShape) else 0
    properties: dict[str, Attribute] = {
        "dimensions": integers(ints(op.properties.get("dimensions")) or tuple(range(rank)))
    }
    region = scope.importer.region(cast("MapOp", op).to_apply)
    return scope.many("stablehlo.map", scope.inputs(op), shape, properties, (region,))


@converts("reduce")
def reduce(op: Instruction, scope: Scope) -> Tree:
    """`reduce`."""
    properties: dict[str, Attribute] = {
        "dimensions": integers(ints(op.properties.get("dimensions")))
    }
    region = scope.importer.region(cast("ReduceOp", op).to_apply)
    return scope.many("stablehlo.reduce", scope.inputs(op), op.shape, properties, (region,))


@converts("reduce-window")
def reduce_window(op: Instruction, scope: Scope) -> Tree:
    """`reduce_window`."""
    found = window_of(op)
    if any(d.window_reversal for d in found.dimensions):
        return scope.importer.fallback(op, scope)
    properties = window(
        found,
        {
            "size": "window_dimensions",
            "stride": "window_strides",
            "base": "base_dilations",
            "dilation": "window_dilations",
            "padding": "padding",
        },
    )
    region = scope.importer.region(cast("ReduceWindowOp", op).to_apply)
    return scope.many("stablehlo.reduce_window", scope.inputs(op), op.shape, properties, (region,))


@converts("select-and-scatter")
def select_and_scatter(op: Instruction, scope: Scope) -> Tree:
    """`select_and_scatter`."""
    given = cast("SelectAndScatterOp", op)
    found = window_of(op)
    if any(
        d.window_reversal or d.base_dilation != 1 or d.window_dilation != 1
        for d in found.dimensions
    ):
        return scope.importer.fallback(op, scope)
    properties = window(
        found, {"size": "window_dimensions", "stride": "window_strides", "padding": "padding"}
    )
    regions = (scope.importer.region(given.select), scope.importer.region(given.scatter))
    return scope.one(
        "stablehlo.select_and_scatter", scope.inputs(op), op.shape, properties, regions
    )


@converts("sort")
def sort(op: Instruction, scope: Scope) -> Tree:
    """`sort`."""
    properties: dict[str, Attribute] = {
        "dimension": integer(ints(op.properties["dimensions"])[0]),
        "is_stable": boolean(bool_of(op.properties.get("is_stable"))),
    }
    region = scope.importer.region(cast("SortOp", op).to_apply)
    return scope.many("stablehlo.sort", scope.inputs(op), op.shape, properties, (region,))


@converts("topk")
def topk(op: Instruction, scope: Scope) -> Tree:
    """`chlo.top_k`; the smallest elements are a marked custom call."""
    shape = op.shape
    if (
        not bool_of(op.properties.get("largest"), True)
        or not isinstance(shape, TupleShape)
        or "is_stable" in op.properties
        or any(isinstance(s, ArrayShape) and s.is_dynamic for s in shape.elements)
    ):
        return scope.importer.fallback(op, scope)
    properties: dict[str, Attribute] = {"k": integer(int_of(op.properties["k"]))}
    return scope.many("chlo.top_k", scope.inputs(op), shape, properties)
