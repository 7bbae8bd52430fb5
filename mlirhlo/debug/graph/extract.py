"""A part of a module as a module of its own: an instruction and what it is computed from."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from mlirhlo.debug.graph.model import Graph, Node
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.rewrites.cloning import clone_computation, clone_instruction


def extract(graph: Graph, root: Node, height: int = -1) -> ModuleOp:
    """A module whose root is `root`, with operands up to `height` away; parameters stand for the rest.

    A negative height takes everything. Control predecessors are left behind. Names stay.
    """
    kept = _reached(graph, root, height)
    block, values = Block(), dict[SSAValue, SSAValue]()
    number = 0
    places = {id(op): place for place, op in enumerate(graph.instructions_of(root.computation))}
    for index in sorted(kept, key=lambda i: places[id(graph.nodes[i].op)]):
        node = graph.nodes[index]
        is_cut = node.opcode == "parameter" or not kept[index]
        if is_cut and node.opcode != "constant" and (node.operands or node.opcode == "parameter"):
            copy = make(
                "parameter", (), node.shape, {"parameter_number": integer(number)}, name=node.name
            )
            number += 1
        else:
            copy = clone_instruction(node.op, values, node.name)
            _drop_control(copy, len(node.operands))
        append(block, copy)
        values[node.op.results[0]] = copy.results[0]
    block.add_op(ReturnOp(values[root.op.results[0]]))
    called = _called(graph, [index for index, whole in kept.items() if whole])
    parts = [_copied(graph.computations[index].op) for index in called]
    taken = {part.computation_name for part in parts}
    name = next(n for n in ("main", "extracted", f"{root.name}.entry") if n not in taken)
    module = ModuleOp([*parts, ComputationOp(name, block, is_entry=True)])
    module.properties["sym_name"] = string(f"{graph.module.name}.{root.name}")
    HloModule(module).set("stack_frames", graph.module.get("stack_frames"))
    return module


def _reached(graph: Graph, root: Node, height: int) -> dict[int, bool]:
    """Nodes to keep, and whether with their operands."""
    kept: dict[int, bool] = {}
    level, distance = [root.index], 0
    while level:
        following: list[int] = []
        for index in level:
            if index in kept:
                continue
            kept[index] = height < 0 or distance < height
            if kept[index]:
                following += graph.nodes[index].operands
        level, distance = following, distance + 1
    return kept


def _called(graph: Graph, nodes: list[int]) -> list[int]:
    """Computations that `nodes` call, callees first."""
    found: list[int] = []
    stack = [(callee, False) for index in nodes for callee in graph.nodes[index].calls]
    seen: set[int] = set()
    while stack:
        index, is_done = stack.pop()
        if is_done:
            found.append(index)
        elif index not in seen:
            seen.add(index)
            stack.append((index, True))
            inner = graph.computations[index].nodes
            stack += [(callee, False) for i in inner for callee in graph.nodes[i].calls]
    return found


def _copied(computation: ComputationOp) -> ComputationOp:
    copy = clone_computation(computation, computation.computation_name)
    for old, new in zip(computation.instructions, copy.instructions, strict=True):
        new.instruction_name = old.instruction_name
    return copy


def _drop_control(op: Instruction, inputs: int) -> None:
    if op.properties.pop(CONTROL_PREDECESSORS, None) is not None:
        op.operands = op.operands[:inputs]
