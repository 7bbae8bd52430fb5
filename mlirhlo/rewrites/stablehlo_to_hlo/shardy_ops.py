"""Shardy's ops that a partitioner leaves or drops: moves between shardings, edges, named regions.

Seen from the whole program, the value of a tensor stays when its sharding changes: such ops are
copies that carry the new sharding, as XLA exports `sdy.reshard`. Edges say nothing more by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.quick import replace
from mlirhlo.dialects.stablehlo import OP_CLASSES
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, lowers, result_shape
from mlirhlo.rewrites.stablehlo_to_hlo.frontend_attributes import frontend
from mlirhlo.rewrites.stablehlo_to_hlo.shardy import SHARDING, tensor_sharding
from mlirhlo.rewrites.stablehlo_to_hlo.types import hlo_shape


def plain_constants(module: ModuleOp) -> None:
    """Makes constants of Shardy, which differ in not being shared, StableHLO's in place."""
    for op in [op for op in module.walk() if op.name == "sdy.constant"]:
        new = OP_CLASSES["stablehlo.constant"].create(
            result_types=[op.results[0].type],
            properties={"value": op.properties["value"]},
            attributes=dict(op.attributes),
        )
        new.location = op.location
        block = op.parent_block()
        assert block is not None
        block.insert_op_before(new, op)
        replace(op.results[0], new.results[0])
        block.erase_op(op)


@lowers(
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.reshard",
    "sdy.sharded_to_unreduced",
)
def moved(op: Operation, body: Body) -> Sequence[SSAValue]:
    """A copy with the new sharding."""
    found = op.properties.get("sharding") or op.properties["out_sharding"]
    sharding = cast(Any, found).data
    (operand,) = body.inputs(op)
    frontend(body, {SHARDING: f"#sdy.sharding_per_value<[{sharding}]>"})
    tiled = tensor_sharding(sharding, body.exporter.module, op)
    body.common = {**body.common, "sharding": ShardingAttr(tiled)}
    return (body.emit("copy", (operand,), result_shape(op)),)


@lowers("sdy.data_flow_edge", "sdy.func_data_flow_edge")
def edge(op: Operation, body: Body) -> Sequence[SSAValue]:
    """Its operand."""
    return body.inputs(op)


@lowers("sdy.named_computation")
def named_computation(op: Operation, body: Body) -> Sequence[SSAValue]:
    """A call of a computation of that name."""
    exporter = body.exporter
    name = op.properties["name"]
    assert isinstance(name, StringAttr)
    operands = body.inputs(op)
    base, common = body.base, body.common
    inside = Body(exporter, legal_name(name.data))
    block = op.regions[0].block
    for index, argument in enumerate(block.args):
        inside.at(argument.location)
        inside.values[argument] = inside.parameter(index, hlo_shape(argument.type), f"Arg_{index}")
    inside.base, inside.common = None, {}
    results = inside.lower_block(block)
    inside.base, inside.common = None, {}
    root = results[0] if len(results) == 1 else inside.tuple(results)
    computation = inside.finish(root)
    body.base, body.common = base, common
    properties = {"to_apply": symbol(computation.computation_name)}
    called = body.emit("call", operands, computation.root.shape, properties)
    return (called,) if len(results) == 1 else body.split(called, len(results))
