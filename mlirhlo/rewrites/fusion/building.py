"""Fusions of groups: the computations, and the instructions that call them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string, symbol
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr
from mlirhlo.dialects.hlo.attributes.sharding_values import Sharding, ShardingKind
from mlirhlo.dialects.hlo.build import append, close, create, make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp, GetTupleElementOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape, leaves
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import detach, erase, insert_before, new_block, read_all_instead
from mlirhlo.rewrites.fusion.graph import Node
from mlirhlo.rewrites.fusion.groups import HLO_KINDS, Group
from mlirhlo.rewrites.rules import inherit

OF_THE_WHOLE = ("sharding", "backend_config", "frontend_attributes")
"""Properties that the fusion has instead of its instructions."""


def properties_of_fusion(
    main: Instruction, outputs: Sequence[SSAValue], kind: str, calls: str
) -> dict[str, Attribute]:
    """Properties of a fusion that calls a computation, with those of `main` that are of the whole.

    `outputs` are the values that its results stand for: each leaf of the result has the sharding that it had there.
    """
    properties: dict[str, Attribute] = {"kind": string(kind), "calls": symbol(calls)}
    for key in OF_THE_WHOLE:
        if key in main.properties:
            properties[key] = main.properties[key]
    if "sharding" in properties:
        parts = [part for value in outputs for part in _shardings(value)]
        is_tuple = len(outputs) > 1 or isinstance(shape_of(outputs[0].type), TupleShape)
        sharding = Sharding.tuple_of(parts) if is_tuple else parts[0]
        properties["sharding"] = ShardingAttr(sharding)
    return properties


def _shardings(value: SSAValue) -> tuple[Sharding, ...]:
    """The sharding of each leaf of a value; replicated where its instruction has none."""
    owner, index = cast(Instruction, value.owner), None
    if isinstance(part := value.owner, GetTupleElementOp) and part.sharding is None:
        owner, index = cast(Instruction, part.operand.owner), part.index
    sharding = owner.sharding or Sharding(ShardingKind.REPLICATED)
    if sharding.kind is not ShardingKind.TUPLE:
        return (sharding,) * sum(1 for _ in leaves(shape_of(value.type)))
    return sharding.elements if index is None else sharding.elements[index : index + 1]


class Builder:
    """Makes the fusions of one module."""

    def __init__(self, module: HloModule) -> None:
        self.module = module

    @cached_property
    def computations(self) -> NameUniquer:
        """Names of the computations, read when the first one is made."""
        return NameUniquer(c.computation_name for c in self.module.computations)

    @cached_property
    def instructions(self) -> NameUniquer:
        """Names of the instructions, read when the first one is made."""
        return NameUniquer(self.module.instruction_names())

    def build(self, computation: ComputationOp, groups: Sequence[Group]) -> bool:
        """Replaces groups of several instructions by fusions; whether there are any.

        `groups` are all of the computation, in an order in which they can run.
        """
        fused = [group for group in groups if len(group.members) > 1]
        if not fused:
            return False
        values: dict[Node, SSAValue] = {}
        made: dict[Group, list[Instruction]] = {}
        for group in fused:
            made[group] = self._fuse(computation, group, values)
        _put_in_order(computation, groups, made)
        read_all_instead({node.op.output: value for node, value in values.items()})
        _erase(groups)
        computation.properties.pop("storage_order", None)
        return True

    def _fuse(
        self, caller: ComputationOp, group: Group, values: dict[Node, SSAValue]
    ) -> list[Instruction]:
        """The fusion and what takes its result apart; `values` learns what stands for the outputs."""
        outputs = sorted(group.outputs, key=lambda node: node.index)
        main = outputs[-1]
        label = main.opcode.replace("-", "_")
        inputs = [n for member in reversed(group.members) for n in member.operands]
        inputs = [n for n in dict.fromkeys(inputs) if n not in group.members]
        name = self.computations.unique(f"fused_{label}")
        body, shape = _computation(name, caller, group, inputs, outputs)
        block = caller.parent
        assert block is not None
        block.insert_op_before(body, caller)
        kind = HLO_KINDS.get(group.form.kind, "kInput")
        properties = properties_of_fusion(main.op, [n.op.output for n in outputs], kind, name)
        operands = [values.get(n, n.op.output) for n in inputs]
        fusion_name = self.instructions.unique(f"{kind[1:].lower()}_{label}_fusion")
        fusion = create(FusionOp, operands, type_of(shape), properties, fusion_name)
        inherit(fusion, main.op)
        if len(outputs) == 1:
            values[main] = fusion.output
            return [fusion]
        made: list[Instruction] = [fusion]
        for number, node in enumerate(outputs):
            part = make("get-tuple-element", [fusion], node.op.shape, {"index": integer(number)})
            part.instruction_name = self.instructions.unique(
                f"{node.op.instruction_name or node.opcode}"
            )
            inherit(part, node.op)
            values[node] = part.output
            made.append(part)
        return made


def _computation(
    name: str,
    caller: ComputationOp,
    group: Group,
    inputs: Sequence[Node],
    outputs: Sequence[Node],
) -> tuple[ComputationOp, Shape]:
    """The fused computation, in the thread of its caller, and the shape of its root."""
    thread = caller.thread_property
    block = new_block()
    inner: dict[Node, SSAValue] = {}
    for number, node in enumerate(inputs):
        parameter = make(
            "parameter",
            [],
            node.op.shape,
            {"parameter_number": integer(number)},
            name=f"param_{number}",
        )
        inner[node] = parameter.output
        append(block, parameter)
    for node in sorted(group.members, key=lambda node: node.index):
        op = node.op
        properties = {k: v for k, v in op.properties.items() if k not in _NOT_COPIED}
        operands = [inner[n] for n in node.operands]
        copy = create(type(op), operands, op.output.type, properties, op.instruction_name)
        copy.attributes.update(op.attributes)
        inherit(copy, op)
        inner[node] = copy.output
        append(block, copy)
    if len(outputs) == 1:
        return close(name, block, inner[outputs[0]], thread), outputs[0].op.shape
    shape = TupleShape(tuple(node.op.shape for node in outputs))
    root = make("tuple", [inner[node] for node in outputs], shape, name="tuple")
    append(block, root)
    return close(name, block, root.output, thread), shape


_NOT_COPIED = frozenset({*OF_THE_WHOLE, "proto_id", "proto_rest"})


def _put_in_order(
    computation: ComputationOp, groups: Sequence[Group], made: dict[Group, list[Instruction]]
) -> None:
    """Puts fusions where their last output stood; where fusing asked for another order, all anew."""
    end = computation.terminator
    moved = any(group.order != group.outputs[0].index for group in groups)
    for group in groups:
        fresh = made.get(group)
        if moved:
            for op in fresh or (group.outputs[0].op,):
                if op.parent is not None:
                    detach(op)
                insert_before(end, op)
        elif fresh is not None:
            for op in fresh:
                insert_before(group.outputs[0].op, op)
    # A follower may read a parameter or constant that stands behind the rows that took it.
    leaves = {group.outputs[0].op: group.order for group in groups if not group.outputs[0].operands}
    for group, fresh in made.items():
        for value in fresh[0].operands:
            source = value.owner
            if isinstance(source, Instruction) and leaves.get(source, -1.0) > group.order:
                detach(source)
                insert_before(fresh[0], source)
                leaves[source] = group.order


def _erase(groups: Sequence[Group]) -> None:
    """Erases instructions that are in fusions only."""
    kept = {group.outputs[0] for group in groups if len(group.members) == 1}
    gone = {node for group in groups if len(group.members) > 1 for node in group.members} - kept
    for node in sorted(gone, key=lambda node: -node.index):
        erase(node.op)
