"""The plan of a module as one module of the loops stage, with a function that runs it.

`main(parameters, results, arena)` takes two arrays of pointers, in the order of the leaves, and the
arena. Buffers are views of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import arith, memref, scf
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
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.interned import UNIT, symbol_ref
from mlirhlo.dialects.quick import create_op, module_of
from mlirhlo.lowering.builder import INDEX, SELDOM, FunctionBuilder, Index
from mlirhlo.lowering.cpu.planner import Plan
from mlirhlo.lowering.cpu.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Slice,
    Step,
    Strands,
    While,
)
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.hlo_to_loops.outside import declaration

BYTES = MemRefType(i8, [DYNAMIC_INDEX])
"""Memory of any size."""
POINTERS = MemRefType(BYTES, [DYNAMIC_INDEX])
"""An array of pointers."""

MAIN = "main"

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
    kernels = list(plan.kernels.values())
    return module_of([*emitter.globals, *outside, *helpers_of(kernels), *kernels, main])


class _Emitter:
    def __init__(self, plan: Plan, marks: list[Kernel] | None) -> None:
        self.plan = plan
        self.marks = marks
        self.globals: list[Operation] = []
        self.b = FunctionBuilder(MAIN, [POINTERS, POINTERS, BYTES])
        self.bases: dict[Buffer, SSAValue] = {}
        self.views: dict[tuple[Buffer, Attribute], SSAValue] = {}
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
            self.bases[buffer] = self._at(arena, buffer.offset, BYTES)
        self.steps(self.plan.steps)
        main = b.finish()
        if len(self.plan.steps) > _MANY_STEPS:
            main.attributes[SELDOM] = UNIT
        return main

    def _at(self, source: SSAValue, offset: int, type_: Attribute) -> SSAValue:
        return self.b.emit(
            memref.ViewOp,
            [source, self.b.index(offset), *([self.b.index(0)] if type_ == BYTES else [])],
            type_,
        )

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

    def view(self, buffer: Buffer, type_: Attribute) -> SSAValue:
        """A buffer as a kernel sees it."""
        base = self.bases[buffer]
        return base if base.type == type_ else self._at(base, 0, type_)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Kernel():
                    function = self.plan.kernels[step.name]
                    types = function.function_type.inputs.data
                    buffers = [*step.reads, *step.writes]
                    arguments = [self.view(b, t) for b, t in zip(buffers, types, strict=True)]
                    self._mark(1)
                    self.b.call(step.name, arguments)
                    self._mark(0, step)
                case Callback():
                    self._callback(step)
                case Slice():
                    self._slice(step)
                case Copy():
                    self._copy(step)
                case While():
                    self._while(step)
                case Branch():
                    self._branch(step)

    def _mark(self, begins: int, step: Kernel | None = None) -> None:
        if self.marks is not None:
            b = self.b
            b.call(MARK, [b.constant(len(self.marks), i64), b.constant(begins, i64)])
            if step is not None:
                self.marks.append(step)

    def _callback(self, step: Callback) -> None:
        b, failed = self.b, self.failed
        assert failed is not None
        buffers = [*step.reads, *step.writes]
        pointers = b.scratch([max(len(buffers), 1)], BYTES)
        for at, buffer in enumerate(buffers):
            b.store(self.view(buffer, BYTES), pointers, [at])
        arguments = [b.constant(step.site, i64), b.emit(memref.CastOp, [pointers], POINTERS)]
        status = b.emit(CallOp, arguments, i8, {"callee": symbol_ref(CALLBACK)})
        b.store(b.ori(b.load(failed, [0]), status), failed, [0])

    def _slice(self, step: Slice) -> None:
        b = self.b
        place: Index = 0
        for start, most, unit in step.starts:
            number: Index
            if isinstance(start, Buffer):
                held = b.load(self.view(start, MemRefType(i32, [1])), [0])
                number = b.integer(arith.MaxSIOp, b.cast_index(held, INDEX), b.index(0))
                number = b.minimum(number, most)
            else:
                number = start
            place = b.add(place, b.mul(number, unit))
        base = self.view(step.source, BYTES)
        self.bases[step.target] = b.emit(memref.ViewOp, [base, b.index(place), b.index(0)], BYTES)

    def _copy(self, step: Copy) -> None:
        if not step.source.size:
            return
        type_ = MemRefType(i8, [step.source.size])
        source, target = (self.view(x, type_) for x in (step.source, step.target))
        b = self.b
        if step.target.alias is not step.source:
            b.effect(memref.CopyOp, [source, target])
            return
        addresses = [
            b.emit(memref.ExtractAlignedPointerAsIndexOp, [v], INDEX) for v in (source, target)
        ]
        with b.if_(b.cmpi("ne", *addresses)):
            b.effect(memref.CopyOp, [source, target])

    def _test(self, buffer: Buffer) -> SSAValue:
        byte = self.b.load(self.view(buffer, MemRefType(i8, [1])), [0])
        return self.b.cmpi("ne", byte, self.b.constant(0, i8))

    def _inside(self, steps: Sequence[Step]) -> Block:
        b = self.b
        outer, b.block = b.block, Block()
        self.steps(steps)
        inner, b.block = b.block, outer
        return inner

    def _while(self, step: While) -> None:
        if step.strands is not None:
            self._strands(step, step.strands)
            return
        b = self.b
        outer, b.block = b.block, Block()
        self.steps(step.condition)
        test = self._test(step.test)
        if self.failed is not None:
            intact = b.cmpi("eq", b.load(self.failed, [0]), b.constant(0, i8))
            test = b.andi(test, intact)
        b.effect(scf.ConditionOp, [test])
        before, b.block = b.block, outer
        after = self._inside(step.body)
        after.add_op(create_op(scf.YieldOp))
        b.block.add_op(create_op(scf.WhileOp, regions=[Region(before), Region(after)]))

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

    def _branch(self, step: Branch) -> None:
        """A chain of tests: branches are few."""
        b = self.b
        if step.selector.shape.element_type.kind is Kind.PRED:
            tests = [self._test(step.selector)]
        else:
            number = b.load(self.view(step.selector, MemRefType(i32, [1])), [0])
            tests = [
                b.cmpi("eq", number, b.constant(at, i32)) for at in range(len(step.branches) - 1)
            ]
        self._chain(tests, step.branches)

    def _chain(self, tests: Sequence[SSAValue], branches: Sequence[list[Step]]) -> None:
        if not tests:
            self.steps(branches[0])
            return
        b = self.b
        then = self._inside(branches[0])
        then.add_op(create_op(scf.YieldOp))
        outer, b.block = b.block, Block()
        self._chain(tests[1:], branches[1:])
        other, b.block = b.block, outer
        other.add_op(create_op(scf.YieldOp))
        b.block.add_op(create_op(scf.IfOp, [tests[0]], regions=[Region(then), Region(other)]))


def _physical_bytes(buffer: Buffer) -> bytes:
    """A constant as it stands in memory."""
    import numpy as np

    from mlirhlo.lowering.hlo_to_loops.elements import physical_order

    assert buffer.literal is not None
    values = buffer.literal.array
    return np.ascontiguousarray(values.transpose(physical_order(buffer.shape))).tobytes()
