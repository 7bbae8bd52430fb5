"""The ops of CHLO that are HLO instructions: `top_k`, `ragged_dot`, `scan` (`erf` is in `elementwise`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    attribute,
    boolean,
    flag,
    integer,
    integers,
    number,
    numbers_of,
    precisions,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    Body,
    calls,
    joined_shape,
    lowers,
    result_shape,
)
from mlirhlo.rewrites.stablehlo_to_hlo.ops.linear_algebra import dot_numbers
from mlirhlo.rewrites.stablehlo_to_hlo.ops.reduction import results_of


@lowers("chlo.top_k")
def top_k(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`topk`."""
    properties = {"k": integer(number(op, "k")), "largest": boolean(True)}
    value = body.emit("topk", body.inputs(op), joined_shape(op), properties)
    return body.split(value, 2)


@lowers("chlo.ragged_dot")
def ragged_dot(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`ragged-dot`."""
    dims = cast(Any, attribute(op, "ragged_dot_dimension_numbers")).data
    properties = dot_numbers(dims)
    for key, values in (
        ("lhs_ragged_dims", dims.lhs_ragged_dimensions),
        ("rhs_group_dims", dims.rhs_group_dimensions),
    ):
        if values:
            properties[key] = integers(tuple(values))
    if (found := precisions(op)) is not None:
        properties["operand_precision"] = found
    return (body.emit("ragged-dot", body.inputs(op), result_shape(op), properties),)


@lowers("chlo.scan")
def scan(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`scan`; the initial values are the last operands, the last carries the last results."""
    region = body.exporter.region(op, op.regions[0])
    segments = numbers_of(op.properties["operandSegmentSizes"])
    properties: dict[str, Attribute] = {
        "dimensions": integers((number(op, "dimension"),)),
        "num_carries": integer(segments[1]),
        "to_apply": calls(region),
    }
    if flag(op, "is_reverse"):
        properties["is_reverse"] = boolean(True)
    if attribute(op, "is_associative") is not None:
        properties["is_associative"] = boolean(flag(op, "is_associative"))
    value = body.emit("scan", body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)
