"""Watching the interpreter at work: a progress line, a trace, and going step by step."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlirhlo.cli.replay.literals import value_text

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.engine import Hook
    from mlirhlo.interp.registry import Value

_QUIET_SECONDS = 2.0
"""A run that ends sooner shows no progress."""

_SHOWN = 200
"""Characters of a value in a trace."""


@contextmanager
def watching(module: ModuleOp, *, trace: bool, step: bool) -> Generator[Hook | None]:
    """A hook for the interpreter, or None when nobody looks."""
    if step:
        yield Stepper().hook
    elif trace:
        yield _trace
    elif sys.stderr.isatty():
        with Progress(module) as progress:
            yield progress.hook
    else:
        yield None


def _line(op: Instruction, value: Value) -> str:
    text = value_text(value, op.shape).replace("\n", " ")
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}… ({len(text)} characters)"
    return f"%{op.instruction_name} = {op.opcode.name}: {text}"


def _trace(op: Instruction, inputs: Sequence[Value], value: Value) -> None:
    del inputs
    print(_line(op, value), file=sys.stderr)


class Stepper:
    """Stops after every instruction and asks what to do: Enter, c, q, or a name to look at."""

    def __init__(self, read: Callable[[], str] | None = None) -> None:
        self.read = read or _keyboard()
        self.values: dict[str, tuple[Instruction, Value]] = {}
        self.is_free = False

    def hook(self, op: Instruction, inputs: Sequence[Value], value: Value) -> None:
        """As `Hook`."""
        _trace(op, inputs, value)
        self.values[op.instruction_name or ""] = (op, value)
        while not self.is_free:
            print("[Enter] next, c continue, q quit, NAME shows a value: ", end="", file=sys.stderr)
            answer = self.read()
            if answer == "":  # end of input
                self.is_free = True
            match answer.strip():
                case "":
                    return
                case "c" | "continue":
                    self.is_free = True
                case "q" | "quit":
                    raise KeyboardInterrupt
                case name:
                    found = self.values.get(name.lstrip("%"))
                    text = (
                        "no such value yet"
                        if found is None
                        else value_text(found[1], found[0].shape)
                    )
                    print(text, file=sys.stderr)


def _keyboard() -> Callable[[], str]:
    """Reads lines from the terminal, also when the module came through standard input."""
    if sys.stdin.isatty():
        return sys.stdin.readline
    try:
        return open("/dev/tty", encoding="utf-8").readline
    except OSError:
        return sys.stdin.readline


class Progress:
    """A line on the terminal once a run takes long: time, instructions so far, where it is."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.count = 0
        self.current: Instruction | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def hook(self, op: Instruction, inputs: Sequence[Value], value: Value) -> None:
        """As `Hook`."""
        del inputs, value
        self.count += 1
        self.current = op

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._over.set()
        self._thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._over.wait(_QUIET_SECONDS):
            return
        from rich.console import Console
        from rich.progress import Progress as Bars
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task("")
            bars.tasks[0].start_time = start
            while not self._over.wait(0.2):
                op = self.current
                where = f" at %{op.instruction_name} ({op.opcode.name})" if op is not None else ""
                bars.update(task, description=f"{self.count:,} instructions run{where}")
