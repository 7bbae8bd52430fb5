"""`cse`: merges instructions that compute the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.dialects.hlo.attributes.base import int_of, symbols_of
from mlirhlo.dialects.hlo.module import HloModule, Listing, holder
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    Instruction,
    IotaOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, OP_CLASSES, classes_of
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import without_layout
from mlirhlo.dialects.hlo.table import Calls, Role, properties_of
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import read_all_instead
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.simplify.dce import callers_first, erase_unused

_NOT_COMPARED = properties_of(Role.PROVENANCE, Role.ORDER)
_MERGED_WITHOUT_OPERANDS = classes_of(lambda row: row.names_device or row.name == "constant")
_COMMUTING = frozenset(cls for cls in OP_CLASSES.values() if cls.opcode.commutes)
_NEVER_MERGED = classes_of(lambda row: row.calls is Calls.ASYNCHRONOUS or row.name == "parameter")

_Alike: TypeAlias = tuple[type[Instruction], tuple[int, ...]]
"""Class and operands: numbers of values, sorted where the opcode commutes; equal iotas have one."""

_Numbered: TypeAlias = "dict[int, tuple[int, Attribute]]"
"""By the id of an attribute: a number, and the attribute, so that no other one gets its id."""


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
        iotas = _iotas(module, keys)
        fused = (
            module.known(HloModule.fused_computations)
            if self.only_fusion_computations
            else frozenset[str]()
        )
        if not self._is_wanted(module, keys, effects, iotas):
            return False
        changed = False
        for computation in reversed(module.known(callers_first)):
            if self.only_fusion_computations and computation.computation_name not in fused:
                continue
            changed |= self._merge(computation, keys, effects, iotas.get(computation, {}))
        return changed

    def _is_wanted(
        self,
        module: HloModule,
        keys: _Keys,
        effects: SideEffects,
        iotas: Mapping[ComputationOp, Mapping[int, int]],
    ) -> bool:
        """Whether two can be merged as the module is: where none can, no merge is the first."""
        if self.ignore_control_dependencies:
            return True
        if any(len(set(found.values())) < len(found) for found in iotas.values()):
            return True
        for ops in _alike(module, keys):
            for outlined in _grouped(ops, keys.outline_of):
                for found in _grouped(outlined, keys.of_instruction):
                    if sum(self._mergeable(op, effects) for op in found) > 1:
                        return True
        return False

    def _merge(
        self,
        computation: ComputationOp,
        keys: _Keys,
        effects: SideEffects,
        iotas: Mapping[int, int],
    ) -> bool:
        # Few instructions have the class and the operands of another: only those are described.
        firsts: dict[_Alike, Instruction] = {}
        groups: dict[_Alike, dict[Hashable, Instruction]] = {}
        merged: set[Instruction] = set()
        # What is merged is read in place of itself at the end: a reader of many has its operands changed once.
        instead: dict[SSAValue, SSAValue] = {}
        representatives = dict(iotas)
        only_inputs = self.ignore_control_dependencies
        following: Any = computation.block.first_op
        end = computation.terminator
        while following is not end:
            op: Instruction = following
            following = op._next_op  # pyright: ignore[reportPrivateUsage]
            kind = type(op)
            values = op._operands  # pyright: ignore[reportPrivateUsage]
            if not values and kind not in _MERGED_WITHOUT_OPERANDS:
                continue
            # Control predecessors among the operands do no harm: who has such is set apart.
            numbers = tuple(map(id, op.inputs if only_inputs else values))
            if representatives and not representatives.keys().isdisjoint(numbers):
                numbers = tuple([representatives.get(number, number) for number in numbers])
            if kind in _COMMUTING and numbers[0] > numbers[-1]:
                numbers = numbers[::-1]
            alike = (kind, numbers)
            first = firsts.setdefault(alike, op)
            if first is op or kind in _NEVER_MERGED:
                continue
            group = groups.get(alike)
            if group is None:
                group = groups[alike] = {keys.of_instruction(first): first}
            key = keys.of_instruction(op)
            kept = group.setdefault(key, op)
            if kept is op:
                continue
            # Who reads one that others were merged into is known: all readers of a constant are asked once.
            if kept not in merged and not self._mergeable(kept, effects):
                group[key] = op
            elif self._mergeable(op, effects):
                merged.add(kept)
                instead[op.output] = kept.output
                number = id(kept.output)
                representatives[id(op.output)] = representatives.get(number, number)
                if kept.instruction_name is None:
                    kept.instruction_name = op.instruction_name
        read_all_instead(instead)
        for value in reversed(instead):
            erase_unused(cast(Instruction, value.owner), effects)
        return bool(instead)

    def _mergeable(self, op: Instruction, effects: SideEffects) -> bool:
        if not self.ignore_control_dependencies and _is_ordered(op):
            return False
        return not effects.of_instruction(op)


def _alike(module: HloModule, keys: _Keys) -> Iterator[list[Instruction]]:
    """Instructions of one computation with the same class and operands, two at least."""
    # All operands of such are read twice at least; those that have none must be of one type.
    listed: list[Instruction] = []
    for op in module.known(Listing.of).instructions:
        for value in op._operands:  # pyright: ignore[reportPrivateUsage]
            use = value.first_use
            if use is not None and use._next_use is None:  # pyright: ignore[reportPrivateUsage]
                break
        else:
            listed.append(op)
    listed = [op for op in listed if op._operands and type(op) not in _NEVER_MERGED]  # pyright: ignore[reportPrivateUsage]
    groups: dict[tuple[int, int], list[Instruction]] = {}
    for op in module.candidates(*_MERGED_WITHOUT_OPERANDS):
        groups.setdefault((id(op.parent), keys.of_type(op.output.type)), []).append(op)
    for op in listed:
        # A number that is the same for the same operands in any order, and seldom else.
        number = sum(map(id, op._operands), id(type(op)))  # pyright: ignore[reportPrivateUsage]
        groups.setdefault((id(op.parent), number), []).append(op)
    for ops in groups.values():
        if len(ops) > 1:
            yield from _grouped(ops, _class_and_operands)


def _grouped(
    ops: list[Instruction], key_of: Callable[[Instruction], Hashable]
) -> Iterator[list[Instruction]]:
    """Those of one key, two at least."""
    found: dict[Hashable, list[Instruction]] = {}
    for op in ops:
        found.setdefault(key_of(op), []).append(op)
    for group in found.values():
        if len(group) > 1:
            yield group


def _class_and_operands(op: Instruction) -> _Alike:
    numbers, kind = tuple(map(id, op._operands)), type(op)  # pyright: ignore[reportPrivateUsage]
    if kind in _COMMUTING and numbers[0] > numbers[-1]:
        numbers = numbers[::-1]
    return (kind, numbers)


def _is_ordered(op: Instruction) -> bool:
    """Whether it waits for another instruction by a control dependency, or another one for it."""
    if CONTROL_PREDECESSORS in op.properties:
        return True
    return any(
        CONTROL_PREDECESSORS in use.operation.properties
        and use.index >= len(cast(Instruction, use.operation).inputs)
        for use in op.output.uses
    )


def _iotas(module: HloModule, keys: _Keys) -> dict[ComputationOp, dict[int, int]]:
    """Numbers of the iotas of each computation, by the ids of their values; equal ones have one."""
    found: dict[ComputationOp, dict[int, int]] = {}
    for op in module.candidates(IotaOp):
        found.setdefault(holder(op), {})[id(op.output)] = keys.of_iota(op)
    return found


@dataclass(slots=True)
class _Keys:
    """Hashable descriptions: equal keys, equal meaning."""

    is_layout_sensitive: bool
    computations: dict[str, ComputationOp]
    _of_computation: dict[str, int] = field(default_factory=dict[str, int])
    _outlines: dict[str, int] = field(default_factory=dict[str, int])
    _numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _attributes: _Numbered = field(default_factory=dict[int, tuple[int, Attribute]])
    _types: _Numbered = field(default_factory=dict[int, tuple[int, Attribute]])

    def of_instruction(self, op: Instruction) -> Hashable:
        """All of an instruction but its operands."""
        return self._described(op, self.of_computation)

    def outline_of(self, op: Instruction) -> Hashable:
        """As `of_instruction`, but that of what it calls only the classes are looked at."""
        return self._described(op, self._outline_of_computation)

    def _described(self, op: Instruction, of_called: Callable[[str], Hashable]) -> Hashable:
        calling = type(op).calling_keys
        properties: list[Any] = []
        for key, attribute in op.properties.items():
            if key in _NOT_COMPARED:
                continue
            if key in calling:
                properties.append((key, tuple(map(of_called, symbols_of(attribute)))))
            else:
                known = self._attributes.get(id(attribute))
                properties.append((key, known[0] if known else self._of_attribute(attribute)))
        if len(properties) > 1:
            properties.sort()
        result_type = op.results[0]._type  # pyright: ignore[reportPrivateUsage]
        return (type(op), self.of_type(result_type), *properties)

    def _outline_of_computation(self, name: str) -> int:
        known = self._outlines.get(name)
        if known is None:
            key = tuple(map(type, instruction_list(self.computations[name])))
            known = self._outlines[name] = self._numbers.setdefault(key, len(self._numbers))
        return known

    def of_iota(self, op: Instruction) -> int:
        """A number that is no id of an object: less than 0."""
        key = self.of_instruction(op)
        return -1 - self._numbers.setdefault(key, len(self._numbers))

    def _of_attribute(self, attribute: Attribute) -> int:
        # Attributes are slow to compare and to hash, and most are the same object in many places.
        known = self._attributes.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._attributes[id(attribute)] = (number, attribute)
        return known[0]

    def of_type(self, type_: Attribute) -> int:
        """A number: the same for the same types."""
        if self.is_layout_sensitive:
            return self._of_attribute(type_)
        known = self._types.get(id(type_))
        if known is None:
            plain = type_of(without_layout(shape_of(type_)))
            known = self._types[id(type_)] = (self._of_attribute(plain), type_)
        return known[0]

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
