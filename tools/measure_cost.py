#!/usr/bin/env python3
"""Compares `hlo-cost` with what kernels of the corpus take as machine code; fits the costs of the CPU's description.

    tools/measure_cost.py --state measured.jsonl           # measure, then compare; goes on where it stopped
    tools/measure_cost.py --state measured.jsonl --fit     # and write the fitted costs into the chip's file

Programs run as they stand and with their sizes enlarged, since most of the corpus' kernels take no longer than the
clock does, on one thread. The state keeps them as they are compiled, with the shortest time of each kernel: the
model can change without measuring again. Costs are fitted to two thirds of the programs and to designed ones
(`cost_programs.py`), which have a kernel for each kind of work; the others, a third chosen by a hash of the name, are
what is reported. Custom calls and collectives run in Python and are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from cost_programs import designed  # noqa: E402

from mlirhlo.debug.cost import chip  # noqa: E402
from mlirhlo.debug.cost.analysis import estimate_kernels  # noqa: E402
from mlirhlo.debug.cost.kernels import Work, duration  # noqa: E402
from mlirhlo.debug.cost.kinds import part_of  # noqa: E402
from mlirhlo.debug.reduce.sizes import elements_of, resized, sizes_of  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo.module import HloModule  # noqa: E402
from mlirhlo.dialects.hlo.names import printed_names  # noqa: E402
from mlirhlo.dialects.hlo.ops.base import Instruction  # noqa: E402
from mlirhlo.dialects.hlo.order import instruction_list  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module, print_module  # noqa: E402

CHIP = ROOT / "mlirhlo" / "debug" / "cost" / "chips" / "epyc-core.toml"
SECONDS, GIGABYTES = 8, 4
"""CPU time and memory that a program may take."""
RUNNING = 0.25
"""CPU time for which its code runs, at least."""
LARGEST = 2_500_000
"""Elements of a program's shapes."""
CLOCK_NS = 100.0
"""Kernels that take longer are told apart from the steps of the clock, tens of nanoseconds."""

Row = dict[str, Any]


