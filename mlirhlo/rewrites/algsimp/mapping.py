"""Rules of map: computations that need no call an element."""

from __future__ import annotations

from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    Instruction,
    MapOp,
    ParameterOp,
)
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    forward,
    literal_of,
    own_properties,
)
from mlirhlo.rewrites.algsimp.movement.broadcast import ELEMENTWISE
from mlirhlo.rewrites.rules import Rewriter, rule


def reducer(name: str, rewriter: Rewriter) -> type[Instruction] | None:
    """Class of the element-wise instruction that computation `name` is, on its two parameters."""
    computation = rewriter.computation(name)
    if computation is None:
        return None
    root, parameters = computation.root, computation.parameters
    if len(parameters) != 2 or root.control_predecessors:
        return None
    if {*root.operands} != {p.output for p in parameters} or len(root.operands) != 2:
        return None
    return type(root) if root.opcode.identity is not None else None


def _root(op: MapOp, rewriter: Rewriter) -> Instruction | None:
    computation = rewriter.computation(op.to_apply)
    return computation.root if computation is not None and keeps_types(op, computation) else None


def keeps_types(op: MapOp, computation: ComputationOp) -> bool:
    """Whether no element is rounded on its way into the computation of a map, or out of it."""
    inside = [element(op) for op in (*computation.parameters, computation.root)]
    return inside == [*[element(value) for value in op.inputs], element(op)]


@rule(MapOp)
def map_of_parameter(op: MapOp, rewriter: Rewriter) -> None:
    """map(x, …) => x, the computation returning that parameter"""
    if isinstance(root := _root(op, rewriter), ParameterOp):
        forward(op, rewriter, op.inputs[root.parameter_number])


@rule(MapOp)
def map_of_constant(op: MapOp, rewriter: Rewriter) -> None:
    """map(x, …) => bc(C), the computation returning the constant C"""
    root = _root(op, rewriter)
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
    root = _root(op, rewriter)
    if root is None or root.opcode.name not in ELEMENTWISE or root.control_predecessors:
        return
    parameters = [v.owner for v in root.inputs]
    numbers = [p.parameter_number for p in parameters if isinstance(p, ParameterOp)]
    if len(numbers) != len(parameters):
        return
    b = Builder(op, rewriter)
    b.like(type(root), *(op.inputs[n] for n in numbers), **own_properties(root))
    b.done()


RULES = (map_of_parameter, map_of_constant, map_of_elementwise)
