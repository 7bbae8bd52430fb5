"""The costs of a module on a chip."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.call_graph import call_graph
from mlirhlo.analysis.trip_count import known_trip_count, trip_count
from mlirhlo.debug.cost.caches import moved_bytes
from mlirhlo.debug.cost.chip import Chip, chip
from mlirhlo.debug.cost.kernels import Duration, Work, duration, kernel_work
from mlirhlo.debug.cost.links import collective_ns
from mlirhlo.debug.cost.memory import MemoryProfile, memory_profile
from mlirhlo.debug.cost.report import CostReport, InstructionCost, Overlap
from mlirhlo.debug.cost.schedule import Run, run_schedule
from mlirhlo.debug.graph.costs import analyse_with_libraries
from mlirhlo.debug.sources import source_line
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import printed_names
from mlirhlo.dialects.hlo.ops import (
    AsyncStartOp,
    CallOp,
    ComputationOp,
    ConditionalOp,
    FusionOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.table import Opcode
from mlirhlo.interp.device_counts import device_counts

_NONE = Duration(0.0, "launch")


def _is_kernel(row: Opcode) -> bool:
    """Whether it takes time of its own: what ends an asynchronous pair takes the time of its start."""
    return not row.free and not row.name.endswith(("-id", "-done", "-update"))


def estimate(module: ModuleOp, target: Chip) -> CostReport:
    """Costs of a module, whose order of instructions is its schedule, on a chip.

    Raises `HloError` for a module that is not whole.
    """
    with paused_gc():
        return _Estimate(module, target).report()


class _Estimate:
    """One module on one chip."""

    def __init__(self, module: ModuleOp, target: Chip) -> None:
        self.module, self.chip = HloModule(module), target
        self.costs, unknown = analyse_with_libraries(module, trip_counts=True)
        counts = device_counts(self.module)
        self.devices = counts.replicas * counts.partitions
        self.by_name = self.module.by_name()
        ops = [op for c in self.by_name.values() for op in instruction_list(c)]
        names = printed_names([(op.instruction_name, op.opcode.name) for op in ops])
        self.names = dict(zip(ops, names, strict=True))
        self.unknown = [f"custom-call %{self.names[op]}" for op in unknown]
        self.runs: dict[str, Run] = {}
        self.durations: dict[Instruction, Duration] = {}
        self.works: dict[Instruction, Work] = {}
        self.moved: dict[Instruction, dict[str, float]] = {}
        self.executions: dict[str, float] = {}

    def report(self) -> CostReport:
        """Computations are run after those they call."""
        entry = self.module.entry.computation_name
        running = self._running()
        for computation in running:
            order = instruction_list(computation)
            self.moved |= moved_bytes(order, self.costs.instructions, self._inside)
            for op in order:
                self.durations[op] = self._duration(op)
            self.runs[computation.computation_name] = run_schedule(order, self._nanoseconds)
        self._count_executions(entry, running)
        main = self.runs[entry]
        return CostReport(
            self.module.name,
            self.chip.name,
            self.devices,
            self.costs.flops,
            self.costs.bytes_accessed,
            self.costs.transcendentals,
            main.total * 1e-9,
            main.critical * 1e-9,
            tuple(self.names[op] for op in main.path),
            {name: run.total * 1e-9 for name, run in self.runs.items()},
            self._instructions(),
            self._overlaps(),
            tuple(self.unknown),
            self._memory(),
        )

    def _running(self) -> list[ComputationOp]:
        """The entry and the computations that it runs by calls and control flow, callees first."""
        entry = self.module.entry.computation_name
        wanted, stack = {entry}, [entry]
        while stack:
            for op in self.by_name[stack.pop()].instructions:
                for name, _ in self._callees(op):
                    if name not in wanted:
                        wanted.add(name)
                        stack.append(name)
        order = call_graph(self.module.op).post_order()
        return [c for c in order if c.computation_name in wanted]

    def _callees(self, op: Instruction) -> list[tuple[str, float]]:
        """Computations that an instruction runs, and how often at most."""
        match op:
            case WhileOp():
                trips = self._trips(op)
                count = 1 if trips is None else trips
                found = [(op.body, float(count)), (op.condition, count + 1.0)]
            case ConditionalOp() | CallOp() | AsyncStartOp():
                found = [(name, 1.0) for name in op.called_computations]
            case _:
                return []
        return [(name, times) for name, times in found if name in self.by_name]

    def _trips(self, op: WhileOp) -> int | None:
        """How often a loop runs, where its text or its counter says so."""
        known = known_trip_count(op)
        return trip_count(op, self.by_name) if known is None else known

    def _nanoseconds(self, op: Instruction) -> float:
        return self.durations[op].nanoseconds

    def _duration(self, op: Instruction) -> Duration:
        if not _is_kernel(op.opcode):
            return _NONE
        if callees := self._callees(op):
            times = [self.runs[c].total * n for c, n in callees if c in self.runs]
            if isinstance(op, WhileOp) and self._trips(op) is None:
                self.unknown.append(f"trip count of %{self.names[op]}, taken as 1")
            total = max(times, default=0) if isinstance(op, ConditionalOp) else sum(times)
            return Duration(total, "calls")
        if op.opcode.collective:
            return Duration(collective_ns(op, self.devices, self.chip.link), "link")
        work = self.works[op] = kernel_work(
            op, self._inside(op), self.costs.instructions, self.moved.get(op, {})
        )
        return duration(work, self.chip)

    def _inside(self, op: Instruction) -> Sequence[Instruction]:
        """The instructions of a kernel: the fused ones, or the instruction itself."""
        if isinstance(op, FusionOp) and op.calls in self.by_name:
            return instruction_list(self.by_name[op.calls])
        return (op,)

    def _count_executions(self, entry: str, running: Sequence[ComputationOp]) -> None:
        """How often each computation runs; of branches, the longest."""
        self.executions = {c.computation_name: 0.0 for c in running}
        self.executions[entry] = 1.0
        for computation in reversed(running):
            times = self.executions[computation.computation_name]
            for op in computation.instructions:
                callees = self._callees(op)
                if isinstance(op, ConditionalOp) and callees:
                    callees = [max(callees, key=lambda callee: self.runs[callee[0]].total)]
                for name, count in callees:
                    self.executions[name] += times * count

    def _instructions(self) -> tuple[InstructionCost, ...]:
        found: list[InstructionCost] = []
        tables = self.module.stack_frames
        for name in self.runs:
            for op in self.by_name[name].instructions:
                spent, work = self.durations[op], self.works.get(op, Work())
                if not spent.nanoseconds:
                    continue
                found.append(
                    InstructionCost(
                        self.names[op],
                        name,
                        op.opcode.name,
                        work.flops,
                        work.bytes,
                        work.transcendentals,
                        spent.nanoseconds * 1e-9,
                        self.executions[name],
                        spent.bound,
                        source_line(op.metadata, tables),
                    )
                )
        return tuple(sorted(found, key=lambda row: -row.total_seconds))

    def _overlaps(self) -> tuple[Overlap, ...]:
        return tuple(
            Overlap(
                self.names[pair.start],
                name,
                pair.duration * 1e-9,
                (pair.duration - pair.exposed) * 1e-9,
            )
            for name, run in self.runs.items()
            for pair in run.pairs
        )

    def _memory(self) -> MemoryProfile | None:
        with suppress(HloError, ValueError, KeyError):
            return memory_profile(self.module, lambda op: self.names[op])
        return None


def estimate_kernels(module: ModuleOp) -> dict[Instruction, Work]:
    """Work of each instruction of the computations that run."""
    found = _Estimate(module, chip("epyc-core"))
    found.report()
    return found.works