def variants(files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Names and texts: each program with all sizes enlarged, with one, and as it stands; first one of each program."""
    texts = {file.stem: file.read_text(errors="surrogateescape") for file in files}
    for factor in (16, 4):
        for kind in ("all", "one"):
            for name, text in texts.items():
                sizes = [size for size in sizes_of(text) if size >= 4]
                if kind == "all":
                    sizes_after = {size: factor * size for size in sizes}
                else:
                    sizes_after = {size: factor * factor * size for size in sizes[:1]}
                larger = resized(text, sizes_after)
                if larger != text and elements_of(larger) < LARGEST:
                    yield f"{name}@{kind}{factor}", larger
    yield from texts.items()


def measure(name: str, text: str) -> Row:
    """A program as it is compiled, and the shortest time of each of its kernels on one thread.

    Short kernels are timed by the wall clock, whose reading costs least; long ones, which the system interrupts in
    every run, by the processor time of the thread. The shorter of both counts.
    """
    from mlirhlo.debug.trials.conditions import fake_arguments, load_module, verify
    from mlirhlo.runtime.profile import Marked
    from mlirhlo.runtime.threads import set_thread_count

    set_thread_count(1)
    module = load_module(text, name)
    verify(module, name)
    arguments = fake_arguments(module, 42)
    marked = Marked(module)
    best: dict[str, int] = {}
    end, runs = time.process_time() + RUNNING, 0
    while runs < 4 or (runs < 40 and time.process_time() < end):
        clock = time.CLOCK_THREAD_CPUTIME_ID if runs % 2 else time.CLOCK_MONOTONIC
        runs += 1
        for kernel, begun, ended in marked.run(arguments, clock=clock)[1]:
            best[kernel] = min(best.get(kernel, ended - begun), ended - begun)
    printed = print_module(marked.fused)
    names = instruction_names(marked.fused)
    times = {names[marked.plan.instructions[kernel]]: ns for kernel, ns in best.items()}
    return {"program": name, "module": printed, "nanoseconds": times}


def instruction_names(module: ModuleOp) -> dict[Instruction, str]:
    """Names of instructions as they are printed."""
    ops = [op for c in HloModule(module).by_name().values() for op in instruction_list(c)]
    return dict(
        zip(ops, printed_names([(op.instruction_name, op.opcode.name) for op in ops]), strict=True)
    )


def measured(files: Sequence[Path], state: Path, seconds: float) -> None:
    """Measures what the state does not have yet, each program in a process of its own."""
    done = {row["program"] for row in read(state)}
    end = time.monotonic() + seconds
    for name, text in itertools.chain(designed(), variants(files)):
        if name in done or time.monotonic() > end:
            continue
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        signal.alarm(20 * SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
        try:
            row = measure(name, text)
        except (HloError, ValueError, KeyError, MemoryError) as problem:
            row = {"program": name, "problem": str(problem)[:200]}
        with state.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{name}: {len(row.get('nanoseconds', ()))} kernels", file=sys.stderr, flush=True)
        os._exit(0)


def read(state: Path) -> list[Row]:
    """Programs of earlier runs."""
    return [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []


def kernels(programs: Sequence[Row]) -> list[Row]:
    """Times of kernels beside their work as the model counts it now."""
    rows: list[Row] = []
    for program in programs:
        if "module" not in program:
            continue
        module = parse_module(program["module"])
        works = estimate_kernels(module)
        for op, name in instruction_names(module).items():
            nanoseconds = program["nanoseconds"].get(name)
            measurable = op.opcode.name != "custom-call" and not op.opcode.collective
            if nanoseconds is not None and op in works and measurable:
                row = {"program": program["program"], "kernel": name, "nanoseconds": nanoseconds}
                rows.append(row | {"kinds": works[op].kinds})
    return rows


def is_held_back(row: Row) -> bool:
    """Whether a program is of the third that costs are not fitted to."""
    name = row["program"].split("@")[0]
    if name.startswith("designed"):
        return False
    return int(hashlib.sha256(f"{name}.hlo".encode()).hexdigest(), 16) % 3 == 0


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Costs of units of work, none negative, for which relative errors are small in the median.

    A kernel takes the longer of memory and arithmetic: which one that is follows from the costs of the round before.
    """
    from scipy.optimize import nnls

    kinds = sorted({kind for row in rows for kind in row["kinds"]})
    parts = np.array([part_of(kind) for kind in kinds])
    memory, compute = parts == "memory", parts == "compute"
    work = np.array([[row["kinds"].get(kind, 0.0) for kind in kinds] for row in rows])
    times = np.array([row["nanoseconds"] for row in rows], float)
    importance = np.where(times > CLOCK_NS, 1.0, 0.3)
    weights = importance / times
    costs = np.zeros(len(kinds))
    for number in range(14):
        counted = work.copy()
        if number >= 4:
            is_memory = work[:, memory] @ costs[memory] > work[:, compute] @ costs[compute]
            counted[np.ix_(is_memory, compute)] = 0.0
            counted[np.ix_(~is_memory, memory)] = 0.0
        costs, _ = nnls(counted * weights[:, None], times * weights, maxiter=100_000)
        modelled = counted @ costs + 1e-9
        errors = np.abs(np.log(modelled / times))
        weights = importance / np.sqrt(modelled * times) / np.sqrt(np.maximum(errors, 0.03))
    return {kind: float(f"{cost:.3g}") for kind, cost in zip(kinds, costs, strict=True) if cost}


def write(costs: dict[str, float]) -> None:
    """Puts the costs into the chip's file, in place of those that are there."""
    text = re.sub(r"\n\[nanoseconds\][^\[]*", "", CHIP.read_text()).rstrip()
    lines = [f"{kind} = {cost:g}" for kind, cost in costs.items()]
    CHIP.write_text(
        "\n".join([text, "", "[nanoseconds] # tools/measure_cost.py --fit", *lines, ""])
    )


def compare(rows: Sequence[Row], what: str) -> tuple[float, float]:
    """Median relative error and rank correlation."""
    from scipy.stats import spearmanr

    machine = chip("epyc-core")
    times = np.array([row["nanoseconds"] for row in rows], float)
    modelled = np.array([duration(Work(kinds=row["kinds"]), machine).nanoseconds for row in rows])
    error = float(np.median(np.abs(modelled - times) / times))
    rank = float(spearmanr(modelled, times)[0])  # type: ignore[arg-type]  # scipy has no stubs
    print(f"{what}: {len(rows)} kernels, median error {error:.0%}, rank correlation {rank:.2f}")
    return error, rank


def main() -> int:
    """Exit 1 above 25 % or below 0.9 over the kernels held back that are longer than the clock."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--state", type=Path, default=Path("measured_cost.jsonl"))
    parser.add_argument("--seconds", type=float, default=600, help="to measure at most")
    parser.add_argument("--only", default="", help="part of a program's name")
    parser.add_argument(
        "--fit", action="store_true", help="write fitted costs into the chip's file"
    )
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus")
    options = parser.parse_args()
    files = sorted(options.corpus.glob("programs/*/*.hlo"))
    files = [f for f in files if "." not in f.stem and options.only in f.stem]
    random.Random(0).shuffle(files)  # what is measured in part is a sample
    measured(files, options.state, options.seconds)
    rows = kernels(read(options.state))
    held = [row for row in rows if is_held_back(row)]
    if options.fit:
        write(fit([row for row in rows if not is_held_back(row)]))
    compare([row for row in rows if not is_held_back(row)], "fitted")
    compare(held, "held back")
    compare([row for row in held if row["nanoseconds"] > 500], "held back, longer than 500 ns")
    error, rank = compare(
        [row for row in held if row["nanoseconds"] > CLOCK_NS],
        f"held back, longer than {CLOCK_NS:g} ns",
    )
    return 0 if error <= 0.25 and rank >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
