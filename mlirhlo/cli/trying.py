"""What the tools share that try modules out: options, conditions, a progress line, interrupted runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlirhlo.cli.options import flag
from mlirhlo.cli.report import INTERRUPTED, usage_error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug.trials import conditions, workers


if TYPE_CHECKING:
    from mlirhlo.debug.trials.conditions import Condition
    from mlirhlo.debug.trials.workers import Limits

_QUIET_SECONDS = 1.0


@dataclass
class LimitOptions:
    """Options of tools that work in processes with limits."""

    jobs: int = flag(0, "j", group="Limits", metavar="N", least=0, help="processes; 0: one a core")
    timeout: float = flag(
        60.0, group="Limits", metavar="SECONDS", help="CPU time of one evaluation"
    )
    memory: float = flag(16.0, group="Limits", metavar="GIB", help="address space of a process")

    @property
    def processes(self) -> int:
        """How many evaluate at once."""
        return self.jobs or max(1, len(os.sched_getaffinity(0)))

    def limits(self) -> Limits:
        """Of one evaluation."""
        return workers.Limits(self.timeout, int(self.memory * 2**30))


@dataclass
class TryingOptions(LimitOptions):
    """Options of tools that evaluate a condition on modules."""

    bad: str = flag(
        "",
        "test-platform",
        group="Condition",
        metavar="SIDE",
        help="what is tested: Interpreter, CPU, CUDA, XLA; PLATFORM:PASSES; command:CMD",
    )
    good: str = flag(
        "Interpreter",
        "reference-platform",
        group="Condition",
        metavar="SIDE",
        help="what it is compared with",
    )
    when: str = flag(
        "differs",
        group="Condition",
        metavar="WHAT",
        help="differs, crashes, slower:FACTOR, a code as HLO0350, or command:CMD",
    )
    load_pass: tuple[str, ...] = flag(
        (), group="Condition", metavar="FILE", help="a Python file with passes"
    )
    inputs: tuple[str, ...] = flag(
        (), group="Condition", metavar="SEEDS", help="seeds of made-up inputs [42]"
    )
    output: str = flag("", "o", group="Output", metavar="FILE", help="where the result is written")
    json: bool = flag(False, group="Output", help="the result as JSON on standard output")
    quiet: bool = flag(False, "q", group="Output", help="no progress")

    def condition(self) -> Condition:
        """The condition of `--when`. Raises `UsageError` HLO0502, `HloError` HLO0860."""
        kind, _, rest = self.when.partition(":")
        if not all(seed.isdigit() for seed in self.inputs):
            raise usage_error(f"--inputs={','.join(self.inputs)}: seeds are numbers")
        seeds = tuple(map(int, self.inputs)) or (42,)
        sides = (self.bad or "Interpreter", self.good)
        common = conditions.Condition(
            "differs", sides, seeds=seeds, load_passes=tuple(self.load_pass)
        )
        if kind == "command":
            return replace(common, kind="command", command=rest).checked()
        if kind.startswith("HLO") and kind[3:].isdigit():
            return replace(common, kind="diagnostic", code=kind).checked()
        if kind == "slower":
            try:
                factor = float(rest or 2)
            except ValueError:
                raise usage_error(f"--when={self.when}: not a number") from None
            return replace(common, kind="slower", factor=factor).checked()
        if kind == "crashes":
            return replace(common, kind="crashes").checked()
        if kind == "differs":
            return common.checked()
        raise usage_error(
            f"--when={self.when}: no condition",
            help="conditions are differs, crashes, slower:FACTOR, a code as HLO0350, command:CMD",
        )


class ProgressLine:
    """One line on a terminal that says how far a tool is, with a bar where the end is known."""

    def __init__(self, *, quiet: bool) -> None:
        self._shows = not quiet and sys.stderr.isatty()
        self._start, self._last = time.monotonic(), 0.0

    def show(self, text: str, done: int = 0, total: int = 0) -> None:
        """Writes the line anew, a few times a second."""
        now = time.monotonic()
        if not self._shows or now - self._start < _QUIET_SECONDS or now - self._last < 0.1:
            return
        self._last = now
        filled = 20 * done // total if total else 0
        bar = f"[{'#' * filled}{'.' * (20 - filled)}] " if total else ""
        line = f"{now - self._start:5.0f} s {bar}{text}"
        print(f"\r\x1b[K{line[:118]}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Takes the line away."""
        if self._shows and self._last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def kept_verdicts(path: str, what: str) -> Generator[str]:
    """The file of verdicts beside a result: it goes when the run ends, and stays when it is interrupted."""
    file = f"{path}.tries"
    try:
        yield file
    except KeyboardInterrupt:
        print(
            f"\ninterrupted; {what}; the same command goes on where this one was ({file})",
            file=sys.stderr,
            flush=True,
        )
        raise
    with suppress(OSError):
        os.unlink(file)


def beside(path: str, suffix: str) -> str:
    """A result's name in the current folder, after an input's."""
    base = os.path.basename(path.rstrip("/")) or "module"
    for ending in (".tar.gz", ".tgz", ".gz", ".txt", ".hlo", ".mlir", ".pb"):
        base = base.removesuffix(ending)
    return f"{'stdin' if base == '-' else base}{suffix}"


__all__: Sequence[str] = (
    "INTERRUPTED",
    "LimitOptions",
    "ProgressLine",
    "TryingOptions",
    "beside",
    "kept_verdicts",
)
