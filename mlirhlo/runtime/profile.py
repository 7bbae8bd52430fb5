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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirhlo.analysis.cost import Options, analyse
from mlirhlo.analysis.cost.counts import BYTES, FLOPS, TRANSCENDENTALS
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.ops import FusionOp
from mlirhlo.lowering.cpu.compiler import FEATURES
from mlirhlo.lowering.cpu.emit import MAIN, MARK, emit_module
from mlirhlo.lowering.cpu.pipeline import optimize
from mlirhlo.lowering.cpu.plan import Plan
from mlirhlo.lowering.cpu.planner import plan_module
from mlirhlo.lowering.cpu.steps import Kernel
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.executable import Executable
from mlirhlo.runtime.externals import externals
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.limits import limits

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

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
    events: Sequence[tuple[str, int, int]]
    """Kernel, start and end in nanoseconds, in the order they ran."""
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


def profile(module: ModuleOp, arguments: Sequence[object], runs: int = 5) -> Profile:
    """Runs a module `runs` times and profiles the quickest run.

    Raises `HloError` as compiling and calling it.
    """
    marks: list[Kernel] = []
    with paused_gc():
        fused = optimize(module)
        plan = plan_module(fused)
        text = print_llvm(convert_to_llvm(emit_module(plan, marks=marks), features=FEATURES))
    events: list[tuple[str, int, int]] = []
    begun = 0

    def mark(number: int, begins: int) -> None:
        nonlocal begun
        now = time.perf_counter_ns()
        if begins:
            begun = time.perf_counter_ns()
        else:
            events.append((marks[number].name, begun, now))

    function = _MARK(mark)
    outside = externals(text)
    outside[MARK] = ctypes.cast(function, ctypes.c_void_p).value or 0
    executable = Executable(plan, Library([compile_object(text)], [MAIN], outside), MAIN)
    best: tuple[int, list[tuple[str, int, int]], Any] | None = None
    for _ in range(runs):
        events.clear()
        # Results that are kept would leave the next run memory that the system has yet to give.
        result = executable(*arguments)
        spent = sum(end - begin for _, begin, end in events)
        if best is None or spent < best[0]:
            best = (spent, list(events), result)
    assert best is not None
    _, quickest, result = best
    measured = limits()
    return Profile(_rows(fused, plan, quickest, measured), quickest, measured, result)


def _rows(
    module: ModuleOp,
    plan: Plan,
    events: Sequence[tuple[str, int, int]],
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
