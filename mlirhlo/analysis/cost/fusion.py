"""A fusion costs what is computed inside, and the bytes that pass its border."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.analysis.cost.counts import (
    BYTES,
    UTILIZATION,
    Counts,
    operand_bytes,
    operand_utilization,
    result_bytes,
)
from mlirhlo.analysis.cost.visitor import RULES, Visitor, rule, size_bytes
from mlirhlo.dialects.hlo.ops import FusionOp, GetTupleElementOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.dialects.hlo.types import shape_of


@rule("fusion")
def _fusion(visitor: Visitor, op: Instruction, counts: Counts) -> None:
    fusion = cast(FusionOp, op)
    computation = visitor.computations[fusion.calls]
    if fusion.kind == "kCustom":
        for inner in computation.instructions:
            if inner.opcode.name in ("gather", "scatter"):
                RULES[inner.opcode.name](visitor, inner, counts)
                return
    counts.values = visitor.called(fusion.calls).copy().values
    counts.set(BYTES, 0)
    _results(op.shape, computation, counts)
    for inner in computation.instructions:
        visitor.instructions[inner].set(UTILIZATION, 1)
        if inner.opcode.name == "constant":
            shape = inner.shape
            elements = shape.element_count if isinstance(shape, ArrayShape) else 0
            if elements > visitor.options.immediate_constant_elements:
                counts.add(BYTES, size_bytes(shape))
    taken = _TAKEN | {"gather"} if visitor.options.gathers_read_what_they_take else _TAKEN
    reading = _Reading(visitor.computations, taken)
    for number, parameter in enumerate(computation.parameters):
        size = _parameter(number, parameter, reading, counts)
        counts.add(BYTES, size)
        counts.set(operand_bytes(number), size)
        counts.set(operand_utilization(number), 1)


def _results(shape: Shape, computation: ComputationOp, counts: Counts) -> None:
    """Every array of the result; of an update in place the update only."""
    root = computation.root
    parts = root.inputs if isinstance(root, TupleOp) else (root.output,)
    for index, leaf in leaves(shape):
        if not isinstance(leaf, ArrayShape):
            continue
        size = size_bytes(leaf)
        if len(index) < 2:
            source = parts[index[0]] if index and len(parts) > index[0] else root.output
            owner = source.owner
            if isinstance(owner, Instruction) and owner.opcode.name == "dynamic-update-slice":
                size = size_bytes(owner.input_shapes[1])
        counts.add(BYTES, size)
        counts.set(result_bytes(index), size)
    if isinstance(shape, TupleShape):
        counts.values.pop(result_bytes(), None)
        _sum(shape, (), counts)


def _sum(shape: Shape, index: tuple[int, ...], counts: Counts) -> float:
    """Gives tuples the sum of their parts."""
    known = counts.values.get(result_bytes(index))
    if known is not None:
        return known
    parts = shape.elements if isinstance(shape, TupleShape) else ()
    total = sum(_sum(part, (*index, at), counts) for at, part in enumerate(parts))
    counts.set(result_bytes(index), total)
    return total


def _parameter(number: int, parameter: Instruction, reading: _Reading, counts: Counts) -> int:
    if not isinstance(parameter.shape, TupleShape):
        return reading.of(parameter.output)
    total = 0
    for index, _ in leaves(parameter.shape):
        value = parameter.output
        for at in index:
            for use in value.uses:
                user = use.operation
                if isinstance(user, GetTupleElementOp) and user.index == at:
                    value = user.output
                    break
        size = reading.of(value)
        counts.set(operand_bytes(number, index), size)
        total += size
    return total


@dataclass(frozen=True, slots=True)
class _Reading:
    """What users inside of a fusion read of its parameters."""

    computations: Mapping[str, ComputationOp]
    taken: frozenset[str]
    """Opcodes that read as much of their first operand as they give."""

    def of(self, value: SSAValue) -> int:
        """Bytes that the users of a parameter read; all but a few kinds share one reading."""
        total = 0
        shared = False
        for user in _users(value):
            if isinstance(user, FusionOp):
                total += self._nested(user, value)
            elif user.opcode.name in ("broadcast", "reshape"):
                total += size_bytes(shape_of(value.type))
            else:
                size, is_whole = self._one(value, user)
                if not (is_whole and shared):
                    total += size
                shared |= is_whole
        return total

    def _one(self, value: SSAValue, user: Instruction) -> tuple[int, bool]:
        """Bytes that one user reads, and whether that is all."""
        name = user.opcode.name
        is_first = user.inputs[0] is value
        if name in self.taken and is_first:
            return size_bytes(user.shape), False
        if name == "dynamic-update-slice" and is_first:
            return 0, False
        return size_bytes(shape_of(value.type)), True

    def _nested(self, fusion: FusionOp, value: SSAValue) -> int:
        """What a fusion in a fusion reads: as XLA has it, nothing that its own users do not ask for."""
        computation = self.computations[fusion.calls]
        root = computation.root
        total = 0
        for at, operand in enumerate(fusion.inputs):
            if operand is not value:
                continue
            parameter = computation.parameters[at].output
            is_simple = not root.inputs or root.inputs[0] is parameter
            shared = False
            for user in _users(fusion.output):
                if is_simple and user.opcode.name in _SLICES:
                    size, is_whole = self._one(fusion.output, user)
                else:
                    size, is_whole = self.of(parameter), True
                if not (is_whole and shared):
                    total += size
                shared |= is_whole
        return total


_TAKEN = opcodes(lambda row: row.movement is Movement.SLICE)
_SLICES = _TAKEN | opcodes(lambda row: row.movement is Movement.UPDATE)


def _users(value: SSAValue) -> list[Instruction]:
    users = dict.fromkeys(use.operation for use in value.uses)
    return [user for user in users if isinstance(user, Instruction)]
