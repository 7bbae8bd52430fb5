"""Control flow: regions become computations, values they use from outside become parameters.

XLA's importer gives a region one parameter: the value itself when there is one, else a tuple of
all (`arg_tuple`; `arg_empty_tuple` when there is none). Constants are made again inside.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import attribute, boolean, symbol_name
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    Body,
    calls,
    captured,
    is_constant,
    location_of,
    lowers,
)
from mlirhlo.rewrites.stablehlo_to_hlo.ops.reduction import results_of
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

with LATE:
    from mlirhlo.rewrites.stablehlo_to_hlo import frontend_attributes


def _tupled(values: Sequence[SSAValue], body: Body) -> SSAValue:
    return values[0] if len(values) == 1 else body.tuple(values)


def _parts(body: Body, shapes: Sequence[Shape]) -> list[SSAValue]:
    """The values of the one parameter of a region's computation."""
    if len(shapes) == 1:
        return [body.parameter(0, shapes[0], "Arg_")]
    base = "arg_tuple" if shapes else "arg_empty_tuple"
    whole = body.parameter(0, TupleShape(tuple(shapes)), base)
    return [body.element(whole, index) for index in range(len(shapes))]


def _outside(regions: Sequence[Region]) -> list[SSAValue]:
    """Values that regions use from outside, but for constants."""
    return [v for v in captured(regions) if not is_constant(v)]


def branch(region: Region, body: Body) -> tuple[ComputationOp, SSAValue]:
    """The computation of a branch, and the operand it takes."""
    exporter = body.exporter
    passed = _outside((region,))
    inside = Body(exporter, exporter.region_name())
    shapes = [shape_of(body.value(v).type) for v in passed]
    if len(passed) == 1:
        inside.at(location_of(passed[0]))
    else:
        inside.base, inside.common = None, {}
    for value, part in zip(passed, _parts(inside, shapes), strict=True):
        inside.values[value] = part
    inside.base, inside.common = None, {}
    exporter.sink((region,), inside)
    results = inside.lower_block(region.block)
    inside.base, inside.common = None, {}
    computation = inside.finish(_tupled(results, inside))
    return computation, _tupled([body.value(v) for v in passed], body)


@lowers("stablehlo.if")
def if_(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`conditional` on a pred."""
    (predicate,) = body.inputs(op)
    base, common = body.base, body.common
    found = [branch(region, body) for region in op.regions]
    body.base, body.common = base, common
    properties = {
        "true_computation": calls(found[0][0]),
        "false_computation": calls(found[1][0]),
    }
    operands = (predicate, *(operand for _, operand in found))
    value = body.emit("conditional", operands, found[0][0].root.shape, properties)
    return results_of(op, body, value)


@lowers("stablehlo.case")
def case(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`conditional` on an index; a lone branch is called."""
    (index,) = body.inputs(op)
    found = [branch(region, body) for region in op.regions]
    properties: dict[str, Attribute] = {
        "branch_computations": ArrayAttr([calls(computation) for computation, _ in found])
    }
    operands = (index, *(operand for _, operand in found))
    value = body.emit("conditional", operands, found[0][0].root.shape, properties)
    return results_of(op, body, value)


@lowers("stablehlo.while")
def while_(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`while` over a tuple of the operands and of the values its regions use from outside."""
    exporter = body.exporter
    condition, loop = op.regions
    passed = _outside((condition, loop))
    operands = [*body.inputs(op), *(body.value(v) for v in passed)]
    shapes = [shape_of(v.type) for v in operands]
    computations: list[ComputationOp] = []
    for region in (loop, condition):
        inside = Body(exporter, exporter.region_name())
        inside.base, inside.common = body.base, dict(body.common)
        parts = _parts(inside, shapes)
        for value, part in zip((*region.block.args, *passed), parts, strict=True):
            inside.values[value] = part
        exporter.sink((region,), inside)
        results = inside.lower_block(region.block)
        if region is loop:
            results += parts[len(region.block.args) :]
        inside.base, inside.common = None, {}
        computations.append(
            inside.finish(results[0] if region is condition else _tupled(results, inside))
        )
    operand = _tupled(operands, body)
    properties = {"condition": calls(computations[1]), "body": calls(computations[0])}
    value = body.emit("while", (operand,), computations[0].root.shape, properties)
    if len(operands) == 1:
        return (value,)
    return body.split(value, len(op.results))


@lowers("func.call")
def call(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`call`."""
    name = symbol_name(attribute(op, "callee"))
    base, common = body.base, body.common
    computation = body.exporter.function(name, op)
    body.base, body.common = base, common
    inline = attribute(op, "mhlo.is_composite") is not None
    properties: dict[str, Attribute] = {"to_apply": calls(computation)}
    if inline:
        properties["is_composite"] = boolean(True)
    value = body.emit("call", body.inputs(op), computation.root.shape, properties)
    return results_of(op, body, value)


@lowers("stablehlo.composite")
def composite(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`call` of the decomposition, marked as a composite with its name, attributes and version."""
    name = symbol_name(attribute(op, "decomposition"))
    function = body.exporter.functions.get(name)
    if function is None:
        raise problem("HLO0424", op, f"there is no function @{name}", "define the decomposition")
    base, common = body.base, body.common
    computation = body.exporter.fresh(function)
    body.base, body.common = base, common
    attributes = attribute(op, "composite_attributes")
    version = attribute(op, "version")
    entries = {
        "composite.attributes": "{}"
        if attributes is None
        else frontend_attributes.spell(attributes),
        "composite.name": _text(attribute(op, "name")),
        "composite.version": "0" if version is None else str(version.value.data),  # type: ignore[attr-defined]
    }
    frontend_attributes.frontend(body, entries)
    properties: dict[str, Attribute] = {
        "to_apply": calls(computation),
        "is_composite": boolean(True),
    }
    value = body.emit("call", body.inputs(op), computation.root.shape, properties)
    return results_of(op, body, value)


def _text(found: Attribute | None) -> str:
    return str(getattr(found, "data", ""))
