"""Where the time of a module goes: every kernel timed, beside what it moves and computes.

`main` is compiled with a mark before and after each kernel, which reads the clock in machine code (`marks_ir`). Bytes
and operations are counted as XLA counts them. A kernel's share of the roofline is the time it needs at least, with this
machine's measured memory and multiply-adds, over the time it took.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

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
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.executable import Executable
from mlirhlo.runtime.externals import externals
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.limits import limits

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.interp.machine import Machine

Event: TypeAlias = "tuple[str, int, int]"
"""Kernel, start and end in nanoseconds."""

_RECORDS = 1 << 16
"""Marks that are kept in machine code before Python fetches them."""


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
        self._names = [step.name for step in marks]
        self._recorder = _Recorder()
        outside = externals(text) | {MARK: self._recorder.address}
        library = Library([compile_object(text)], [MAIN], outside)
        self.executable = Executable(self.plan, library, MAIN)

    def run(
        self,
        arguments: Sequence[object],
        machine: Machine | None = None,
        clock: int = time.CLOCK_MONOTONIC,
    ) -> tuple[Any, list[Event]]:
        """The result, and what ran when. `machine`: gives custom calls their meaning; `clock`: one of the system's."""
        self._recorder.start(clock)
        if machine is None:
            result = self.executable(*arguments)
        else:
            result = self.executable.run_on(machine, 0, 0, arguments)
        return result, self._recorder.events(self._names)


class _Recorder:
    """What marks write."""

    def __init__(self) -> None:
        self._records = np.zeros((_RECORDS, 2), np.int64)
        self._parts: list[np.ndarray[Any, Any]] = []
        names = ["records", "full", "count", "clock"]
        library = Library(
            [builder_code("marks_ir", _RECORDS)], [MARK, *names], {"clock_gettime": _clock()}
        )
        records, full, count = (ctypes.c_int64.from_address(library.address(n)) for n in names[:3])
        self._library, self._count = library, count
        self._clock = ctypes.c_int32.from_address(library.address("clock"))
        self._full = ctypes.CFUNCTYPE(None)(self._fetch)
        records.value = self._records.ctypes.data
        full.value = ctypes.cast(self._full, ctypes.c_void_p).value or 0
        self.address = library.address(MARK)

    def start(self, clock: int) -> None:
        """Forgets earlier runs."""
        self._parts.clear()
        self._count.value = 0
        self._clock.value = clock

    def _fetch(self) -> None:
        self._parts.append(self._records[: self._count.value].copy())

    def events(self, names: list[str]) -> list[Event]:
        """What ran since `start`; marks hold the numbers of `names`."""
        self._fetch()
        marks: list[tuple[int, int]] = np.concatenate(self._parts).tolist()
        pairs = zip(marks[::2], marks[1::2], strict=True)
        return [(names[word >> 1], start, end) for (_, start), (word, end) in pairs]


def _clock() -> int:
    """The address of `clock_gettime` of the C library."""
    return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0


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
