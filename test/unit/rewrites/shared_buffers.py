"""A run of a module on shared buffers, without numbers: who reads what somebody else has written over.

Buffers are those of `analysis.alias`. What an instruction writes is a mark of its own; one that reads has to
find the mark of what it was given. Instructions run in any order that operands and control dependencies, or
the schedule, allow; loops run a few times, of branches one runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

from mlirhlo.analysis.alias import aliases
from mlirhlo.analysis.dataflow import FORWARDS
from mlirhlo.analysis.live_ranges import shares
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ConditionalOp,
    ConstantOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves

Marks: TypeAlias = Any
"""A mark, or a list for a tuple."""


def clobbers(module: HloModule, seed: int) -> list[str]:
    """Reads that do not find what they should, in one run; results that are not there at its end."""
    return _Run(module, seed).problems


def _part(marks: Marks, index: Sequence[int]) -> Marks:
    for at in index:
        marks = marks[at]
    return marks


class _Run:
    def __init__(self, module: HloModule, seed: int) -> None:
        self.module, self.random = module, random.Random(seed)
        self.aliases = aliases(module)
        self.computations = module.by_name()
        self.memory: dict[int, object] = {}
        self.problems: list[str] = []
        entry = module.entry
        for op in module.instructions:
            if isinstance(op, ConstantOp):
                self.write(op)
        arguments = [self.write(parameter) for parameter in entry.parameters]
        results = self.run(entry, arguments)
        self.look_at(entry, arguments, results)

    def buffer(self, op: Instruction, index: tuple[int, ...]) -> int:
        return self.aliases.at(op, index)

    def is_handed_on(self, op: Instruction, index: tuple[int, ...]) -> bool:
        """Whether a part is an operand's: asynchronous starts hold what they were given."""
        return bool(self.aliases.sources.of[op, index])

    def write(self, op: Instruction) -> Marks:
        def fresh(shape: Shape, index: tuple[int, ...]) -> Marks:
            if isinstance(shape, TupleShape):
                return [fresh(e, (*index, at)) for at, e in enumerate(shape.elements)]
            if isinstance(shape, ArrayShape) and self.is_handed_on(op, index):
                return self.memory.get(self.buffer(op, index))
            mark = object()
            if isinstance(shape, ArrayShape):
                self.memory[self.buffer(op, index)] = mark
            return mark

        return fresh(op.shape, ())

    def read(self, op: Instruction, number: int, marks: Marks) -> Iterator[tuple[int, ...]]:
        owner = cast(Instruction, op.inputs[number].owner)
        for index, shape in leaves(owner.shape):
            if isinstance(shape, ArrayShape):
                if self.memory.get(self.buffer(owner, index)) is not _part(marks, index):
                    where = f"{owner.instruction_name}{list(index)}"
                    self.problems.append(f"{op.instruction_name} reads {where}, written over")
                yield index

    def order(self, computation: ComputationOp) -> list[Instruction]:
        left = list(computation.instructions)
        if self.module.is_scheduled:
            return left
        done: list[Instruction] = []
        seen: set[object] = set()
        while left:
            ready = [op for op in left if all(v.owner in seen for v in op.operands)]
            op = self.random.choice(ready)
            left.remove(op)
            seen.add(op)
            done.append(op)
        return done

    def run(self, computation: ComputationOp, arguments: Sequence[Marks]) -> Marks:
        known: dict[Instruction, Marks] = {}
        for op in self.order(computation):
            known[op] = self.step(
                op, [known[cast(Instruction, v.owner)] for v in op.inputs], arguments
            )
        return known[computation.root]

    def step(self, op: Instruction, operands: list[Marks], arguments: Sequence[Marks]) -> Marks:
        match op:
            case ParameterOp():
                return arguments[op.parameter_number]
            case ConstantOp():
                return self.memory[self.buffer(op, ())]
            case TupleOp():
                return operands
            case GetTupleElementOp():
                return operands[0][op.index]
            case CallOp():
                return self.run(self.computations[op.to_apply], operands)
            case ConditionalOp():
                list(self.read(op, 0, operands[0]))
                branch = self.random.randrange(len(operands) - 1)
                name = op.called_computations[branch]
                return self.run(self.computations[name], [operands[1 + branch]])
            case WhileOp():
                (state,) = operands
                for _ in range(self.random.randrange(3)):
                    self.run(self.computations[op.condition], [state])
                    state = self.run(self.computations[op.body], [state])
                self.run(self.computations[op.condition], [state])
                return state
            case _ if op.opcode.name in FORWARDS:
                return operands[0]
            case _:
                return self.compute(op, operands)

    def compute(self, op: Instruction, operands: list[Marks]) -> Marks:
        made = {
            self.buffer(op, index): index
            for index, shape in leaves(op.shape)
            if isinstance(shape, ArrayShape) and not self.is_handed_on(op, index)
        }
        for number, marks in enumerate(operands):
            owner = cast(Instruction, op.inputs[number].owner)
            for index in self.read(op, number, marks):
                result = made.get(self.buffer(owner, index))
                if result is not None and not shares(op, number, index, result, self.computations):
                    self.problems.append(f"{op.instruction_name} writes over operand {number}")
        return self.write(op)

    def look_at(self, entry: ComputationOp, arguments: list[Marks], results: Marks) -> None:
        found = self.module.input_output_alias
        given = {
            self.buffer(entry.parameters[e.parameter_number], e.parameter_index)
            for e in (found.entries if found is not None else ())
        }
        taken: set[int] = set()
        for index, shape in leaves(entry.root.shape):
            if not isinstance(shape, ArrayShape):
                continue
            buffer = self.buffer(entry.root, index)
            if self.memory.get(buffer) is not _part(results, index):
                self.problems.append(f"result {list(index)} is written over")
            if buffer in taken:
                self.problems.append(f"result {list(index)} is another one too")
            taken.add(buffer)
        kept = [
            (op, index)
            for op in self.module.instructions
            if isinstance(op, ConstantOp)
            or (isinstance(op, ParameterOp) and op.parent_op() is entry)
            for index, part in leaves(op.shape)
            if isinstance(part, ArrayShape)
        ]
        for op, index in kept:
            buffer = self.buffer(op, index)
            if buffer in given:
                continue
            if len(self.aliases.buffers[buffer]) > 1 or buffer in taken:
                self.problems.append(f"{op.instruction_name}{list(index)} is not only read")
