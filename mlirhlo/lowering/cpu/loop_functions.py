"""Loops as functions of their own, whose scalars are values that rounds hand on.

    while (i < n) { t = f(i); i = i + 1 }   with f and the rest kernels of a few instructions

is `@loop_0(buffers)`: the kernels' instructions stand in the rounds of one `scf.while`, which carries `i`; loads of
scalars are gone, stores stand behind the loop. Which scalars: `registers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.dialects.quick import append, create_op, operands_of, ops_of
from mlirhlo.lowering.builder import FunctionBuilder, memref_of
from mlirhlo.lowering.cpu.registers import Registers, is_inlined
from mlirhlo.lowering.cpu.step_code import BYTES, StepCode
from mlirhlo.lowering.plan.steps import Branch, Buffer, Copy, Kernel, Step, While, all_steps

_NOT_EQUAL = 1
"""`arith.cmpi`'s number of `ne`."""


class LoopCode(StepCode):
    """Writes a loop into a function that takes pointers to `buffers`."""

    def __init__(
        self,
        name: str,
        buffers: Sequence[Buffer],
        kernels: Mapping[str, FuncOp],
        registers: Registers,
    ) -> None:
        super().__init__(FunctionBuilder(name, [BYTES] * len(buffers)), kernels)
        self.bases.update(zip(buffers, self.b.arguments, strict=True))
        self.registers = registers
        self.values: dict[Buffer, SSAValue] = {}
        """What scalars are by now; what is missing is in memory, as it was when the function was called."""
        self.called: set[str] = set()
        """Names of the kernels that are called."""
        self._views: dict[tuple[Buffer, Attribute], SSAValue] = {}

    def view(self, buffer: Buffer, type_: Attribute) -> SSAValue:
        """One for each buffer and type of an argument of a kernel."""
        return self._views.get((buffer, type_)) or super().view(buffer, type_)

    def function(self, loop: While) -> FuncOp:
        """The function; when it returns, everything is in memory that others may read."""
        for step in all_steps([loop]):
            if isinstance(step, Kernel):
                types = self.kernels[step.name].function_type.inputs.data
                for place in zip((*step.reads, *step.writes), types, strict=True):
                    if place[0] in self.bases and place[0] not in self.registers.types:
                        self._views[place] = self.view(*place)
        written = set(self.registers.written([loop]))
        for buffer in self.registers.types:
            if buffer not in written:
                self._read(buffer)
        self.loop(loop)
        for buffer in self.registers.carried([loop]):
            if buffer not in self.registers.stored:
                self._to_memory(buffer, self.values[buffer])
        return self.b.finish()

    # Scalars

    def _read(self, buffer: Buffer) -> SSAValue:
        value = self.values.get(buffer)
        if value is None:
            place = self.view(buffer, memref_of(self.registers.types[buffer]))
            value = self.values[buffer] = self.b.load(place, [])
        return value

    def _write(self, buffer: Buffer, value: SSAValue) -> None:
        self.values[buffer] = value
        if buffer in self.registers.stored:
            self._to_memory(buffer, value)

    def _to_memory(self, buffer: Buffer, value: SSAValue) -> None:
        self.b.store(value, self.view(buffer, memref_of(value.type)), [])

    def scalar(self, buffer: Buffer, type_: Attribute) -> SSAValue:
        """What a buffer of one element holds."""
        if buffer in self.registers.types:
            return self._read(buffer)
        return super().scalar(buffer, type_)

    def copy(self, step: Copy) -> None:
        """Of scalars nothing, or a load or store."""
        types = self.registers.types
        type_ = types.get(step.source) or types.get(step.target)
        if type_ is None:
            super().copy(step)
            return
        value = self.scalar(step.source, type_)
        if step.target in types:
            self._write(step.target, value)
        else:
            self._to_memory(step.target, value)

    # Kernels

    def kernel(self, step: Kernel) -> None:
        """Its instructions, or a call."""
        function = self.kernels[step.name]
        if not is_inlined(function):
            self.called.add(step.name)
            super().kernel(step)
            return
        body = function.body.blocks[0]
        known: dict[SSAValue, SSAValue] = {}
        scalars: dict[SSAValue, Buffer] = {}
        for argument, buffer in zip(body.args, (*step.reads, *step.writes), strict=True):
            if buffer in self.registers.types:
                scalars[argument] = buffer
            else:
                known[argument] = self.view(buffer, argument.type)
        self._ops(ops_of(body)[:-1], known, scalars)

    def _ops(
        self,
        ops: Sequence[Operation],
        known: dict[SSAValue, SSAValue],
        scalars: Mapping[SSAValue, Buffer],
    ) -> None:
        """The ops again, with what is `known` in place of their operands."""
        for op in ops:
            operands = operands_of(op)
            if op.name == "memref.load" and operands[0] in scalars:
                known[op.results[0]] = self._read(scalars[operands[0]])
            elif op.name == "memref.store" and operands[1] in scalars:
                self._write(scalars[operands[1]], known[operands[0]])
            elif op.name == "scf.if" and _is_never(known[operands[0]]):
                continue
            else:
                again = create_op(
                    type(op),
                    [known[v] for v in operands],
                    [r.type for r in op.results],
                    dict(op.properties),
                    regions=[self._region(r, known, scalars) for r in op.regions],
                    attributes=dict(op.attributes),
                )
                append(self.b.block, again)
                known.update(zip(op.results, again.results, strict=True))

    def _region(
        self,
        region: Region,
        known: dict[SSAValue, SSAValue],
        scalars: Mapping[SSAValue, Buffer],
    ) -> Region:
        if not region.blocks:
            return Region()
        block = Block(arg_types=[a.type for a in region.block.args])
        known.update(zip(region.block.args, block.args, strict=True))
        before, outer = dict(self.values), self.b.block
        self.b.block = block
        self._ops(ops_of(region.block), known, scalars)
        self.b.block, self.values = outer, before
        return Region(block)

    # Control flow

    def loop(self, step: While) -> None:
        """A loop that carries its scalars."""
        steps = [step]
        test: Step = Copy(step.test, step.test)
        carried = self.registers.carried(steps, [*step.condition, test], step.body)
        initial = [self._read(b) for b in carried]
        types = [v.type for v in initial]
        around = self._without(steps)
        before, after = (Block(arg_types=types) for _ in range(2))
        outer, self.b.block = self.b.block, before
        self.values = {**around, **dict(zip(carried, before.args, strict=True))}
        self.steps(step.condition)
        test_value = self.goes_on(step)
        self.b.effect(scf.ConditionOp, [test_value, *map(self._read, carried)])
        self.b.block = after
        self.values = {**around, **dict(zip(carried, after.args, strict=True))}
        self.steps(step.body)
        self.b.effect(scf.YieldOp, [self._read(b) for b in carried])
        self.b.block = outer
        op = create_op(scf.WhileOp, initial, types, regions=[Region(before), Region(after)])
        append(outer, op)
        self.values = {**around, **dict(zip(carried, op.results, strict=True))}

    def _without(self, steps: Sequence[Step]) -> dict[Buffer, SSAValue]:
        """What scalars are that these steps do not write."""
        written = set(self.registers.written(steps))
        return {b: v for b, v in self.values.items() if b not in written}

    def branch(self, step: Branch) -> None:
        """Tests, each of which gives the scalars that a branch writes."""
        choice = self.choice(step)
        carried = self.registers.carried([step])
        around = self._without([step])
        results = self._chosen(step, choice, (0, len(step.branches)), carried)
        self.values = {**around, **dict(zip(carried, results, strict=True))}

    def _chosen(
        self, step: Branch, choice: SSAValue, numbers: tuple[int, int], carried: Sequence[Buffer]
    ) -> Sequence[SSAValue]:
        first, end = numbers
        if end - first == 1:
            self.steps(step.branches[first])
            return [self._read(b) for b in carried]
        middle = (first + end) // 2
        test = self.is_below(step, choice, middle)
        before, outer = dict(self.values), self.b.block
        blocks = [Block(), Block()]
        types: list[Attribute] = []
        for block, part in zip(blocks, ((first, middle), (middle, end)), strict=True):
            self.b.block, self.values = block, dict(before)
            values = self._chosen(step, choice, part, carried)
            types = [v.type for v in values]
            self.b.effect(scf.YieldOp, values)
        self.b.block, self.values = outer, before
        op = create_op(scf.IfOp, [test], types, regions=[Region(b) for b in blocks])
        append(outer, op)
        return op.results


def _is_never(condition: SSAValue) -> bool:
    """Whether it asks if one buffer is two: kernels do that may update their operand."""
    compared = condition.owner
    if not isinstance(compared, arith.CmpiOp) or compared.predicate.value.data != _NOT_EQUAL:
        return False
    asked = [v.owner for v in (compared.lhs, compared.rhs)]
    if not all(isinstance(a, memref.ExtractAlignedPointerAsIndexOp) for a in asked):
        return False
    one, other = (operands_of(cast(Operation, a))[0] for a in asked)
    return one is other
