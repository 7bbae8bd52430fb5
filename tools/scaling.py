"""Runs programs that are deep or wide in one way each through every tool, at two sizes, and compares the times.

    python tools/scaling.py                              # every form of program, every tool
    python tools/scaling.py --forms 'nested_*' --tools 'read:*,pass:dce' --size 20000
    python tools/scaling.py --bad                        # only what takes too long or ends in a traceback
    python tools/scaling.py --calls --stack 100 --size 1600      # calls counted, and little stack: quick and exact

A line is a form, a tool, the seconds of CPU at half and at the whole size, their ratio, and how it ended: `ok`, the
code of a diagnostic, or the name of an exception. Every run is a process of its own, under limits of time and memory.
With `--calls`, thousands of calls of functions stand for the seconds; with `--stack`, that many frames of Python
are all that a tool may have above its start, so that recursion with a program's depth shows in small programs.
The exit status is 1 when a ratio is above `--ratio` (of runs that take over 0.3 s) or a run ended otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import fnmatch
import inspect
import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test"), str(ROOT / "tools")]

from program_shapes import SHAPES  # noqa: E402
from scaling_tools import THREADED, Run, Tool, tools  # noqa: E402

from mlirhlo.diagnostics import HloError  # noqa: E402


def outcome(tool: Tool, path: str, *, calls: bool = False, stack: int = 0) -> tuple[float, str]:
    """Runs a tool in this process: its seconds, or thousands of calls, and how it ended."""
    profile = cProfile.Profile()
    run = tool(path)
    if stack:
        sys.setrecursionlimit(len(inspect.stack(0)) + stack)
    start = time.process_time()
    if calls:
        profile.enable()
    result = _result(run)
    if not calls:
        return time.process_time() - start + children_seconds(), result
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()) / 1000, result


def children_seconds() -> float:
    """Seconds of the processor that the processes which this one started have used (Linux)."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK") + ended.ru_utime + ended.ru_stime


def _result(run: Run) -> str:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            failed = run()
        code = re.search(r"HLO\d{4}", errors.getvalue())
        result = "ok" if not failed else code.group() if code else f"exit {failed}"
        if result == "HLO0901":
            lines = errors.getvalue().strip().splitlines()
            result = f"HLO0901 {lines[0][:150]}"
    except HloError as problem:
        result = problem.diagnostics[0].code
    except Exception as problem:  # noqa: BLE001  how it ends is what is asked
        result = f"{type(problem).__name__} {_where(problem)}"
    return result


def _where(problem: Exception) -> str:
    trace, file, line = problem.__traceback__, "", 0
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "mlirhlo" in name:
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    return f"{file.rsplit('mlirhlo/', 1)[-1]}:{line}"


def apart(run: Callable[[], tuple[float, str]], limit: int, memory: int) -> tuple[float, str]:
    """What a function gives in a process of its own, under limits of seconds and of bytes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        seconds, result = run()
        os.write(writer, f"{seconds} {result}".encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode()
    _, status, used = os.wait4(child, 0)
    if said:
        seconds, result = said.split(" ", 1)
        return float(seconds), result
    number = os.WTERMSIG(status)
    name = (
        f"over {limit} s"
        if number == signal.SIGXCPU
        else signal.Signals(number).name
        if number
        else "lost"
    )
    return used.ru_utime + used.ru_stime, name


def is_slow(half: float, whole: float, ratio: float) -> bool:
    """Whether a program of twice the size takes more than so many times as long."""
    return whole > 0.3 and whole > ratio * half


def rows(
    form: str,
    chosen: dict[str, Tool],
    size: int,
    *,
    limit: int,
    memory: int,
    ratio: float,
    tries: int,
    **how: Any,
) -> Iterator[tuple[str, float, float, str]]:
    """Name, seconds at half and whole size and result of every tool on a form of program."""
    with tempfile.TemporaryDirectory() as folder:
        # Modules are read in the processes that need them: where they stood here, the garbage collector
        # would walk all of them in the run of the one size and not in that of the other.
        paths = [f"{folder}/{count}.hlo" for count in (size // 2, size)]
        for path, count in zip(paths, (size // 2, size), strict=True):
            Path(path).write_text(SHAPES[form](count))
        tiny = f"{folder}/tiny.hlo"
        Path(tiny).write_text(SHAPES["chain"](4))
        for name, tool in chosen.items():
            if name not in THREADED:
                outcome(tool, tiny)  # imports are no cost of a program
            best: list[tuple[float, str]] = []
            for _ in range(tries):
                runs = [
                    apart(lambda at=at, tool=tool: outcome(tool, at, **how), limit, memory)
                    for at in paths
                ]
                best = [min(pair) for pair in zip(runs, best or runs, strict=True)]
                if not is_slow(best[0][0], best[1][0], ratio):
                    break
            yield name, best[0][0], *best[1]


def main() -> int:
    """Prints the lines; 1 when one is bad."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--forms", default="*", help="names of forms, with * and commas")
    parser.add_argument("--tools", default="*", help="names of tools, with * and commas")
    parser.add_argument(
        "--size", type=int, default=20_000, help="instructions of the larger program"
    )
    parser.add_argument("--ratio", type=float, default=2.3, help="of seconds that is bad")
    parser.add_argument(
        "--tries", type=int, default=3, help="runs of what is bad, the fastest of which count"
    )
    parser.add_argument("--limit", type=int, default=300, help="seconds of a run")
    parser.add_argument("--memory", type=float, default=20, help="gigabytes of addresses of a run")
    parser.add_argument("--calls", action="store_true", help="count calls instead of seconds")
    parser.add_argument("--stack", type=int, default=0, help="frames that a tool may use")
    parser.add_argument("--bad", action="store_true", help="print only what is bad")
    parser.add_argument("--list", action="store_true", help="names of forms and tools")
    arguments = parser.parse_args()
    known = tools()
    if arguments.list:
        print(
            *(f"form {name}: {f.__doc__}" for name, f in SHAPES.items()),
            *(f"tool {name}" for name in known),
            sep="\n",
        )
        return 0

    def matches(name: str, patterns: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(","))

    chosen = {name: tool for name, tool in known.items() if matches(name, arguments.tools)}
    bad = 0
    for form in SHAPES:
        if not matches(form, arguments.forms):
            continue
        for name, half, whole, result in rows(
            form,
            chosen,
            arguments.size,
            limit=arguments.limit,
            memory=int(arguments.memory * 2**30),
            ratio=arguments.ratio,
            tries=1 if arguments.calls else arguments.tries,
            calls=arguments.calls,
            stack=arguments.stack,
        ):
            ratio = whole / max(half, 1e-9)
            is_bad = is_slow(half, whole, arguments.ratio) or not re.fullmatch(
                r"ok|HLO(?!0901)\d{4}", result
            )
            bad += is_bad
            if is_bad or not arguments.bad:
                mark = "!" if is_bad else " "
                print(
                    f"{mark} {form:20} {name:32} {half:8.2f} {whole:8.2f} {ratio:6.2f}  {result}",
                    flush=True,
                )
    print(f"{bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
