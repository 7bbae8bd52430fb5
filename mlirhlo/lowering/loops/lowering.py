"""How structured ops become loops: a class for each op, in a file of its own.

    @lowers(RandomBitsOp)
    class RandomBits(Lowering[RandomBitsOp]):
        kinds = ("blocks",)                          # algorithms; passes choose one
        def lanes(self, op, kind): return 16         # passes write what these say where nothing is written yet
        def emit(self, k, op, schedule): …           # obeys the schedule, and chooses nothing

`structured.schedule` of an op holds the choices (`schedule/loop_schedule.py`); the passes of
`schedule/loop_passes.py` set it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from mlirhlo.diagnostics import error
from mlirhlo.dialects.structured import (
    AssembleOp,
    GatherOp,
    KernelOp,
    MapOp,
    ReturnOp,
    StructuredOp,
)
from mlirhlo.lowering.hlo_to_loops.helpers import helpers_of
from mlirhlo.lowering.loops.kernel import LoopKernel, no_loops
from mlirhlo.lowering.loops.schedule import LoopSchedule
from mlirhlo.lowering.schedule.attributes import SCHEDULE, read_schedule

OpT = TypeVar("OpT", bound=StructuredOp)

LANES = 16
"""Lanes where nothing speaks for others: of 32 bits, those of the widest vectors."""
_MAX_LANES = 64


class Lowering(ABC, Generic[OpT]):
    """How ops of one class become loops."""

    kinds: ClassVar[tuple[str, ...]]
    """The algorithms."""

    def kind(self, op: OpT) -> str:
        """The algorithm that suits an op."""
        del op
        return self.kinds[0]

    def lanes(self, op: OpT, kind: str) -> int:
        """Elements of a vector; 0 for none."""
        del op, kind
        return LANES

    def chunk(self, op: OpT, schedule: LoopSchedule) -> int:
        """Rounds of the loop in a part of the parallel loop, for a schedule with all else."""
        del op, schedule
        return 0

    def capacity(self, op: OpT, kind: str) -> int:
        """Elements of a buffer that is filled before it is looked through."""
        del op, kind
        return 0

    def reason_against(self, op: OpT, schedule: LoopSchedule) -> str:
        """Why there are no loops for a schedule; empty where there are."""
        del op, schedule
        return ""

    @abstractmethod
    def function(self, kernel: KernelOp, op: OpT, schedule: LoopSchedule) -> FuncOp:
        """The loops. Raises `HloError` HLO0432 for a kernel that has none."""


class OpLowering(Lowering[OpT]):
    """How kernels become loops that compute one op, and maps around it where they read and write."""

    def function(self, kernel: KernelOp, op: OpT, schedule: LoopSchedule) -> FuncOp:
        """The loops of the op, between buffers of the kernel."""
        k = LoopKernel(kernel, op)
        self.emit(k, op, schedule)
        return k.finish()

    @abstractmethod
    def emit(self, k: LoopKernel, op: OpT, schedule: LoopSchedule) -> None:
        """Writes the loops. Raises `HloError` HLO0432 for an op that has none."""


_LOWERINGS: dict[type[StructuredOp], Lowering[Any]] = {}
LoweringT = TypeVar("LoweringT", bound=Lowering[Any])


def lowers(*classes: type[StructuredOp]) -> Callable[[type[LoweringT]], type[LoweringT]]:
    """Decorator: the class lowers ops of these classes."""

    def register(lowering: type[LoweringT]) -> type[LoweringT]:
        for cls in classes:
            _LOWERINGS[cls] = lowering()
        return lowering

    return register


def lowering_of(op: object) -> Lowering[Any] | None:
    """The lowering of ops of that class; None for a class without one."""
    return _LOWERINGS.get(type(op))  # type: ignore[arg-type]


def to_loops(kernel: KernelOp, *, check: bool = True) -> FuncOp:
    """The function of loops of a scheduled kernel; `check`: whether its schedule may be one that passes do not choose.

    Raises `HloError`: HLO0432 for a kernel that has none, HLO0806 for a schedule that does not fit its op.
    """
    op = computing(kernel)
    lowering = lowering_of(op)
    if op is None or lowering is None:
        without = op or cast(ReturnOp, kernel.block.last_op)
        raise no_loops(without, "the CPU compiler makes loops of its HLO instruction")
    schedule = read_schedule(op, LoopSchedule)
    if schedule is None:
        raise error("HLO0806", f"`{op.name}` of @{kernel.kernel_name} has no schedule")
    if check:
        _check(op, lowering, schedule)
    return lowering.function(kernel, op, schedule)


def loops_of(module: ModuleOp) -> ModuleOp:
    """The functions of all kernels of a module, and the helpers that they call. Raises what `to_loops` raises."""
    functions = [to_loops(op) for op in module.ops if isinstance(op, KernelOp)]
    return ModuleOp([*helpers_of(functions), *functions])


def computing(kernel: KernelOp) -> StructuredOp | None:
    """The op of a kernel whose schedule holds: one that is computed by loops of its own, or the last of the others."""
    last: StructuredOp | None = None
    for op in kernel.block.ops:
        if isinstance(op, StructuredOp):
            last = op
            if not isinstance(op, MapOp | AssembleOp | GatherOp):
                break
    return last


def _check(op: StructuredOp, lowering: Lowering[Any], schedule: LoopSchedule) -> None:
    lanes = schedule.lanes
    reason = ""
    if schedule.kind not in lowering.kinds:
        reason = f"its kinds are {', '.join(lowering.kinds)}"
    elif not 0 <= lanes <= _MAX_LANES or lanes & (lanes - 1) or lanes == 1:
        reason = f"lanes are 0 or a power of two from 2 to {_MAX_LANES}"
    reason = reason or lowering.reason_against(op, schedule)
    if reason:
        text = op.attributes[SCHEDULE]
        raise error("HLO0806", f"`{text}` is no schedule of `{op.name}`: {reason}")
