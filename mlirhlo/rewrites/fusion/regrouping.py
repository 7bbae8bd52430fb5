"""Groups of given instructions: two groups as one, and fusions that exist already."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp, ParameterOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.rewrites.control_flow.defuser import defuse
from mlirhlo.rewrites.fusion.graph import Node, Opened, Roles, graph_of
from mlirhlo.rewrites.fusion.groups import Group, start
from mlirhlo.rewrites.fusion.joining import (
    Admission,
    Kinds,
    Refusal,
    admit,
    admit_beside,
    admit_output,
)


def regroup(nodes: Collection[Node], outputs: Collection[Node], kinds: Kinds) -> Group | Refusal:
    """The one group of `nodes` that writes `outputs`; why there is none, by the rules of joining."""
    ordered = sorted(nodes, key=_from_the_end)
    if not ordered:
        return Refusal("empty", "there is nothing to fuse")
    group = start(ordered[0])
    for node in ordered[1:]:
        refusal = _take_in(group, node, outputs, kinds)
        if refusal is not None:
            return refusal
    return group


def regroup_both(mine: Group, theirs: Group, kinds: Kinds) -> Group | Refusal:
    """`regroup` of two groups that it gave, of one output each; `theirs` reads the output of `mine`."""
    output = mine.outputs[0]
    if next(reversed(theirs.members)).index < output.index:
        return regroup({**mine.members, **theirs.members}, theirs.outputs, kinds)
    # All of `theirs` comes first, and is a group already: it is gone on from there.
    found = admit(theirs, output, kinds)
    if isinstance(found, Refusal):
        return found
    members, inputs = dict(theirs.members), dict(theirs.inputs)
    group = replace(theirs, outputs=list(theirs.outputs), members=members, inputs=inputs)
    _join(group, output, found)
    for node in list(mine.members)[1:]:
        refusal = _take_in(group, node, (), kinds)
        if refusal is not None:
            return refusal
    return group


def _from_the_end(node: Node) -> int:
    return -node.index


def _take_in(group: Group, node: Node, outputs: Collection[Node], kinds: Kinds) -> Refusal | None:
    """Lets `node` join a group, all that reads it there being in it; why it cannot."""
    found = admit(group, node, kinds) if node in group.inputs else None
    if found is None and node in outputs:
        found = admit_beside(group, node, kinds)
    if isinstance(found, Refusal) or found is None:
        return found or Refusal("unread", "nothing of the fusion reads it")
    if node in outputs:
        refusal = admit_output(group, node, found, kinds)
        if refusal is not None:
            return refusal
    _join(group, node, found, is_output=node in outputs)
    return None


def _join(group: Group, node: Node, found: Admission, *, is_output: bool = False) -> None:
    if found.members is not None:
        group.members = found.members
    group.add(node, found.form, found.paths, is_output=is_output)


def openable(module: HloModule, computation: ComputationOp, kinds: Kinds, roles: Roles) -> Opened:
    """Fusions that the rules would put together again from their instructions."""
    bodies = module.known(HloModule.by_name)
    controlling = {
        value
        for op in computation.instructions
        if CONTROL_PREDECESSORS in op.properties
        for value in op.control_predecessors
    }
    found: dict[FusionOp, ComputationOp] = {}
    for op in computation.instructions:
        if not isinstance(op, FusionOp) or op.kind == "kCustom" or op.output in controlling:
            continue
        if CONTROL_PREDECESSORS in op.properties or "sharding" in op.properties:
            continue
        if _is_ours(body := bodies[op.calls], kinds, roles):
            found[op] = body
    return found


def take_apart(opened: Opened, nodes: Sequence[Node], names: NameUniquer) -> None:
    """Replaces opened fusions by their instructions, which their nodes are then about."""
    inside: list[list[Node]] = [[] for _ in opened]
    for node in nodes:
        if node.fusion is not None:
            inside[node.fusion].append(node)
    for (fusion, body), of_fusion in zip(opened.items(), inside, strict=True):
        for node, op in zip(of_fusion, defuse(fusion, body, names), strict=True):
            node.op = op


def _is_ours(body: ComputationOp, kinds: Kinds, roles: Roles) -> bool:
    """Whether the rules put all instructions of a fused computation into one group."""
    root = body.root
    nodes = [
        node
        for node in graph_of(body, roles=roles)
        if not isinstance(node.op, ParameterOp) and not (node.is_root and isinstance(root, TupleOp))
    ]
    parts = root.inputs if isinstance(root, TupleOp) else (root.output,)
    outputs = {node for node in nodes if node.op.output in parts}
    if len(outputs) != len(set(parts)) or len(outputs) != len(parts):
        return False
    return isinstance(regroup(nodes, outputs, kinds), Group)
