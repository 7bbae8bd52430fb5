"""`cse`: merges instructions that compute the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from xdsl.ir import Attribute, SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.attributes.base import int_of, symbols_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    AsyncDoneOp,
    AsyncStartOp,
    AsyncUpdateOp,
    ComputationOp,
    Instruction,
    IotaOp,
    ParameterOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.shapes import without_layout
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.rewrites.dce import callers_first, erase_unused
from mlirhlo.rewrites.passes import HloPass, Trace

_NOT_COMPARED = frozenset(
    {"metadata", "proto_id", "proto_rest", "origin", "statistics", CONTROL_PREDECESSORS}
)
_MERGED_WITHOUT_OPERANDS = frozenset({"constant", "partition-id", "replica-id"})
_NEVER_MERGED = frozenset({ParameterOp, AsyncStartOp, AsyncUpdateOp, AsyncDoneOp})


@dataclass(frozen=True)
class CsePass(HloPass):
    """Merges equal constants, and instructions with equal opcode, operands, attributes and shape.

    Before and after:

        %a = f32[4] add(%x, %y)
        %b = f32[4] add(%y, %x)
        ROOT %r = f32[4] multiply(%a, %b)     =>   ROOT %r = f32[4] multiply(%a, %a)

    Literals are compared by their bits. Called computations are compared by what they do.
    Source: reference of the passes, "HloCSE".
    """

    name = "cse"

    is_layout_sensitive: bool = False
    """Whether results in different layouts are different."""
    only_fusion_computations: bool = False
    """Looks into fusion computations only."""
    ignore_control_dependencies: bool = False
    """Merges instructions that have control dependencies too."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Merges; whether anything was merged."""
        keys = _Keys(self.is_layout_sensitive, module.known(HloModule.by_name))
        effects = module.known(SideEffects.of)
        fused = (
            module.known(HloModule.fused_computations)
            if self.only_fusion_computations
            else frozenset[str]()
        )
        changed = False
        for computation in reversed(module.known(callers_first)):
            if self.only_fusion_computations and computation.computation_name not in fused:
                continue
            changed |= self._merge(computation, keys, effects)
        return changed

    def _merge(self, computation: ComputationOp, keys: _Keys, effects: SideEffects) -> bool:
        instructions = tuple(computation.instructions)
        controlling = {
            value
            for op in instructions
            if CONTROL_PREDECESSORS in op.properties
            for value in op.control_predecessors
        }
        iotas = {id(op.output): keys.of_iota(op) for op in instructions if type(op) is IotaOp}
        # Few instructions have the opcode and the operands of another: only those are described.
        alike: dict[Hashable, list[Instruction]] = {}
        seen: dict[Hashable, Instruction] = {}
        changed = False
        for op in instructions:
            if op.parent is None or type(op) in _NEVER_MERGED:
                continue
            operands = _operand_key(op, iotas)
            if not operands and op.opcode.name not in _MERGED_WITHOUT_OPERANDS:
                continue
            others = alike.setdefault((type(op), operands), [])
            others.append(op)
            if len(others) == 1:
                continue
            for other in others if len(others) == 2 else (op,):
                if not self._mergeable(other, effects, controlling):
                    continue
                first = seen.setdefault((operands, keys.of_instruction(other)), other)
                if first is not other:
                    other.output.replace_all_uses_with(first.output)
                    erase_unused(other, effects)
                    changed = True
        return changed

    def _mergeable(self, op: Instruction, effects: SideEffects, controlling: set[SSAValue]) -> bool:
        if not self.ignore_control_dependencies and (
            op.control_predecessors or op.output in controlling
        ):
            return False
        return not effects.of_instruction(op)


def _operand_key(op: Instruction, iotas: Mapping[int, int]) -> tuple[int, ...]:
    """Numbers of the operands, sorted where the opcode commutes; equal iotas have one number."""
    inputs = tuple(map(id, op.inputs))
    if iotas and not iotas.keys().isdisjoint(inputs):
        inputs = tuple(iotas.get(number, number) for number in inputs)
    if len(inputs) == 2 and inputs[0] > inputs[1] and op.opcode.commutes:
        return inputs[::-1]
    return inputs


@dataclass(slots=True)
class _Keys:
    """Hashable descriptions: equal keys, equal meaning."""

    is_layout_sensitive: bool
    computations: dict[str, ComputationOp]
    _of_computation: dict[str, int] = field(default_factory=dict[str, int])
    _numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _types: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])

    def of_instruction(self, op: Instruction) -> Hashable:
        """All of an instruction but its operands."""
        properties = tuple(
            (key, self._computation_keys(op, key) if key in op.calling_keys else op.properties[key])
            for key in sorted(op.properties)
            if key not in _NOT_COMPARED
        )
        return (op.name, self._type(op.output.type), properties)

    def of_iota(self, op: Instruction) -> int:
        """A number that is no id of an object: less than 0."""
        key = self.of_instruction(op)
        return -1 - self._numbers.setdefault(key, len(self._numbers))

    def _type(self, type_: Attribute) -> Attribute:
        if self.is_layout_sensitive:
            return type_
        known = self._types.get(type_)
        if known is None:
            known = self._types[type_] = type_of(without_layout(shape_of(type_)))
        return known

    def _computation_keys(self, op: Instruction, key: str) -> Hashable:
        return tuple(self.of_computation(name) for name in symbols_of(op.properties[key]))

    def of_computation(self, name: str) -> int:
        """A number: the same for computations that do the same with the same parameters."""
        known = self._of_computation.get(name)
        if known is None:
            key = self._computation_key(self.computations[name])
            known = self._numbers.setdefault(key, len(self._numbers))
            self._of_computation[name] = known
        return known

    def _computation_key(self, computation: ComputationOp) -> Hashable:
        numbers: dict[SSAValue, int] = {}
        rows: list[Hashable] = []
        for op in computation.instructions:
            numbers[op.output] = len(numbers)
            operands = tuple(numbers[v] for v in op.operands)
            rows.append(
                (self.of_instruction(op), operands, int_of(op.properties.get(CONTROL_PREDECESSORS)))
            )
        return (tuple(rows), numbers[computation.terminator.root], computation.thread)
