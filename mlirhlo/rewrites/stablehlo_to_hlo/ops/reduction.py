"""Ops that apply a computation to elements: reductions, windows, sort, map, scan."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import WindowAttr
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    boolean,
    flag,
    integers,
    number,
    numbers,
    window,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    Body,
    calls,
    joined_shape,
    lowers,
    result_shape,
)

_REDUCE_WINDOW_KEYS = {
    "strides": "window_strides",
    "base": "base_dilations",
    "dilations": "window_dilations",
}


def results_of(op: Operation, body: Body, value: SSAValue) -> Sequence[SSAValue]:
    """The results of `op`, out of the tuple its instruction gives."""
    count = len(op.results)
    return (value,) if count == 1 else body.split(value, count)


@lowers("stablehlo.reduce")
def reduce(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`reduce`."""
    region = body.exporter.region(op, op.regions[0])
    properties: dict[str, Attribute] = {
        "dimensions": integers(numbers(op, "dimensions")),
        "to_apply": calls(region),
    }
    value = body.emit("reduce", body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.reduce_window")
def reduce_window(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`reduce-window`."""
    region = body.exporter.region(op, op.regions[0])
    sizes = numbers(op, "window_dimensions")
    properties: dict[str, Attribute] = {
        "window": WindowAttr(window(op, sizes, _REDUCE_WINDOW_KEYS)),
        "to_apply": calls(region),
    }
    value = body.emit("reduce-window", body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.select_and_scatter")
def select_and_scatter(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`select-and-scatter`."""
    select = body.exporter.region(op, op.regions[0])
    scatter = body.exporter.region(op, op.regions[1])
    operand_type = op.operands[0].type
    rank = len(getattr(getattr(operand_type, "shape", ()), "data", ()))
    sizes = numbers(op, "window_dimensions", (1,) * rank)
    properties: dict[str, Attribute] = {
        "window": WindowAttr(window(op, sizes, {"strides": "window_strides"})),
        "select": calls(select),
        "scatter": calls(scatter),
    }
    return (body.emit("select-and-scatter", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.map")
def map_(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`map`."""
    region = body.exporter.region(op, op.regions[0], single=True)
    properties: dict[str, Attribute] = {
        "dimensions": integers(numbers(op, "dimensions")),
        "to_apply": calls(region),
    }
    return (body.emit("map", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.sort")
def sort(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`sort`; the last dimension unless one is named."""
    region = body.exporter.region(op, op.regions[0], single=True)
    rank = len(getattr(getattr(op.operands[0].type, "shape", ()), "data", ()))
    dimension = number(op, "dimension", -1)
    properties: dict[str, Attribute] = {
        "dimensions": integers((dimension + rank if dimension < 0 else dimension,)),
    }
    if flag(op, "is_stable"):
        properties["is_stable"] = boolean(True)
    properties["to_apply"] = calls(region)
    value = body.emit("sort", body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)
