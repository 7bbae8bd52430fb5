"""The passes that set schedules of ops that become loops, in the order in which the CPU compiler runs them.

Without options a pass writes what the lowering of each op says suits it, where nothing is written yet. With an option
it writes that value on every op that takes it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.loops.lowering import Lowering, computing, lowering_of
from mlirhlo.lowering.loops.schedule import LoopSchedule
from mlirhlo.lowering.schedule.attributes import SCHEDULE, read_schedule
from mlirhlo.lowering.structured.merge_dimensions import merge_dimensions
from mlirhlo.lowering.structured.move_words import move_words


@dataclass(frozen=True)
class _LoopPass(ModulePass):
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        del ctx
        for kernel in op.ops:
            if isinstance(kernel, KernelOp):
                self.run(kernel)

    def run(self, kernel: KernelOp) -> None:
        """Sets the schedules of one kernel."""
        _run([self], kernel)

    @abstractmethod
    def scheduled(
        self, op: Any, lowering: Lowering[Any], old: LoopSchedule | None
    ) -> LoopSchedule | None:
        """The schedule of an op; None where it stays without one."""


@dataclass(frozen=True)
class CpuChooseAlgorithmPass(_LoopPass):
    """Chooses by which algorithm an op is computed.

    Before:  `%r = structured.sort ins(%x : tensor<9x1000xf32>) dimension 1 …`
    After:   `%r = structured.sort … {structured.schedule = {kind = "radix"}} …`
    Keeps: results, bit for bit. Needs: nothing to have run; leaves ops alone that no algorithm is known for.
    """

    name = "cpu-choose-algorithm"

    kind: str = ""
    """An algorithm, for the ops that have it; empty for the one that suits an op."""
    capacity: int = 0
    """Elements that the kind `collect` has a buffer for; 0 for as many as suit an op."""

    def scheduled(
        self, op: Any, lowering: Lowering[Any], old: LoopSchedule | None
    ) -> LoopSchedule | None:
        """As the class says."""
        kind = self.kind if self.kind in lowering.kinds else ""
        if old is not None and not kind and not self.capacity:
            return old
        kind = kind or (old.kind if old is not None else lowering.kind(op))
        capacity = lowering.capacity(op, kind)
        capacity = capacity and (self.capacity or capacity)
        if old is None:
            return LoopSchedule(kind, capacity=capacity)
        return replace(old, kind=kind, capacity=capacity)


@dataclass(frozen=True)
class CpuVectorizePass(_LoopPass):
    """Chooses how many elements a vector holds.

    Before:  `%r = structured.sort … {structured.schedule = {kind = "radix"}} …`
    After:   `%r = structured.sort … {structured.schedule = {kind = "radix", lanes = 16}} …`
    Keeps: results, bit for bit. Needs: `cpu-choose-algorithm`; leaves ops alone that have lanes.
    """

    name = "cpu-vectorize"

    lanes: int = -1
    """Elements of a vector, 0 for loops without vectors; -1 for as many as suit an op."""

    def scheduled(
        self, op: Any, lowering: Lowering[Any], old: LoopSchedule | None
    ) -> LoopSchedule | None:
        """As the class says."""
        if old is None or (self.lanes < 0 <= old.lanes):
            return old
        return replace(old, lanes=self.lanes if self.lanes >= 0 else lowering.lanes(op, old.kind))


@dataclass(frozen=True)
class CpuParallelizePass(_LoopPass):
    """Cuts loops into parts that threads share.

    Before:  `%r = structured.sort … {structured.schedule = {kind = "radix", lanes = 16}} …`
    After:   `%r = structured.sort … {structured.schedule = {chunk = 1, kind = "radix", lanes = 16}} …`
    Keeps: results, bit for bit. Needs: `cpu-vectorize`; leaves ops alone that are cut.
    """

    name = "cpu-parallelize"

    chunk: int = 0
    """Rounds of the loop in a part: rows of a sort, blocks of random bits; 0 for as many as suit an op."""

    def scheduled(
        self, op: Any, lowering: Lowering[Any], old: LoopSchedule | None
    ) -> LoopSchedule | None:
        """As the class says."""
        if old is None or (not self.chunk and old.chunk):
            return old
        return replace(old, chunk=self.chunk or lowering.chunk(op, old))


def _run(passes: Sequence[_LoopPass], kernel: KernelOp) -> None:
    """Runs passes on a kernel: a schedule is read once and written once."""
    op = computing(kernel)
    lowering = lowering_of(op)
    if op is not None and lowering is not None:
        old = new = read_schedule(op, LoopSchedule)
        for pass_ in passes:
            new = pass_.scheduled(op, lowering, new)
        if new is not None and new != old:
            op.attributes[SCHEDULE] = new.attribute()


LOOP_PASSES: tuple[type[_LoopPass], ...] = (
    CpuChooseAlgorithmPass,
    CpuVectorizePass,
    CpuParallelizePass,
)
"""In the order in which they run."""
_DEFAULTS = [pass_() for pass_ in LOOP_PASSES]


def schedule_loops(kernel: KernelOp) -> None:
    """Runs the passes on a kernel, its words moved and its dimensions merged."""
    move_words(kernel)
    merge_dimensions(kernel)
    _run(_DEFAULTS, kernel)


def schedule_all(module: ModuleOp) -> None:
    """Runs the passes on all kernels of a module."""
    for op in module.ops:
        if isinstance(op, KernelOp):
            schedule_loops(op)
