"""Shardy's shardings and ops in HLO: tiled shardings, `xla.sdy.*` attributes and custom calls.

What Shardy says and HLO cannot is kept as text in frontend attributes, from which XLA's importer
restores it. Names and forms as jaxlib 0.10.2 writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import boolean, string, symbol
from mlirhlo.dialects.hlo.attributes.sharding import (
    DimensionSharding,
    NamedSharding,
    Sharding,
    ShardingAttr,
)
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.sdy.attributes import MeshAttr
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    CONSTANTS,
    Body,
    lowers,
    result_shape,
    result_shapes,
)
from mlirhlo.rewrites.stablehlo_to_hlo.frontend_attributes import frontend
from mlirhlo.rewrites.stablehlo_to_hlo.mesh import hlo_axes, hlo_mesh, named_mesh
from mlirhlo.rewrites.stablehlo_to_hlo.types import hlo_shape

SHARDING = "xla.sdy.sharding"


def tensor_sharding(value: Any, module: ModuleOp, at: Operation) -> Sharding:
    """HLO's tiled sharding of a Shardy sharding of one tensor."""
    mesh = value.mesh_or_ref
    if isinstance(mesh, str):
        found = named_mesh(mesh, module, at)
    else:
        found = hlo_mesh(MeshAttr(mesh), module, at)
    named = NamedSharding(
        found,
        tuple(DimensionSharding(hlo_axes(d.axes), d.is_closed) for d in value.dim_shardings),
        (),
        hlo_axes(value.unreduced_axes),
    )
    return Sharding.of_mesh(named).to_v2()


def result_sharding(value: SSAValue, attributes: Mapping[str, Attribute], body: Body) -> SSAValue:
    """A result of the entry, marked with the Shardy sharding it shall have."""
    shardy = attributes.get("sdy.sharding")
    if shardy is None:
        return value
    spelled = f"#sdy.sharding_per_value<[{cast(Any, shardy).data}]>"
    body.common = {}
    result = _marker(
        body, "xla.sdy.FuncResultSharding", [value], shape_of(value.type), {SHARDING: spelled}
    )
    body.base, body.common = None, {}
    return result


def _marker(
    body: Body,
    target: str,
    operands: Sequence[SSAValue],
    shape: Shape,
    entries: Mapping[str, str],
    properties: Mapping[str, Attribute] | None = None,
) -> SSAValue:
    own: dict[str, Attribute] = {
        "custom_call_target": string(target),
        "custom_call_has_side_effect": boolean(True),
        **(properties or {}),
    }
    before = body.common
    if entries:
        frontend(body, entries)
    value = body.emit("custom-call", operands, shape, own)
    body.common = before
    return value


def read_shardy(op: Operation, body: Body) -> None:
    """`sdy.sharding` of any op, as a frontend attribute."""
    found = op.attributes.get("sdy.sharding")
    if found is not None:
        if op.name not in CONSTANTS:
            frontend(body, {SHARDING: str(found)})
        value = cast(Any, found).data
        given = getattr(value, "shardings", (value,))
        parts = [tensor_sharding(one, body.exporter.module, op) for one in given]
        if parts:
            sharding = parts[0] if len(parts) == 1 else Sharding.tuple_of(parts)
            body.common = {**body.common, "sharding": ShardingAttr(sharding)}
    rule = op.attributes.get("sdy.sharding_rule")
    if rule is not None:
        frontend(body, {"xla.sdy.sharding_rule": str(rule)})


@lowers("sdy.manual_computation")
def manual_computation(op: Operation, body: Body) -> Sequence[SSAValue]:
    """A call of the body between custom calls that change from whole to local shapes and back."""
    exporter = body.exporter
    axes = f"#sdy<manual_axes{cast(Any, op.properties['manual_axes']).data}>"
    block = op.regions[0].block
    operands = body.inputs(op)
    local: list[SSAValue] = []
    if operands:
        shapes = [hlo_shape(a.type) for a in block.args]
        entries = {
            "xla.sdy.in_shardings": str(op.properties["in_shardings"]),
            "xla.sdy.manual_axes": axes,
        }
        shape = shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))
        value = _marker(body, "xla.sdy.GlobalToLocalShape", operands, shape, entries)
        local = [value] if len(shapes) == 1 else body.split(value, len(shapes))
    base, common = body.base, body.common
    inside = Body(exporter, "xla.sdy.manual_computation_body")
    for index, argument in enumerate(block.args):
        inside.at(argument.location)
        inside.base = inside.base or base
        inside.values[argument] = inside.parameter(index, hlo_shape(argument.type), f"Arg_{index}")
    inside.base, inside.common = None, {}
    results = inside.lower_block(block)
    inside.base, inside.common = None, {}
    root = results[0] if len(results) == 1 else inside.tuple(results)
    computation = inside.finish(root)
    body.base, body.common = base, common
    frontend(body, {"inlineable": "false"})
    called = body.emit(
        "call",
        local,
        computation.root.shape,
        {"to_apply": symbol(computation.computation_name)},
    )
    parts = [called] if len(results) == 1 else body.split(called, len(results))
    body.common = common
    if not op.results:
        return ()
    entries = {
        "xla.sdy.manual_axes": axes,
        "xla.sdy.out_shardings": str(op.properties["out_shardings"]),
    }
    whole = result_shapes(op)
    shape = whole[0] if len(whole) == 1 else TupleShape(tuple(whole))
    value = _marker(body, "xla.sdy.LocalToGlobalShape", parts, shape, entries)
    return [value] if len(whole) == 1 else body.split(value, len(whole))


@lowers("sdy.sharding_constraint")
def sharding_constraint(op: Operation, body: Body) -> Sequence[SSAValue]:
    """A custom call `Sharding`."""
    sharding = cast(Any, op.properties["sharding"]).data
    (operand,) = body.inputs(op)
    entries = {SHARDING: f"#sdy.sharding_per_value<[{sharding}]>"}
    properties = {"custom_call_target": string("Sharding")}
    found = tensor_sharding(sharding, body.exporter.module, op)
    frontend(body, entries)
    body.common = {**body.common, "sharding": ShardingAttr(found)}
    return (body.emit("custom-call", (operand,), result_shape(op), properties),)


@lowers("sdy.sharding_group")
def sharding_group(op: Operation, body: Body) -> Sequence[SSAValue]:
    """A custom call `xla.sdy.ShardingGroup`, which gives nothing."""
    entries = {"xla.sdy.sharding_group_id": str(op.properties["group_id"])}
    _marker(body, "xla.sdy.ShardingGroup", body.inputs(op), TupleShape(()), entries)
    return ()


@lowers("sdy.propagation_barrier")
def propagation_barrier(op: Operation, body: Body) -> Sequence[SSAValue]:
    """A custom call `xla.sdy.PropagationBarrier`."""
    entries = {"xla.sdy.allowed_direction": str(op.properties["allowed_direction"])}
    target = "xla.sdy.PropagationBarrier"
    return (_marker(body, target, body.inputs(op), result_shape(op), entries),)
