"""Collectives, and random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import bool_of, ints, str_of
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, array
from mlirhlo.dialects.stablehlo.attributes import RngAlgorithmAttr, RngDistributionAttr
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import integer, matrix
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.tokens import channel, started

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.collectives import AllReduceOp, CollectivePermuteOp


def groups(op: Instruction) -> Attribute:
    """`replica_groups` as a matrix."""
    found = op.properties.get("replica_groups")
    value = ReplicaGroups() if found is None else cast(ReplicaGroups, found.data)  # type: ignore[attr-defined]
    return matrix(value.groups())


def _joined(op: Instruction) -> dict[str, Attribute]:
    properties = {"replica_groups": groups(op), **channel(op, 0)}
    if bool_of(op.properties.get("use_global_device_ids")):
        properties["use_global_device_ids"] = UnitAttr()
    return properties


def _result(op: Instruction) -> Shape:
    """Shape of what a collective yields, which a start has beside its operands."""
    shape = op.shape
    if op.opcode.is_async_start and op.opcode.name != "all-reduce-start":
        return cast(TupleShape, shape).elements[1]
    return shape


@converts("all-reduce", "all-reduce-start")
def all_reduce(op: Instruction, scope: Scope) -> Tree:
    """`all_reduce`."""
    region = scope.importer.region(cast("AllReduceOp", op).to_apply)
    operands = scope.leaves(op)
    return scope.many("stablehlo.all_reduce", operands, op.shape, _joined(op), (region,))


@converts("all-gather", "all-gather-start")
def all_gather(op: Instruction, scope: Scope) -> Tree:
    """`all_gather`."""
    properties = {**_joined(op), "all_gather_dim": integer(ints(op.properties["dimensions"])[0])}
    found = scope.many("stablehlo.all_gather", scope.leaves(op), _result(op), properties)
    return started(op, scope, found) if op.opcode.is_async_start else found


@converts("reduce-scatter")
def reduce_scatter(op: Instruction, scope: Scope) -> Tree:
    """`reduce_scatter`; of several operands a marked custom call."""
    if len(op.inputs) != 1 or isinstance(op.shape, TupleShape):
        return scope.importer.fallback(op, scope)
    properties = {**_joined(op), "scatter_dimension": integer(ints(op.properties["dimensions"])[0])}
    region = scope.importer.region(cast("AllReduceOp", op).to_apply)
    return scope.one("stablehlo.reduce_scatter", scope.inputs(op), op.shape, properties, (region,))


@converts("all-to-all")
def all_to_all(op: Instruction, scope: Scope) -> Tree:
    """`all_to_all` along a dimension; of several operands a marked custom call."""
    dimensions = ints(op.properties.get("dimensions"))
    shape = op.shape
    members = _members(op)
    if not dimensions or isinstance(shape, TupleShape) or members is None:
        return scope.importer.fallback(op, scope)
    properties: dict[str, Attribute] = {
        "split_dimension": integer(dimensions[0]),
        "concat_dimension": integer(dimensions[0]),
        "split_count": integer(members),
        "replica_groups": groups(op),
        **channel(op, 0),
    }
    return scope.one("stablehlo.all_to_all", scope.inputs(op), shape, properties)


def _members(op: Instruction) -> int | None:
    """How many devices a group has; None when the instruction does not say."""
    found = op.properties.get("replica_groups")
    return None if found is None else cast(ReplicaGroups, found.data).group_size  # type: ignore[attr-defined]


@converts("collective-broadcast")
def collective_broadcast(op: Instruction, scope: Scope) -> Tree:
    """`collective_broadcast`."""
    if len(op.inputs) != 1 or isinstance(op.shape, TupleShape):
        return scope.importer.fallback(op, scope)
    properties = {"replica_groups": groups(op), **channel(op, 0)}
    return scope.one("stablehlo.collective_broadcast", scope.inputs(op), op.shape, properties)


@converts("collective-permute", "collective-permute-start")
def collective_permute(op: Instruction, scope: Scope) -> Tree:
    """`collective_permute`, one for each operand; one into slices of a buffer is a marked call."""
    result = _result(op)
    if "slice_sizes" in op.properties or len(op.inputs) != 1:
        joined = isinstance(result, TupleShape) and len(result.elements) == len(op.inputs)
        if "slice_sizes" in op.properties or not joined:
            return scope.importer.fallback(op, scope)
    pairs = cast("CollectivePermuteOp", op).source_target_pairs
    properties = {"source_target_pairs": matrix(pairs, 2), **channel(op, 0)}
    operands = scope.leaves(op)
    if not isinstance(result, TupleShape):
        found: Tree = scope.one("stablehlo.collective_permute", operands, result, properties)
    else:
        found = tuple(
            scope.one("stablehlo.collective_permute", (value,), part, dict(properties))
            for value, part in zip(operands, result.elements, strict=True)
        )
    return started(op, scope, found) if op.opcode.is_async_start else found


@converts("replica-id", "partition-id")
def device_id(op: Instruction, scope: Scope) -> Tree:
    """`replica_id` and `partition_id`."""
    return scope.one("stablehlo." + op.opcode.name.replace("-", "_"), (), op.shape)


# ---------------------------------------------------------------- random numbers

_ALGORITHMS: Mapping[str, str] = {
    "rng_default": "DEFAULT",
    "rng_three_fry": "THREE_FRY",
    "rng_philox": "PHILOX",
}


@converts("rng")
def rng(op: Instruction, scope: Scope) -> Tree:
    """`rng`, with the sizes as an operand."""
    shape = op.shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or len(op.inputs) != 2:
        return scope.importer.fallback(op, scope)
    import numpy as np

    operands = scope.inputs(op)
    sizes = scope.constant(np.array(shape.dimensions, np.int64), array("s64", (shape.rank,)))
    word = str_of(op.properties["distribution"]).removeprefix("rng_").upper()
    properties: dict[str, Attribute] = {"rng_distribution": RngDistributionAttr(word)}
    return scope.one("stablehlo.rng", (*operands, sizes), shape, properties)


@converts("rng-bit-generator")
def rng_bit_generator(op: Instruction, scope: Scope) -> Tree:
    """`rng_bit_generator`."""
    word = _ALGORITHMS[str_of(op.properties["algorithm"]).lower()]
    properties: dict[str, Attribute] = {"rng_algorithm": RngAlgorithmAttr(word)}
    if not isinstance(op.shape, TupleShape):
        return scope.importer.fallback(op, scope)
    return scope.many("stablehlo.rng_bit_generator", scope.inputs(op), op.shape, properties)
