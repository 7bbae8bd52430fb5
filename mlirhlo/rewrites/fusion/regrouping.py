"""Groups of given instructions: two groups as one, and fusions that exist already."""

from __future__ import annotations

from collections.abc import Collection

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp, ParameterOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.rewrites.defuser import defuse
from mlirhlo.rewrites.fusion.graph import Node, graph_of
from mlirhlo.rewrites.fusion.groups import Group, start
from mlirhlo.rewrites.fusion.joining import Kinds, Refusal, admit, admit_beside, admit_output


def regroup(nodes: Collection[Node], outputs: Collection[Node], kinds: Kinds) -> Group | Refusal:
    """The one group of `nodes` that writes `outputs`; why there is none, by the rules of joining."""
    group: Group | None = None
    for node in sorted(nodes, key=lambda node: -node.index):
        if group is None:
            group = start(node)
            continue
        found = admit(group, node, kinds) if node in group.inputs else None
        if found is None and node in outputs:
            found = admit_beside(group, node, kinds)
        if isinstance(found, Refusal) or found is None:
            return found or Refusal("unread", "nothing of the fusion reads it")
        if node in outputs:
            refusal = admit_output(group, node, found, kinds)
            if refusal is not None:
                return refusal
        if found.members is not None:
            group.members = found.members
        group.add(node, found.form, found.paths, is_output=node in outputs)
    return group or Refusal("empty", "there is nothing to fuse")


def take_apart(
    module: HloModule, computation: ComputationOp, kinds: Kinds, names: NameUniquer
) -> dict[Instruction, int]:
    """Replaces fusions by their instructions where the rules would put these together again.

    Returns the number of the fusion that each was in.
    """
    bodies = module.by_name()
    controlling = {v for op in computation.instructions for v in op.control_predecessors}
    tags: dict[Instruction, int] = {}
    for number, op in enumerate(tuple(computation.instructions)):
        if not isinstance(op, FusionOp) or op.kind == "kCustom" or op.output in controlling:
            continue
        if CONTROL_PREDECESSORS in op.properties or "sharding" in op.properties:
            continue
        body = bodies[op.calls]
        if _is_ours(body, kinds):
            for made in defuse(op, body, names):
                tags[made] = number
    return tags


def _is_ours(body: ComputationOp, kinds: Kinds) -> bool:
    """Whether the rules put all instructions of a fused computation into one group."""
    root = body.root
    nodes = [
        node
        for node in graph_of(body)
        if not isinstance(node.op, ParameterOp) and not (node.is_root and isinstance(root, TupleOp))
    ]
    parts = root.inputs if isinstance(root, TupleOp) else (root.output,)
    outputs = {node for node in nodes if node.op.output in parts}
    if len(outputs) != len(set(parts)) or len(outputs) != len(parts):
        return False
    return isinstance(regroup(nodes, outputs, kinds), Group)
