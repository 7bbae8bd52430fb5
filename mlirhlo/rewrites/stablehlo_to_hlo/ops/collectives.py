"""Collectives: channels, replica groups, and tuples where several operands are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.groups import MeshGroups, ReplicaGroups, ReplicaGroupsAttr
from mlirhlo.dialects.hlo.attributes.kinds import IntegerListsAttr
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, array
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    attribute,
    boolean,
    flag,
    integers,
    number,
    numbers_of,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import (
    Body,
    calls,
    joined_shape,
    lowers,
    result_shape,
)
from mlirhlo.rewrites.stablehlo_to_hlo.mesh import hlo_axes, hlo_mesh
from mlirhlo.rewrites.stablehlo_to_hlo.ops.data_movement import array_shape, transposed
from mlirhlo.rewrites.stablehlo_to_hlo.ops.reduction import results_of
from mlirhlo.rewrites.stablehlo_to_hlo.ops.tokens import channel
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem


def groups_of(op: Operation, body: Body) -> ReplicaGroupsAttr:
    """`replica_groups`: rows of a matrix (-1 fills short ones), or axes of a mesh."""
    found = attribute(op, "replica_groups")
    if found is None:
        return ReplicaGroupsAttr(ReplicaGroups())
    if found.name == "stablehlo.replica_group_mesh_axes":
        data = cast(Any, found).data
        mesh = hlo_mesh(data.mesh, body.exporter.module, op)
        return ReplicaGroupsAttr(ReplicaGroups(MeshGroups(mesh, hlo_axes(data.axes))))
    flat = numbers_of(found)
    shape = [d.data for d in cast(Any, found).type.shape.data]
    width = shape[-1] if shape and shape[-1] else 1
    if DYNAMIC_INDEX in shape or len(shape) != 2:
        raise problem("HLO0426", op, "replica_groups is not a matrix of numbers")
    rows = [flat[i : i + width] for i in range(0, len(flat), width)]
    return ReplicaGroupsAttr(ReplicaGroups.of([[n for n in row if n >= 0] for row in rows]))


def _channel_and_groups(op: Operation, body: Body) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {**channel(op), "replica_groups": groups_of(op, body)}
    if flag(op, "use_global_device_ids"):
        found["use_global_device_ids"] = boolean(True)
    return found


def _joined(operands: Sequence[SSAValue], body: Body) -> list[SSAValue]:
    """Several operands, as the importer passes them: through a tuple."""
    if len(operands) == 1:
        return list(operands)
    return body.split(body.tuple(operands), len(operands))


@lowers("stablehlo.all_reduce")
def all_reduce(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`all-reduce`."""
    region = body.exporter.region(op, op.regions[0])
    properties = {**_channel_and_groups(op, body), "to_apply": calls(region)}
    value = body.emit("all-reduce", _joined(body.inputs(op), body), joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.cross-replica-sum")
def cross_replica_sum(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`all-reduce` with an addition."""
    operands = body.inputs(op)
    region = _sum(array_shape(operands[0]), body)
    properties = {"replica_groups": groups_of(op, body), "to_apply": calls(region)}
    return (body.emit("all-reduce", operands, result_shape(op), properties),)


def _sum(shape: ArrayShape, body: Body) -> ComputationOp:
    inside = Body(body.exporter, "sum")
    scalar = array(shape.element_type)
    both = (inside.parameter(0, scalar, "x"), inside.parameter(1, scalar, "y"))
    opcode = "or" if shape.element_type.name == "pred" else "add"
    return inside.finish(inside.emit(opcode, both, scalar))


@lowers("stablehlo.all_gather")
def all_gather(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`all-gather`."""
    properties = {
        **_channel_and_groups(op, body),
        "dimensions": integers((number(op, "all_gather_dim"),)),
    }
    value = body.emit("all-gather", _joined(body.inputs(op), body), joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.reduce_scatter")
def reduce_scatter(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`reduce-scatter`."""
    region = body.exporter.region(op, op.regions[0])
    properties = {
        **_channel_and_groups(op, body),
        "dimensions": integers((number(op, "scatter_dimension"),)),
        "to_apply": calls(region),
    }
    operands = _joined(body.inputs(op), body)
    value = body.emit("reduce-scatter", operands, joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.all_to_all")
def all_to_all(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`all-to-all`; when parts are joined along another dimension, that one is moved there after."""
    operands = body.inputs(op)
    properties = {**channel(op), "replica_groups": groups_of(op, body)}
    if len(operands) > 1:
        shapes = tuple(shape_of(v.type) for v in operands)
        value = body.emit("all-to-all", operands, TupleShape(shapes), properties)
        return body.split(value, len(operands))
    split, concat = number(op, "split_dimension"), number(op, "concat_dimension")
    count = number(op, "split_count")
    given = array_shape(operands[0])
    properties["dimensions"] = integers((split,))
    value = body.emit("all-to-all", operands, given, properties)
    if split == concat:
        return (value,)
    # XLA's builder leaves this unused constant behind.
    count_shape = array("s32", (1,))
    literal = Literal.from_text(count_shape, f"{{{count}}}")
    body.emit("constant", (), count_shape, {"literal": LiteralAttr(literal)})
    sizes: list[int] = []
    order: list[int] = []
    for dim, size in enumerate(given.dimensions):
        sizes += [count, size // count] if dim == split else [size]
        if dim == concat:
            order.append(split)
        order.append(dim + 1 if dim >= split else dim)
    value = body.emit("reshape", (value,), array(given.element_type, sizes))
    value = transposed(body, value, order)
    return (body.emit("reshape", (value,), result_shape(op)),)


@lowers("stablehlo.collective_permute")
def collective_permute(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`collective-permute`."""
    found = attribute(op, "source_target_pairs")
    flat = () if found is None else numbers_of(found)
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    properties: dict[str, Attribute] = {
        **channel(op),
        "source_target_pairs": IntegerListsAttr.of(pairs),
    }
    value = body.emit("collective-permute", body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.collective_broadcast")
def collective_broadcast(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`collective-broadcast`."""
    properties = {**channel(op), "replica_groups": groups_of(op, body)}
    value = body.emit("collective-broadcast", body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)


@lowers("stablehlo.replica_id", "stablehlo.partition_id")
def device_id(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`replica-id` and `partition-id`."""
    opcode = op.name.removeprefix("stablehlo.").replace("_", "-")
    return (body.emit(opcode, (), result_shape(op)),)
