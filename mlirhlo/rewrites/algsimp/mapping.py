"""Rules of map: computations that need no call an element."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    Instruction,
    MapOp,
    ParameterOp,
)
from mlirhlo.rewrites.algsimp.broadcast import ELEMENTWISE
from mlirhlo.rewrites.algsimp.common import Builder, array, forward, literal_of
from mlirhlo.rewrites.rules import Rewriter, rule


def called(op: Instruction, name: str) -> ComputationOp | None:
    """The computation called `name` in the module of `op`."""
    here: Operation | None = op.parent_op()
    block = here.parent if here is not None else None
    for other in block.ops if block is not None else ():
        if isinstance(other, ComputationOp) and other.computation_name == name:
            return other
    return None


def _root(op: MapOp) -> Instruction | None:
    computation = called(op, op.to_apply)
    if computation is None:
        return None
    owner = computation.terminator.root.owner
    return owner if isinstance(owner, Instruction) else None


@rule(MapOp)
def map_of_parameter(op: MapOp, rewriter: Rewriter) -> None:
    """map(x, …) => x, the computation returning that parameter"""
    if isinstance(root := _root(op), ParameterOp):
        forward(op, rewriter, op.inputs[root.parameter_number])


@rule(MapOp)
def map_of_constant(op: MapOp, rewriter: Rewriter) -> None:
    """map(x, …) => bc(C), the computation returning the constant C"""
    root = _root(op)
    if not isinstance(root, ConstantOp) or array(op).is_dynamic:
        return
    literal = literal_of(root.output)
    if literal is None or array(root).dimensions:
        return
    b = Builder(op, rewriter)
    b.spread(b.constant(literal), array(op))
    b.done()


@rule(MapOp)
def map_of_elementwise(op: MapOp, rewriter: Rewriter) -> None:
    """map(x, …) => f(x, …), the computation returning f of its parameters, f element-wise"""
    root = _root(op)
    if root is None or root.opcode.name not in ELEMENTWISE or root.control_predecessors:
        return
    parameters = [v.owner for v in root.inputs]
    numbers = [p.parameter_number for p in parameters if isinstance(p, ParameterOp)]
    if len(numbers) != len(parameters):
        return
    kept = {
        key: value
        for key, value in root.properties.items()
        if key not in ("metadata", "sharding", "frontend_attributes", "proto_id", "origin")
    }
    b = Builder(op, rewriter)
    b.like(type(root), *(op.inputs[n] for n in numbers), **kept)
    b.done()


RULES = (map_of_parameter, map_of_constant, map_of_elementwise)
