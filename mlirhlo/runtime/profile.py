"""Where the time of a module goes: every kernel timed, beside what it moves and computes.

`main` is made with a mark before and after each kernel; a mark costs about a microsecond, of which a
kernel's time holds about half. Bytes and operations are counted as XLA counts them. A
kernel's share of the roofline is the time it needs at least, with this machine's measured memory and
multiply-adds, over the time it took.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirhlo.analysis.cost import Options, analyse
from mlirhlo.analysis.cost.counts import BYTES, FLOPS, TRANSCENDENTALS
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.ops import FusionOp
from mlirhlo.lowering.cpu.compiler import FEATURES
from mlirhlo.lowering.cpu.emit import MAIN, MARK, emit_module
from mlirhlo.lowering.cpu.pipeline import optimize
from mlirhlo.lowering.cpu.planner import plan_module
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.steps import Kernel
from mlirhlo.runtime.executable import Executable
from mlirhlo.runtime.externals import externals
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.limits import limits

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.interp.machine import Machine

Event: TypeAlias = "tuple[str, int, int]"
"""Kernel, start and end in nanoseconds."""

_MARK = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True, slots=True)
class Row:
    """What all calls of one kernel took together."""

    kernel: str
    computes: str
    calls: int
    nanoseconds: int
    bytes: int
    flops: float
    roofline_ns: float
    """The least that memory and arithmetic allow."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One run of a module, kernel by kernel."""

    rows: Sequence[Row]
    """The longest first."""
    events: Sequence[Event]
    """In the order they ran."""
    limits: dict[str, float]
    result: Any
    """Of the run."""

    def table(self) -> str:
        """Text with a line for each kernel."""
        total = sum(r.nanoseconds for r in self.rows) or 1
        memory, peak = self.limits["GB/s"], self.limits["f32"]
        machine = f"{memory:.1f} GB/s, {peak:.0f} GFLOP/s of f32"
        lines = [
            f"{total / 1e3:.1f} us in kernels; this machine: {machine}",
            f"{'us':>10}{'time':>7}{'calls':>7}{'GB/s':>8}{'GFLOP/s':>9}{'roofline':>10}  kernel",
        ]
        for r in self.rows:
            spent = max(r.nanoseconds, 1)
            lines.append(
                f"{spent / 1e3:10.1f}{spent / total:7.1%}{r.calls:7} {r.bytes / spent:7.2f}"
                f" {r.flops / spent:8.2f} {r.roofline_ns / spent:9.1%}  {r.kernel} {r.computes}"
            )
        return "\n".join(lines)

    def chrome_trace(self) -> str:
        """JSON for `chrome://tracing` and Perfetto."""
        start = self.events[0][1] if self.events else 0
        about = {r.kernel: r for r in self.rows}
        return json.dumps(
            {
                "displayTimeUnit": "ns",
                "traceEvents": [
                    {
                        "name": name,
                        "ph": "X",
                        "ts": (begin - start) / 1e3,
                        "dur": (end - begin) / 1e3,
                        "pid": 0,
                        "tid": 0,
                        "args": {"computes": about[name].computes},
                    }
                    for name, begin, end in self.events
                ],
            }
        )


class Marked:
    """A module as machine code that notes when each kernel begins and ends."""

    def __init__(self, module: ModuleOp, wanted: Callable[[str], bool] = lambda name: True) -> None:
        """`wanted` says by name which passes run. Raises `HloError` as compiling does."""
        marks: list[Kernel] = []
        with paused_gc():
            self.fused = optimize(module, wanted=wanted)
            self.plan = plan_module(self.fused)
            loops = emit_module(self.plan, marks=marks)
            text = print_llvm(convert_to_llvm(loops, features=FEATURES))
        self._events: list[Event] = []
        begun = 0

        def mark(number: int, begins: int) -> None:
            nonlocal begun
            now = time.perf_counter_ns()
            if begins:
                begun = time.perf_counter_ns()
            else:
                self._events.append((marks[number].name, begun, now))

        self._function = _MARK(mark)
        outside = externals(text)
        outside[MARK] = ctypes.cast(self._function, ctypes.c_void_p).value or 0
        library = Library([compile_object(text)], [MAIN], outside)
        self.executable = Executable(self.plan, library, MAIN)

    def run(
        self, arguments: Sequence[object], machine: Machine | None = None
    ) -> tuple[Any, list[Event]]:
        """The result, and what ran when. `machine`: gives custom calls their meaning."""
        self._events.clear()
        if machine is None:
            result = self.executable(*arguments)
        else:
            result = self.executable.run_on(machine, 0, 0, arguments)
        return result, list(self._events)


def profile(module: ModuleOp, arguments: Sequence[object], runs: int = 5) -> Profile:
    """Runs a module `runs` times and profiles the quickest run.

    Raises `HloError` as compiling and calling it.
    """
    marked = Marked(module)
    best: tuple[int, list[Event], Any] | None = None
    for _ in range(runs):
        # Results that are kept would leave the next run memory that the system has yet to give.
        result, events = marked.run(arguments)
        spent = sum(end - begin for _, begin, end in events)
        if best is None or spent < best[0]:
            best = (spent, events, result)
    assert best is not None
    _, quickest, result = best
    measured = limits()
    rows = _rows(marked.fused, marked.plan, quickest, measured)
    return Profile(rows, quickest, measured, result)


def _rows(
    module: ModuleOp,
    plan: Plan,
    events: Sequence[Event],
    measured: dict[str, float],
) -> list[Row]:
    costs = analyse(module, Options(gathers_read_what_they_take=True)).instructions
    rows: list[Row] = []
    for name in dict.fromkeys(name for name, _, _ in events):
        spans = [end - begin for other, begin, end in events if other == name]
        op = plan.instructions[name]
        cost = costs.get(op)
        flops = 0.0 if cost is None else cost.get(FLOPS) + cost.get(TRANSCENDENTALS)
        moved = 0 if cost is None else int(cost.get(BYTES))
        least = max(moved / measured["GB/s"], flops / measured["f32"])
        count = len(spans)
        what = op.calls if isinstance(op, FusionOp) else op.opcode.name
        rows.append(Row(name, what, count, sum(spans), moved * count, flops * count, least * count))
    return sorted(rows, key=lambda r: -r.nanoseconds)
