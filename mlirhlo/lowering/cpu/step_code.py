"""Steps of a plan as code of the loops stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.dialects.interned import symbol_ref
from mlirhlo.dialects.memref import GlobalOp
from mlirhlo.dialects.quick import create_op
from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index, memref_of
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Collective,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    While,
)
from mlirhlo.lowering.runtime_symbols import STOP

BYTES = MemRefType(i8, [DYNAMIC_INDEX])
"""Memory of any size."""

_FLAG = MemRefType(i8, [1])


def stop_flag() -> Operation:
    """The declaration of the byte."""
    return create_op(
        GlobalOp,
        properties={
            "sym_name": StringAttr(STOP),
            "sym_visibility": StringAttr("public"),
            "type": _FLAG,
            "initial_value": UnitAttr(),
            "alignment": IntegerAttr(1, i64),
        },
    )


class StepCode:
    """Writes steps into a function."""

    def __init__(self, b: FunctionBuilder, kernels: Mapping[str, FuncOp]) -> None:
        self.b = b
        self.kernels = kernels
        self.bases: dict[Buffer, SSAValue] = {}

    def at(self, source: SSAValue, offset: Index, type_: Attribute) -> SSAValue:
        """Memory as one of a type sees it, from a byte on; sizes that are not known are not read."""
        memory: Any = type_
        sizes = [self.b.index(0)] * memory.get_shape().count(DYNAMIC_INDEX)
        return self.b.emit(memref.ViewOp, [source, self.b.index(offset), *sizes], type_)

    def base(self, buffer: Buffer) -> SSAValue:
        """A buffer as bytes."""
        return self.bases[buffer]

    def view(self, buffer: Buffer, type_: Attribute) -> SSAValue:
        """A buffer as a kernel sees it."""
        base = self.base(buffer)
        return base if base.type == type_ else self.at(base, 0, type_)

    def steps(self, steps: Sequence[Step]) -> None:
        """All of them, in order."""
        for step in steps:
            match step:
                case Kernel():
                    self.kernel(step)
                case Collective():
                    self.collective(step)
                case Callback():
                    self.callback(step)
                case Slice():
                    self.slice(step)
                case Copy():
                    self.copy(step)
                case While():
                    self.loop(step)
                case Branch():
                    self.branch(step)
                case Repeat():
                    raise NotImplementedError("loops of the CPU look at their condition")

    def kernel(self, step: Kernel) -> None:
        """A call."""
        types = self.kernels[step.name].function_type.inputs.data
        buffers = [*step.reads, *step.writes]
        self.b.call(step.name, [self.view(b, t) for b, t in zip(buffers, types, strict=True)])

    def callback(self, step: Callback) -> None:
        """Only main has any."""
        raise NotImplementedError

    def collective(self, step: Collective) -> None:
        """Only main has any."""
        raise NotImplementedError

    def slice(self, step: Slice) -> None:
        """A place, computed where it is reached."""
        b = self.b
        place: Index = 0
        for start, most, unit in step.starts:
            number: Index
            if isinstance(start, Buffer):
                held = b.cast_index(self.scalar(start, i32), INDEX)
                number = b.integer(arith.MaxSIOp, held, b.index(0))
                number = b.minimum(number, most)
            else:
                number = start
            place = b.add(place, b.mul(number, unit))
        base = self.view(step.source, BYTES)
        self.bases[step.target] = b.emit(memref.ViewOp, [base, b.index(place), b.index(0)], BYTES)

    def copy(self, step: Copy) -> None:
        """Bytes; none where both ends lie in one place, which callers decide of some."""
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

    def scalar(self, buffer: Buffer, type_: Attribute) -> SSAValue:
        """What a buffer of one element holds."""
        return self.b.load(self.view(buffer, memref_of(type_)), [])

    def test(self, buffer: Buffer) -> SSAValue:
        """Whether a buffer of one pred holds true."""
        return self.b.cmpi("ne", self.scalar(buffer, i8), self.b.constant(0, i8))

    def goes_on(self, step: While) -> SSAValue:
        """Whether a loop has another round; none has once the run is to stop."""
        b = self.b
        flag = b.emit(memref.GetGlobalOp, (), _FLAG, {"name": symbol_ref(STOP)})
        return b.andi(self.test(step.test), b.cmpi("eq", b.load(flag, [0]), b.constant(0, i8)))

    def _inside(self, steps: Sequence[Step]) -> Block:
        b = self.b
        outer, b.block = b.block, Block()
        self.steps(steps)
        inner, b.block = b.block, outer
        return inner

    def loop(self, step: While) -> None:
        """One round after another."""
        b = self.b
        outer, b.block = b.block, Block()
        self.steps(step.condition)
        b.effect(scf.ConditionOp, [self.goes_on(step)])
        before, b.block = b.block, outer
        after = self._inside(step.body)
        after.add_op(create_op(scf.YieldOp))
        b.block.add_op(create_op(scf.WhileOp, regions=[Region(before), Region(after)]))

    def branch(self, step: Branch) -> None:
        """Tests that halve the branches."""
        self._among(step, self.choice(step), 0, len(step.branches))

    def choice(self, step: Branch) -> SSAValue:
        """What says which branch runs."""
        if step.by_pred:
            return self.test(step.selector)
        return self.scalar(step.selector, i32)

    def is_below(self, step: Branch, choice: SSAValue, number: int) -> SSAValue:
        """Whether the branch that runs has a lower number; what is out of range is the last one's."""
        if step.by_pred:
            return choice
        return self.b.cmpi("ult", choice, self.b.constant(number, i32))

    def _among(self, step: Branch, choice: SSAValue, first: int, end: int) -> None:
        if end - first == 1:
            self.steps(step.branches[first])
            return
        b = self.b
        middle = (first + end) // 2
        test = self.is_below(step, choice, middle)
        regions: list[Region] = []
        for low, high in ((first, middle), (middle, end)):
            outer, b.block = b.block, Block()
            self._among(step, choice, low, high)
            b.effect(scf.YieldOp, [])
            regions.append(Region(b.block))
            b.block = outer
        b.block.add_op(create_op(scf.IfOp, [test], regions=regions))
