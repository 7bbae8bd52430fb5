"""Which parts of which values anything depends on, across calls and loops.

A part is an instruction and a shape index. The entry's root and side effects are live; liveness
then flows from results to operands, through tuples element by element and into called computations.
Source: behaviour of XLA's `HloLivenessAnalysis`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.ir import SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import (
    CallOp,
    ConditionalOp,
    FusionOp,
    GetTupleElementOp,
    OptBarrierOp,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape, leaves

ShapeIndex: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class Liveness:
    """Live parts of one module."""

    _computations: dict[str, ComputationOp]
    _parents: dict[str, list[tuple[Instruction, int]]] = field(
        default_factory=dict[str, list[tuple[Instruction, int]]]
    )
    """By name of a computation, who calls it, and as which of its computations."""
    _live: set[tuple[SSAValue, ShapeIndex]] = field(
        default_factory=set[tuple[SSAValue, ShapeIndex]]
    )
    _work: list[tuple[Instruction, ShapeIndex]] = field(
        default_factory=list[tuple[Instruction, ShapeIndex]]
    )

    @staticmethod
    def of(module: HloModule) -> Liveness:
        """Liveness of `module` as it is now."""
        self = Liveness(module.by_name())
        for op in module.instructions:
            for at, name in enumerate(op.called_computations):
                self._parents.setdefault(name, []).append((op, at))
        self._mark_all(module.entry.root)
        effects = SideEffects.of(module)
        for op in module.instructions:
            if effects.of_instruction(op):
                self._mark_all(op)
        while self._work:
            self._propagate(*self._work.pop())
        return self

    def is_live(self, value: SSAValue, index: ShapeIndex = ()) -> bool:
        """Whether anything depends on the part of `value` at `index`."""
        return (value, index) in self._live

    def _mark(self, op: Instruction, index: ShapeIndex) -> None:
        # The tuples around a live part are live themselves.
        while (part := (op.output, index)) not in self._live:
            self._live.add(part)
            self._work.append((op, index))
            index = index[:-1]

    def _mark_all(self, op: Instruction) -> None:
        for index in _all_indices(op.shape):
            self._mark(op, index)

    def _mark_value(self, value: SSAValue, index: ShapeIndex) -> None:
        self._mark(cast(Instruction, value.owner), index)

    def _propagate(self, op: Instruction, index: ShapeIndex) -> None:
        for value in op.control_predecessors:
            self._mark_value(value, ())
        match op:
            case TupleOp():
                if index:
                    self._mark_value(op.inputs[index[0]], index[1:])
            case GetTupleElementOp():
                self._mark_value(op.operand, (op.index, *index))
            case WhileOp():
                self._mark(self._root(op.body), index)
                self._mark_value(op.inputs[0], index)
                self._mark_all(self._root(op.condition))
            case CallOp() | FusionOp():
                for name in op.called_computations:
                    self._mark(self._root(name), index)
            case ConditionalOp():
                for name in op.called_computations:
                    self._mark(self._root(name), index)
                self._mark_value(op.inputs[0], ())
            case ParameterOp():
                self._propagate_parameter(op, index)
            case OptBarrierOp():
                self._mark_value(op.inputs[0], index)
            case _:
                for value in op.inputs:
                    self._mark_all(cast(Instruction, value.owner))
                for name in op.called_computations:
                    self._mark_all(self._root(name))

    def _propagate_parameter(self, op: ParameterOp, index: ShapeIndex) -> None:
        computation = op.parent_op()
        assert isinstance(computation, ComputationOp)
        name, number = computation.computation_name, op.parameter_number
        for caller, at in self._parents.get(name, ()):
            match caller:
                case WhileOp():
                    # What the body or condition reads was given at first, then made by the body.
                    self._mark(caller, index)
                case CallOp() | FusionOp():
                    self._mark_value(caller.inputs[number], index)
                case ConditionalOp():
                    self._mark_value(caller.inputs[1 + at], index)
                case _:
                    for value in caller.inputs:
                        self._mark_all(cast(Instruction, value.owner))

    def _root(self, name: str) -> Instruction:
        return self._computations[name].root


def _all_indices(shape: Shape) -> list[ShapeIndex]:
    if not isinstance(shape, TupleShape):
        return [()]
    return [(), *(index for index, _ in leaves(shape))]
