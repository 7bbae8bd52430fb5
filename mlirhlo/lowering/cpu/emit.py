"""The plan of a module as one module of the loops stage, with a function that runs it.

`main(parameters, results, arena)` takes two arrays of pointers, in the order of the leaves, and the
arena. Buffers are views of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.interned import UNIT, symbol_ref
from mlirhlo.dialects.memref import GlobalOp
from mlirhlo.dialects.quick import create_op, module_of
from mlirhlo.lowering.builder import SELDOM, FunctionBuilder
from mlirhlo.lowering.cpu.loop_functions import LoopCode
from mlirhlo.lowering.cpu.planner import CpuPlan
from mlirhlo.lowering.cpu.registers import arguments_of, registers_of
from mlirhlo.lowering.cpu.step_code import BYTES, StepCode, stop_flag
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.hlo_to_loops.outside import declaration
from mlirhlo.lowering.plan.in_memory import physical_bytes
from mlirhlo.lowering.plan.plan import MAIN as MAIN
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Kernel,
    Slice,
    Step,
    Strands,
    While,
    named,
    touched,
)
from mlirhlo.nesting import Walk, walked

POINTERS = MemRefType(BYTES, [DYNAMIC_INDEX])
"""An array of pointers."""

_MANY_STEPS = 100
"""As many calls are not worth LLVM's effort."""

_DEEPEST = 16
"""Loops and branches inside each other in one function; what is in them all becomes a function of its own."""

CALLBACK = "mlirhlo_callback"
"""Function outside that runs a site in Python: `(site, pointers to its buffers) -> 1 if it failed`."""


MARK = "mlirhlo_mark"
"""Function outside that is told of every kernel: `(number of the step, 1 before and 0 after it)`."""


def emit_module(plan: CpuPlan, *, marks: list[Kernel] | None = None) -> ModuleOp:
    """All kernels and `main`. With `marks`, `main` tells of every kernel, and they are listed there."""
    program = _Program(plan, marks)
    main = _Function(program, MAIN).main()
    for number, part in enumerate(program.parts):  # which grows meanwhile
        program.loops.append(_Function(program, _part_name(number), part.local).part(part.step))
    outside: list[Operation] = [declaration(CALLBACK, [i64, POINTERS], [i8])] if plan.sites else []
    outside += [declaration(MARK, [i64, i64])] if marks is not None else []
    helpers = helpers_of(plan.kernels.values())
    outside += [stop_flag()] if program.loops_stop else []
    kernels = [f for name, f in plan.kernels.items() if name in program.called]
    return module_of([*program.globals, *outside, *helpers, *kernels, *program.loops, main])


@dataclass
class _Part:
    """A loop or branch that is written into a function of its own."""

    step: Step
    local: Sequence[Buffer]
    """What it touches of the buffers that only its caller knows where they are."""


class _Program:
    """What all functions of a plan write to."""

    def __init__(self, plan: CpuPlan, marks: list[Kernel] | None) -> None:
        self.plan = plan
        self.marks = marks
        self.globals = [
            _global(buffer, f"constant_{number}") for number, buffer in enumerate(plan.constants)
        ]
        self.constants = {buffer: number for number, buffer in enumerate(plan.constants)}
        self.loops_stop = False
        """Whether a loop looks at the flag that stops the run."""
        self.loops: list[FuncOp] = []
        """Functions of loops."""
        self.parts: list[_Part] = []
        """Of what is nested deeper than functions are."""
        self.called: set[str] = set()
        """Names of the kernels that are called."""
        self.named = Counter(touched(plan.steps))
        """How often steps name each buffer, and the caller."""
        self.named.update(b.home or b for b in plan.results)
        self.heights = walked(_heights(plan.steps, {}))


def _heights(steps: Sequence[Step], found: dict[int, int]) -> Walk[dict[int, int]]:
    """By identity, how many loops and branches stand inside each other in one, itself included."""
    for step in steps:
        inside: Sequence[Sequence[Step]] = ()
        if isinstance(step, While):
            inside = (step.condition, step.body)
        elif isinstance(step, Branch):
            inside = step.branches
        for part in inside:
            yield _heights(part, found)
        if inside:
            found[id(step)] = 1 + max(
                (found.get(id(s), 0) for part in inside for s in part), default=0
            )
    return found


