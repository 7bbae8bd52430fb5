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
sys.path.insert(0, str(ROOT / "test"))

from program_shapes import SHAPES  # noqa: E402
from xdsl.dialects.builtin import ModuleOp  # noqa: E402

from mlirhlo.cli import hlo_cost, hlo_cut, hlo_diff, hlo_opt, hlo_view, run_hlo_module  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr, read_sharding  # noqa: E402
from mlirhlo.dialects.hlo.module import HloModule  # noqa: E402
from mlirhlo.dialects.hlo.shapes import ArrayShape  # noqa: E402
from mlirhlo.dialects.hlo.syntax import parse_all  # noqa: E402
from mlirhlo.formats import load, to_bytes  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module  # noqa: E402
from mlirhlo.rewrites.hlo_to_stablehlo import convert_to_stablehlo  # noqa: E402
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline  # noqa: E402
from mlirhlo.rewrites.registry import list_passes  # noqa: E402
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo  # noqa: E402

FORMATS = ("hlo", "mlir", "mlir-generic", "pb", "pbtxt", "json", "stablehlo", "mlirbc", "artifact")
FORMS = (
    *("hlo", "mlir", "mlir-generic", "pb", "pbtxt", "json", "mlirbc"),
    *("stablehlo-mlir", "stablehlo-mlir-generic", "stablehlo-mlirbc", "stablehlo-artifact"),
)
THREADED = ("compile:cpu", "cpu", "compile:gpu", "gpu")
"""Tools that start threads or processes, which a fork does not take along."""
ANALYSES = ("cost", "alias", "buffer-assignment", "dataflow", "liveness", "call-graph", "schedules")
Run = Callable[[], object]
"""What is measured; gives something that is not 0 where it failed."""
Tool = Callable[[str], Run]
"""The run on the program in a file of this name, with what it needs besides, such as the module, at hand."""


def opt(*arguments: str) -> Tool:
    """`hlo-opt` with these arguments on the file."""
    return lambda path: lambda: hlo_opt.main([path, "-o", os.devnull, *arguments])


def run_on(platform: str, reference: str = "") -> Tool:
    """`run_hlo_module` on a platform, on inputs that it makes up, compared with a reference where one is named."""
    return lambda path: (
        lambda: run_hlo_module.main(
            [f"--platform={platform}", f"--reference_platform={reference}", path]
        )
    )


def module_in(path: str) -> ModuleOp:
    """The module in a file."""
    return parse_module(Path(path).read_text())


def on_module(action: Callable[[ModuleOp], object]) -> Tool:
    """An action on the module, which is read before."""

    def prepare(path: str) -> Run:
        module = module_in(path)

        def run() -> None:
            action(module)

        return run

    return prepare


def diff(path: str) -> Run:
    """`hlo-diff` of the program and one in which every second instruction has another name."""
    module = module_in(path)
    for op in list(HloModule(module).instructions)[::2]:
        op.instruction_name = f"{op.instruction_name}.other"
    after = f"{path}.after.hlo"
    Path(after).write_bytes(to_bytes(module, "hlo"))
    return lambda: hlo_diff.main([path, after, "-q"]) not in (0, run_hlo_module.MISCOMPARED)


def cut(path: str) -> Run:
    """`hlo-cut` of the entry's root with all that it needs."""
    root = HloModule(module_in(path)).entry.root.instruction_name or ""
    return lambda: hlo_cut.main([path, root, "--height=-1", "-o", f"{path}.cut.hlo"])


def write_and_read(form: str) -> Tool:
    """A format written from a module, `stablehlo-` of it as StableHLO, and read again to where it is HLO."""
    emit = form.removeprefix("stablehlo-")

    def run(module: ModuleOp) -> None:
        if emit is form:
            load(to_bytes(module, emit))
        else:
            convert_to_hlo(load(to_bytes(convert_to_stablehlo(module), emit)).module)

    return on_module(run)


def pass_of(name: str) -> Tool:
    """A registered pass on the module."""
    return on_module(lambda module: run_pipeline(module, parse_pipeline(name)))


def partition(module: ModuleOp) -> None:
    """Both passes of partitioning in two, with the first dimension of the entry's even parameters cut."""
    for parameter in HloModule(module).entry.parameters:
        shape = parameter.shape
        if isinstance(shape, ArrayShape) and shape.rank and shape.dimensions[0] % 2 == 0:
            tiles = ",".join(["2", *["1"] * (shape.rank - 1)])
            half = parse_all(f"{{devices=[{tiles}]<=[2]}}", read_sharding)
            parameter.properties["sharding"] = ShardingAttr(half)
    both = ("sharding-propagation", "spmd-partitioning")
    run_pipeline(module, parse_pipeline(",".join(f"{name}{{num_partitions=2}}" for name in both)))


def stablehlo_pass_of(name: str) -> Tool:
    """A pass on StableHLO, on what the module is converted to."""
    return on_module(
        lambda module: run_pipeline(convert_to_stablehlo(module), parse_pipeline(name))
    )


def tools() -> dict[str, Tool]:
    """Every tool by its name."""
    rows = {
        "print": opt(),
        "verify-each": opt("--passes=dce", "--verify-each"),
        "verify-roundtrip": opt("--verify-roundtrip"),
    }
    rows |= {f"write:{emit}": opt(f"--emit={emit}") for emit in FORMATS}
    rows |= {f"read:{form}": write_and_read(form) for form in FORMS}
    rows |= {f"analysis:{name}": opt(f"--print-analysis={name}") for name in ANALYSES}
    rows |= {
        f"pipeline:{platform}": opt(f"--platform={platform}") for platform in ("cpu", "gpu", "tpu")
    }
    rows["interpreter"] = run_on("Interpreter")
    rows |= {
        "run_hlo_module": run_on("Interpreter", "Interpreter"),
        "hlo-cost": lambda path: lambda: hlo_cost.main([path, "-q"]),
        "hlo-cut": cut,
        "hlo-diff": diff,
    }
    rows |= {
        "compile:cpu": opt("--platform=cpu", "--stage=asm"),
        "compile:gpu": opt("--platform=gpu", "--stage=ptx"),
        "cpu": run_on("CPU"),
        "gpu": run_on("CUDA"),
    }
    for kind in ("html", "dot", "svg", "json"):
        rows[f"view:{kind}"] = lambda path, kind=kind: (
            lambda: hlo_view.main([path, "-o", f"{path}.{kind}", "--no-browser"])
        )
    rows["partition"] = on_module(partition)
    passes = list_passes(loaded=False)
    rows |= {f"pass:{name}": pass_of(name) for name in passes}
    rows |= {
        f"stablehlo:{name}": stablehlo_pass_of(name) for name in passes if "stablehlo-" in name
    }
    return rows


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
    """Seconds of the processor that the processes which this one started, and which still run, have used (Linux)."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


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
