"""The plan of a module as one module of the loops stage, with a function that runs it.

`main(parameters, results, arena)` takes two arrays of pointers, in the order of the leaves, and the
arena. Buffers are views of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
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
from mlirhlo.lowering.cpu.collective_code import POINTERS, CollectiveCode, declarations
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
    Collective,
    Kernel,
    Slice,
    Step,
    Strands,
    While,
    named,
    touched,
)
from mlirhlo.nesting import Walk, walked

_MANY_STEPS = 100
"""As many calls are not worth LLVM's effort."""

_DEEPEST = 16
"""Loops and branches inside each other in one function; what is in them all becomes a function of its own."""

_LONGEST = 500
"""Steps in a row in one function, of more become functions of so many: LLVM takes the square of a function's length."""

CALLBACK = "mlirhlo_callback"
"""Function outside that runs a site in Python: `(site, pointers to its buffers) -> 1 if it failed`."""


MARK = "mlirhlo_mark"
"""Function outside that is told of every kernel: `(number of the step, 1 before and 0 after it)`."""


def emit_module(plan: CpuPlan, *, marks: list[Kernel] | None = None) -> ModuleOp:
    """All kernels and `main`. With `marks`, `main` tells of every kernel, and they are listed there."""
    program = _Program(plan, marks)
    main = _Function(program, MAIN).main()
    for number, part in enumerate(program.parts):  # which grows meanwhile
        program.loops.append(_Function(program, _part_name(number), part.local).part(part.steps))
    outside: list[Operation] = [declaration(CALLBACK, [i64, POINTERS], [i8])] if plan.sites else []
    outside += [declaration(MARK, [i64, i64])] if marks is not None else []
    outside += declarations() if any(site.is_native for site in plan.sites) else []
    helpers = helpers_of(plan.kernels.values())
    outside += [stop_flag()] if program.loops_stop else []
    kernels = [f for name, f in plan.kernels.items() if name in program.called]
    return module_of([*program.globals, *outside, *helpers, *kernels, *program.loops, main])


@dataclass
class _Part:
    """Steps that are written into a function of their own."""

    steps: Sequence[Step]
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
        allocated = (*plan.parameters, *plan.results, *plan.constants, *plan.buffers)
        self.order = {b.home or b: number for number, b in enumerate(allocated)}
        """Of what has an address, the order in which functions compute it."""
        self.loops_stop = False
        """Whether a loop looks at the flag that stops the run."""
        self.loops: list[FuncOp] = []
        """Functions of loops."""
        self.parts: list[_Part] = []
        """Of what is nested deeper, or longer, than functions are."""
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


def _runs(steps: Sequence[Step]) -> Iterator[tuple[Sequence[Step], bool]]:
    """Steps as functions run them, and whether these are functions of their own. Slices are not: they are known to the
    function that computes them."""
    if len(steps) <= _LONGEST:
        yield steps, False
        return
    for is_slice, group in groupby(steps, lambda step: isinstance(step, Slice)):
        run = list(group)
        for start in range(0, len(run), _LONGEST):
            yield run[start : start + _LONGEST], not is_slice


def _named_within(steps: Sequence[Step]) -> set[Buffer]:
    """What is named by the function that runs these steps, not by functions that it calls."""
    found: set[Buffer] = set()
    stack = [(steps, 0)]
    while stack:
        block, depth = stack.pop()
        for step in (s for run, is_apart in _runs(block) if not is_apart for s in run):
            found.update(named(step))
            if isinstance(step, While) and step.strands is not None:
                assert step.strands.room is not None
                found.add(step.strands.room)
            if depth < _DEEPEST and isinstance(step, While):
                stack += [(step.condition, depth + 1), (step.body, depth + 1)]
            elif depth < _DEEPEST and isinstance(step, Branch):
                stack += [(branch, depth + 1) for branch in step.branches]
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
        if plan.sites:
            self.failed = b.scratch([1], i8)
            b.store(b.constant(0, i8), self.failed, [0])
        return self.part(plan.steps)

    def part(self, steps: Sequence[Step]) -> FuncOp:
        """The function that runs these steps."""
        order = self.program.order
        own = [b for b in _named_within(steps) if b in order and b not in self.bases]
        for buffer in sorted(own, key=order.__getitem__):
            self.bases[buffer] = self._base(buffer)
        self.steps(steps)
        function = self.b.finish()
        if len(steps) > _MANY_STEPS:
            function.attributes[SELDOM] = UNIT
        return function

    def base(self, buffer: Buffer) -> SSAValue:
        """As bytes; of what only loops with functions of their own name, it is computed for the call."""
        return self.bases[buffer] if buffer in self.bases else self._base(buffer)

    def _base(self, buffer: Buffer) -> SSAValue:
        b, program, (parameters, results, arena) = self.b, self.program, self.b.arguments[:3]
        if buffer.parameter is not None:
            return b.load(parameters, [buffer.parameter])
        if buffer.result is not None:
            return b.load(results, [buffer.result])
        if buffer.literal is None:
            return self.at(arena, buffer.offset, BYTES)
        number = program.constants[buffer]
        type_ = cast("MemRefType[Any]", program.globals[number].properties["type"])
        return b.emit(memref.GetGlobalOp, (), type_, {"name": symbol_ref(f"constant_{number}")})

    def steps(self, steps: Sequence[Step]) -> None:
        """All of them, in order; very many in functions of their own."""
        for run, is_apart in _runs(steps):
            if is_apart:
                self._apart(run)
            else:
                super().steps(run)

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

    def collective(self, step: Collective) -> None:
        """Meets other devices. Contexts stand behind the parameters."""
        plan = self.program.plan
        assert self.failed is not None
        self.program.called.update(step.folds)
        op = plan.sites[step.site].op
        assert op is not None
        context = self.b.load(self.b.arguments[0], [len(plan.parameters)])
        CollectiveCode(self, step, op, context, self.failed).write()

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
            self._apart([step])
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
            self._apart([step])
            return
        self.depth += 1
        super().branch(step)
        self.depth -= 1

    def _apart(self, steps: Sequence[Step]) -> None:
        """A call of a function that is written later."""
        inside = dict.fromkeys(touched(steps)) if self.local else {}
        local = [b for b in self.local if b in inside]
        name = _part_name(len(self.program.parts))
        self.program.parts.append(_Part(steps, local))
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
