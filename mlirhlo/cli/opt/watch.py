"""Watching passes run: printing the IR around them, timing, verifying between them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlirhlo.cli.options import flag

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

ALL = "all"


@dataclass
class WatchFlags:
    """Options of a tool that runs passes."""

    print_ir_before: tuple[str, ...] = flag(
        (),
        "mlir-print-ir-before",
        group="Watching",
        metavar="a,b|all",
        help="IR before passes, to stderr",
    )
    print_ir_after: tuple[str, ...] = flag(
        (),
        "mlir-print-ir-after",
        group="Watching",
        metavar="a,b|all",
        help="IR after passes, to stderr",
    )
    print_ir_change: bool = flag(
        False,
        "print-ir-after-change",
        "mlir-print-ir-after-change",
        group="Watching",
        help="IR after each pass that changed it, to stderr",
    )
    print_ir_before_all: bool = flag(
        False, "mlir-print-ir-before-all", group="Watching", help="", rare=True
    )
    print_ir_after_all: bool = flag(
        False,
        "mlir-print-ir-after-all",
        "print-between-passes",
        group="Watching",
        help="",
        rare=True,
    )
    timing: bool = flag(
        False, "time-passes", "mlir-timing", group="Watching", help="where the time went, to stderr"
    )
    stats: bool = flag(
        False,
        "mlir-pass-statistics",
        group="Watching",
        help="how often each rule rewrote, to stderr",
    )


class IrPrinter:
    """Prints the module around passes, with MLIR's headings."""

    def __init__(self, flags: WatchFlags, show: Callable[[ModuleOp], str]) -> None:
        self.before_passes = {ALL} if flags.print_ir_before_all else set(flags.print_ir_before)
        self.after_passes = {ALL} if flags.print_ir_after_all else set(flags.print_ir_after)
        self.on_change = flags.print_ir_change
        self.show = show

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be printed at all."""
        return bool(self.before_passes or self.after_passes or self.on_change)

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """As `Instrumentation`."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """As `Instrumentation`."""
        if self.before_passes & {ALL, pass_.name}:
            self._print(f"Before {pass_.name}", module)

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """As `Instrumentation`."""
        del seconds
        if self.after_passes & {ALL, pass_.name} or (self.on_change and changed):
            note = "" if changed else " (no change)"
            self._print(f"After {pass_.name}{note}", module)
        elif self.on_change:
            print(f"// -----// IR Dump After {pass_.name} (no change) //----- //", file=sys.stderr)

    def _print(self, when: str, module: ModuleOp) -> None:
        text = self.show(module)
        print(f"// -----// IR Dump {when} //----- //\n{text.rstrip()}\n", file=sys.stderr)


@dataclass(slots=True)
class Clock:
    """Wall time by step, in the order the steps first ran."""

    steps: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Counts the time of a block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)

    def add(self, name: str, seconds: float) -> None:
        """Counts time that was measured elsewhere."""
        self.steps[name] = self.steps.get(name, 0.0) + seconds

    def report(self, extra: Sequence[tuple[str, float]] = ()) -> None:
        """Prints a table to standard error."""
        rows = [*self.steps.items(), *extra]
        total = sum(seconds for _, seconds in rows) or 1e-9
        width = max([len(name) for name, _ in rows] + [5])
        lines = [f"{'step':<{width}}  {'seconds':>9}  {'share':>6}"]
        for name, seconds in [*rows, ("total", total)]:
            lines.append(f"{name:<{width}}  {seconds:9.4f}  {100 * seconds / total:5.1f}%")
        print("\n".join(lines), file=sys.stderr)
