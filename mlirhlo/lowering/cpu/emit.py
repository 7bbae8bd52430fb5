"""The plan of a module as one module of the loops stage, with a function that runs it.

`main(parameters, results, arena)` takes two arrays of pointers, in the order of the leaves, and the
arena. Buffers are views of them.
"""

from __future__ import annotations

from collections import Counter
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
from mlirhlo.dialects.quick import create_op, module_of
from mlirhlo.lowering.builder import SELDOM, FunctionBuilder
from mlirhlo.lowering.cpu.loop_functions import LoopCode
from mlirhlo.lowering.cpu.plan import MAIN as MAIN
from mlirhlo.lowering.cpu.plan import Plan
from mlirhlo.lowering.cpu.registers import arguments_of, registers_of
from mlirhlo.lowering.cpu.step_code import BYTES, StepCode
from mlirhlo.lowering.cpu.steps import Buffer, Callback, Kernel, Strands, While, touched
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.hlo_to_loops.outside import declaration

POINTERS = MemRefType(BYTES, [DYNAMIC_INDEX])
"""An array of pointers."""

_MANY_STEPS = 100
"""As many calls are not worth LLVM's effort."""

CALLBACK = "mlirhlo_callback"
"""Function outside that runs a site in Python: `(site, pointers to its buffers) -> 1 if it failed`."""


MARK = "mlirhlo_mark"
"""Function outside that is told of every kernel: `(number of the step, 1 before and 0 after it)`."""


def emit_module(plan: Plan, *, marks: list[Kernel] | None = None) -> ModuleOp:
    """All kernels and `main`. With `marks`, `main` tells of every kernel, and they are listed there."""
    emitter = _Emitter(plan, marks)
    main = emitter.main()
    outside = [declaration(CALLBACK, [i64, POINTERS], [i8])] if plan.sites else []
    outside += [declaration(MARK, [i64, i64])] if marks is not None else []
    helpers = helpers_of(plan.kernels.values())
    kernels = [f for name, f in plan.kernels.items() if name in emitter.called]
    return module_of([*emitter.globals, *outside, *helpers, *kernels, *emitter.loops, main])


class _Emitter(StepCode):
    def __init__(self, plan: Plan, marks: list[Kernel] | None) -> None:
        super().__init__(FunctionBuilder(MAIN, [POINTERS, POINTERS, BYTES]), plan.kernels)
        self.plan = plan
        self.marks = marks
        self.globals: list[Operation] = []
        self.loops: list[FuncOp] = []
        """Functions of loops."""
        self.called: set[str] = set()
        """Names of the kernels that are called."""
        self.named = Counter(touched(plan.steps))
        """How often steps name each buffer, and the caller."""
        self.named.update(b.home or b for b in plan.results)
        self.failed: SSAValue | None = None
        """Whether a callback has failed, in modules that have some: then loops end."""

    def main(self) -> FuncOp:
        b = self.b
        parameters, results, arena = b.arguments
        for pointers, buffers in ((parameters, self.plan.parameters), (results, self.plan.results)):
            for number, buffer in enumerate(buffers):
                self.bases[buffer.home or buffer] = b.load(pointers, [number])
        for number, buffer in enumerate(self.plan.constants):
            self.bases[buffer] = self._constant(buffer, f"constant_{number}")
        if self.plan.sites:
            self.failed = b.scratch([1], i8)
            b.store(b.constant(0, i8), self.failed, [0])
        for buffer in self.plan.buffers:
            self.bases[buffer] = self.at(arena, buffer.offset, BYTES)
        self.steps(self.plan.steps)
        main = b.finish()
        if len(self.plan.steps) > _MANY_STEPS:
            main.attributes[SELDOM] = UNIT
        return main

    def _constant(self, buffer: Buffer, name: str) -> SSAValue:
        literal = buffer.literal
        assert literal is not None
        data = _physical_bytes(buffer)
        type_ = MemRefType(i8, [len(data)])
        value: Attribute = UnitAttr()
        if data:
            from xdsl.dialects.builtin import BytesAttr

            value = DenseIntOrFPElementsAttr(
                cast(Any, TensorType(i8, [len(data)])), BytesAttr(data)
            )
        self.globals.append(
            create_op(
                memref.GlobalOp,
                properties={
                    "sym_name": StringAttr(name),
                    "sym_visibility": StringAttr("private"),
                    "type": type_,
                    "initial_value": value,
                    "constant": UnitAttr(),
                    "alignment": IntegerAttr(64, i64),
                },
            )
        )
        return self.b.emit(memref.GetGlobalOp, (), type_, {"name": symbol_ref(name)})

    def kernel(self, step: Kernel) -> None:
        """A call, of which `marks` are told."""
        self.called.add(step.name)
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

    def goes_on(self, step: While) -> SSAValue:
        """No loop goes on after a callback has failed."""
        test = super().goes_on(step)
        if self.failed is None:
            return test
        b = self.b
        return b.andi(test, b.cmpi("eq", b.load(self.failed, [0]), b.constant(0, i8)))

    def loop(self, step: While) -> None:
        """Of its own function where scalars of it may stay in registers."""
        if step.strands is not None:
            self._strands(step, step.strands)
        elif self.marks is not None or self.failed is not None or not self._apart(step):
            super().loop(step)

    def _apart(self, step: While) -> bool:
        registers = registers_of(step, self.kernels, self.named)
        if registers is None:
            return False
        name, buffers = f"loop_{len(self.loops)}", arguments_of(step)
        code = LoopCode(name, buffers, self.kernels, registers)
        self.loops.append(code.function(step))
        self.called |= code.called
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
            counter = b.scratch([1], i32)
            self.bases[strands.counter] = counter
            begin, end = (
                b.div(b.mul(at, strands.rounds), count) for at in (strand, b.add(strand, 1))
            )
            with b.loop(begin, end) as number:
                b.store(b.cast_index(b.index(b.add(number, strands.first)), i32), counter, [0])
                self.steps(step.body)
        self.bases = outer


def _physical_bytes(buffer: Buffer) -> bytes:
    """A constant as it stands in memory."""
    import numpy as np

    from mlirhlo.lowering.hlo_to_loops.elements import physical_order

    assert buffer.literal is not None
    values = buffer.literal.array
    return np.ascontiguousarray(values.transpose(physical_order(buffer.shape))).tobytes()
