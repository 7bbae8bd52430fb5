#!/usr/bin/env python3
"""Compares `hlo-cost` with what kernels of the corpus take as machine code; fits the costs of the CPU's description.

    tools/measure_cost.py --state measured.jsonl           # measure, then compare; goes on where it stopped
    tools/measure_cost.py --state measured.jsonl --fit     # and write the fitted costs into the chip's file

Programs run as they stand and with their sizes enlarged, since most of the corpus' kernels take no longer than the
clock does. Costs are fitted to two thirds of the programs; the others, a third chosen by a hash of the name, are what
is reported. Custom calls and collectives run in Python and are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from mlirhlo.debug.cost import chip  # noqa: E402
from mlirhlo.debug.cost.analysis import estimate_kernels  # noqa: E402
from mlirhlo.debug.cost.kernels import Work, duration  # noqa: E402
from mlirhlo.debug.reduce.sizes import elements_of, resized, sizes_of  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402

CHIP = ROOT / "mlirhlo" / "debug" / "cost" / "chips" / "epyc-2.toml"
SECONDS, GIGABYTES = 12, 12
"""CPU time and memory that a program may take."""
LARGEST = 40_000_000
"""Elements of a program's shapes."""
CLOCK_NS = 500.0
"""Kernels that take longer are told apart from the two readings of the clock around each."""

Row = dict[str, Any]


def variants(files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Names and texts: each program, with all sizes enlarged, and with one."""
    for file in files:
        text = file.read_text(errors="surrogateescape")
        yield file.stem, text
        sizes = [size for size in sizes_of(text) if size >= 4]
        for factor in (4, 16):
            for kind, sizes_after in (
                ("all", {size: factor * size for size in sizes}),
                ("one", {size: factor * factor * size for size in sizes[:1]}),
            ):
                larger = resized(text, sizes_after)
                if larger != text and elements_of(larger) < LARGEST:
                    yield f"{file.stem}@{kind}{factor}", larger


def measure(name: str, text: str) -> list[Row]:
    """The shortest time of each kernel of a program, with its work."""
    from mlirhlo.debug.trials.conditions import fake_arguments, load_module, verify
    from mlirhlo.runtime.profile import Marked

    module = load_module(text, name)
    verify(module, name)
    arguments = fake_arguments(module, 42)
    marked = Marked(module)
    best: dict[str, int] = {}
    end, runs = time.perf_counter() + 0.6, 0
    while runs < 3 or (runs < 30 and time.perf_counter() < end):
        runs += 1
        for kernel, begun, ended in marked.run(arguments)[1]:
            best[kernel] = min(best.get(kernel, ended - begun), ended - begun)
    works = estimate_kernels(marked.fused)
    rows: list[Row] = []
    for kernel, nanoseconds in best.items():
        op = marked.plan.instructions[kernel]
        if op.opcode.name != "custom-call" and not op.opcode.collective:
            kinds = works[op].kinds
            rows.append({"program": name, "nanoseconds": nanoseconds, "kinds": kinds})
    return rows


def measured(files: Sequence[Path], state: Path, seconds: float) -> None:
    """Measures what the state does not have yet, each program in a process of its own."""
    done = {row["program"] for row in read(state)}
    end = time.monotonic() + seconds
    for name, text in variants(files):
        if name in done or time.monotonic() > end:
            continue
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        signal.alarm(4 * SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
        try:
            rows = measure(name, text)
        except (HloError, ValueError, KeyError, MemoryError):
            rows = []
        with state.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows or [{"program": name}])
        print(f"{name}: {len(rows)} kernels", file=sys.stderr, flush=True)
        os._exit(0)


def read(state: Path) -> list[Row]:
    """Rows of earlier runs."""
    return [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []


def is_held_back(row: Row) -> bool:
    """Whether a program is of the third that costs are not fitted to."""
    name = row["program"].split("@")[0]
    return int(hashlib.sha256(f"{name}.hlo".encode()).hexdigest(), 16) % 3 == 0


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Costs of units of work, none negative, for which relative errors are small in the median."""
    from scipy.optimize import nnls

    kinds = sorted({kind for row in rows for kind in row["kinds"]})
    work = np.array([[row["kinds"].get(kind, 0.0) for kind in kinds] for row in rows])
    times = np.array([row["nanoseconds"] for row in rows], float)
    importance = np.where(times > CLOCK_NS, 1.0, 0.2)
    weights = importance / times
    costs = np.zeros(len(kinds))
    for _ in range(60):
        costs, _ = nnls(work * weights[:, None], times * weights, maxiter=100_000)
        modelled = work @ costs + 1e-9
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

    machine = chip("epyc-2")
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
    measured(files, options.state, options.seconds)
    rows = [row for row in read(options.state) if "kinds" in row]
    held = [row for row in rows if is_held_back(row)]
    if options.fit:
        write(fit([row for row in rows if not is_held_back(row)]))
    compare([row for row in rows if not is_held_back(row)], "fitted")
    compare(held, "held back")
    error, rank = compare(
        [row for row in held if row["nanoseconds"] > CLOCK_NS],
        f"held back, longer than {CLOCK_NS:g} ns",
    )
    return 0 if error <= 0.25 and rank >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