def _part_name(number: int) -> str:
    return f"part_{number}"


class _Function(StepCode):
    """`main`, or a part of it that is given the same and what is `local` to its caller."""

    def __init__(self, program: _Program, name: str, local: Sequence[Buffer] = ()) -> None:
        plan = program.plan
        given = [MemRefType(i8, [1])] if plan.sites and name != MAIN else []
        types = [POINTERS, POINTERS, BYTES, *given, *[BYTES] * len(local)]
        super().__init__(FunctionBuilder(name, types), plan.kernels)
        self.program = program
        self.marks = program.marks
        self.depth = 0
        """How many loops and branches are around what is written."""
        self.failed: SSAValue | None = None
        """Whether a callback has failed, in modules that have some: then loops end."""
        if given:
            self.failed = self.b.arguments[3]
        if local:
            self.bases.update(zip(local, self.b.arguments[-len(local) :], strict=True))
        self.local = dict.fromkeys(local)

    def main(self) -> FuncOp:
        """The function that runs the module."""
        b, plan = self.b, self.program.plan
        for buffer in (*plan.parameters, *plan.results, *plan.constants):
            self._find(buffer.home or buffer)
        if plan.sites:
            self.failed = b.scratch([1], i8)
            b.store(b.constant(0, i8), self.failed, [0])
        for buffer in plan.buffers:
            self._find(buffer)
        self.steps(plan.steps)
        main = b.finish()
        if len(plan.steps) > _MANY_STEPS:
            main.attributes[SELDOM] = UNIT
        return main

    def part(self, step: Step) -> FuncOp:
        """The function that runs one step."""
        stack = [(step, 0)]
        while stack:
            inner, depth = stack.pop()
            for buffer in named(inner):
                if buffer.part_of is None:
                    self._find(buffer)
            if isinstance(inner, While) and inner.strands is not None:
                assert inner.strands.room is not None
                self._find(inner.strands.room)
            if depth < _DEEPEST and isinstance(inner, While):
                stack += [(s, depth + 1) for s in (*inner.condition, *inner.body)]
            elif depth < _DEEPEST and isinstance(inner, Branch):
                stack += [(s, depth + 1) for branch in inner.branches for s in branch]
        self.steps([step])
        return self.b.finish()

    def _find(self, buffer: Buffer) -> None:
        """Where a buffer is that the plan has a place for."""
        if buffer in self.bases:
            return
        b, (parameters, results, arena) = self.b, self.b.arguments[:3]
        if buffer.parameter is not None:
            self.bases[buffer] = b.load(parameters, [buffer.parameter])
        elif buffer.result is not None:
            self.bases[buffer] = b.load(results, [buffer.result])
        elif buffer.literal is not None:
            name = f"constant_{self.program.constants[buffer]}"
            self.bases[buffer] = b.emit(
                memref.GetGlobalOp,
                (),
                cast(
                    "MemRefType[Any]",
                    self.program.globals[self.program.constants[buffer]].properties["type"],
                ),
                {"name": symbol_ref(name)},
            )
        else:
            self.bases[buffer] = self.at(arena, buffer.offset, BYTES)

    def kernel(self, step: Kernel) -> None:
        """A call, of which `marks` are told."""
        self.program.called.add(step.name)
        self._mark(1)
        super().kernel(step)
        self._mark(0, step)

    def _mark(self, begins: int, step: Kernel | None = None) -> None:
        if self.marks is not None:
            b = self.b
            b.call(MARK, [b.constant(len(self.marks), i64), b.constant(begins, i64)])
            if step is not None:
                self.marks.append(step)

    def callback(self, step: Callback) -> None:
        """A call of Python."""
        b, failed = self.b, self.failed
        assert failed is not None
        buffers = [*step.reads, *step.writes]
        pointers = b.scratch([max(len(buffers), 1)], BYTES)
        for at, buffer in enumerate(buffers):
            b.store(self.view(buffer, BYTES), pointers, [at])
        arguments = [b.constant(step.site, i64), b.emit(memref.CastOp, [pointers], POINTERS)]
        status = b.emit(CallOp, arguments, i8, {"callee": symbol_ref(CALLBACK)})
        b.store(b.ori(b.load(failed, [0]), status), failed, [0])

    def slice(self, step: Slice) -> None:
        """A place that only this function knows."""
        super().slice(step)
        self.local[step.target] = None

    def goes_on(self, step: While) -> SSAValue:
        """No loop goes on after a callback has failed."""
        test = super().goes_on(step)
        if self.failed is None:
            return test
        b = self.b
        return b.andi(test, b.cmpi("eq", b.load(self.failed, [0]), b.constant(0, i8)))

    def loop(self, step: While) -> None:
        """Of its own function where scalars of it may stay in registers, or where it is nested too deep."""
        self.program.loops_stop = True
        height = self.program.heights[id(step)]
        if step.strands is not None:
            self._strands(step, step.strands)
        elif self.depth == _DEEPEST:
            self._apart(step)
        elif (
            self.marks is not None
            or self.failed is not None
            or self.depth + height > _DEEPEST
            or not self._in_registers(step)
        ):
            self.depth += 1
            super().loop(step)
            self.depth -= 1

    def branch(self, step: Branch) -> None:
        """Of its own function where it is nested too deep."""
        if self.depth == _DEEPEST:
            self._apart(step)
            return
        self.depth += 1
        super().branch(step)
        self.depth -= 1

    def _apart(self, step: Step) -> None:
        """A call of a function that is written later."""
        inside = dict.fromkeys(touched([step])) if self.local else {}
        local = [b for b in self.local if b in inside]
        name = _part_name(len(self.program.parts))
        self.program.parts.append(_Part(step, local))
        arguments = [*self.b.arguments[:3], *([] if self.failed is None else [self.failed])]
        self.b.call(name, [*arguments, *(self.view(b, BYTES) for b in local)])

    def _in_registers(self, step: While) -> bool:
        program = self.program
        registers = registers_of(step, self.kernels, program.named)
        if registers is None:
            return False
        name, buffers = f"loop_{len(program.loops)}", arguments_of(step)
        code = LoopCode(name, buffers, self.kernels, registers)
        program.loops.append(code.function(step))
        program.called |= code.called
        self.b.call(name, [self.view(b, BYTES) for b in buffers])
        return True

    def _strands(self, step: While, strands: Strands) -> None:
        """Ranges of rounds at the same time; one after another where somebody is told of kernels."""
        b, outer = self.b, dict(self.bases)
        assert strands.room is not None
        room = self.bases[strands.room]
        together = self.marks is None
        count = strands.count if together else 1
        with b.parallel(count) if together else b.loop(0, 1) as strand:
            start = b.mul(strand, strands.size)
            for buffer in strands.private:
                place = b.index(b.add(start, buffer.offset))
                self.bases[buffer] = b.emit(memref.ViewOp, [room, place, b.index(0)], BYTES)
            self.bases[strands.counter] = b.scratch([4], i8)
            counter = self.view(strands.counter, MemRefType(i32, [1]))
            self.local.update(dict.fromkeys((*strands.private, strands.counter)))
            begin, end = (
                b.div(b.mul(at, strands.rounds), count) for at in (strand, b.add(strand, 1))
            )
            with b.loop(begin, end) as number:
                b.store(b.cast_index(b.index(b.add(number, strands.first)), i32), counter, [0])
                self.steps(step.body)
        self.bases = outer


def _global(buffer: Buffer, name: str) -> Operation:
    """A constant in the module."""
    data = physical_bytes(buffer)
    value: Attribute = UnitAttr()
    if data:
        from xdsl.dialects.builtin import BytesAttr

        value = DenseIntOrFPElementsAttr(cast(Any, TensorType(i8, [len(data)])), BytesAttr(data))
    return create_op(
        GlobalOp,
        properties={
            "sym_name": StringAttr(name),
            "sym_visibility": StringAttr("private"),
            "type": MemRefType(i8, [len(data)]),
            "initial_value": value,
            "constant": UnitAttr(),
            "alignment": IntegerAttr(64, i64),
        },
    )
