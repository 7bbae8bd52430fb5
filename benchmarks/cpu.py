#!/usr/bin/env python3
"""The CPU compiler against XLA:CPU: the same programs in turns in one process.

    python benchmarks/cpu.py                         # all programs, on one thread and on all
    python benchmarks/cpu.py --only softmax --threads 1
    python benchmarks/cpu.py --json figures.json

"fresh" is XLA ÷ ours as users call both; "donated" is with the results' memory given to both (`out=` here,
`donate_argnums` there). Medians of rounds in which each runs once; on one thread of processor time, else
of the clock on the wall. "spread" is the distance of ours' quartiles over the median. Then what is
achieved with memory given, and the share of the machine's limit that this is. The limit is measured in
turns with the row: the quickest of some kernels that stream as many bytes in and out of memory, or a
kernel of independent sums of products in registers, as long as the row's products would take by it; of
each the lower quartile.
"possible" is XLA ÷ that limit, fresh and donated: what a program that does nothing but what it must would
reach on this machine, so that nobody's ratio can be larger. It is left empty where functions of elements
or their order take as long as memory or products do. "compile" is processor time, cold, and XLA's over it.
Needs jax.
"iree" is IREE ÷ ours, fresh, where `iree-base-compiler` and `iree-base-runtime` are installed; a dash
where it does not take the program or is too slow to wait for, a `!` where its results differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import iree_peer

if TYPE_CHECKING:
    from cpu_programs import Program

HEAD = (
    f"{'':26}{'ours ms':>9}{'fresh x':>9}{'donated x':>10}{'spread':>8}"
    f"{'iree x':>8}{'rate':>12}{'of limit':>9}{'possible x':>15}{'compile s':>10}{'x':>7}"
)
SAMPLE_S, PEAK_S = 2e-3, 1e-2
"""A sample repeats short programs for as long, products in registers longer: threads first wake up."""


def main() -> None:
    """Runs the benchmark, one process for each number of threads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="part of a name"
    )
    parser.add_argument("--threads", default="1,all", help="numbers, with commas (default: 1,all)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list:
        from cpu_programs import programs

        print("\n".join(programs()))
    elif options.worker:
        work(options.only, int(options.threads), options.rounds, options.json)
    else:
        found: list[dict[str, Any]] = []
        for word in options.threads.split(","):
            found += started(word, options)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1) + "\n")


def started(word: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs a worker on that many threads; its figures."""
    count = len(os.sched_getaffinity(0)) if word == "all" else int(word)
    environment = dict(os.environ, JAX_PLATFORMS="cpu", OMP_NUM_THREADS=str(count))
    if count == 1:
        flags = "--xla_cpu_multi_thread_eigen=false"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()
    command = [sys.executable, __file__, "--worker", f"--threads={count}"]
    command += [f"--rounds={options.rounds}", *(f"--only={name}" for name in options.only)]
    file = Path(f"{options.json}.{count}") if options.json else None
    if file:
        command.append(f"--json={file}")
    subprocess.run(command, env=environment, check=True)
    if file is None:
        return []
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    file.unlink()
    return rows


def work(only: Sequence[str], threads: int, rounds: int, file: Path | None) -> None:
    """Measures in this process and prints a table."""
    from cpu_programs import programs

    from mlirhlo.diagnostics import HloError
    from mlirhlo.runtime.limits import limits
    from mlirhlo.runtime.threads import set_thread_count

    if threads == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    set_thread_count(threads)
    limit = limits()
    print(
        f"{threads} threads; this machine at first: {limit['GB/s']:.1f} GB/s in a triad of streams, "
        f"{limit['f32']:.0f} GFLOP/s of f32"
    )
    print(HEAD)
    rows: list[dict[str, Any]] = []
    for program in programs().values():
        if only and not any(word in program.name for word in only):
            continue
        try:
            row = measure(program, rounds, threads)
        except HloError as problem:
            print(f"{program.name:26}{type(problem).__name__}: {str(problem).splitlines()[0]}")
            continue
        rows.append({"threads": threads, **row})
        print(line(rows[-1]), flush=True)
    for key in ("fresh", "donated", "iree"):
        ratios = [row[key] for row in rows if row[key]]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            print(f"geometric mean {key}: {mean:.2f} of {len(ratios)}")
    if file:
        file.write_text(json.dumps(rows))


def line(row: dict[str, Any]) -> str:
    """A row as it is printed."""
    rate = f"{row['rate']:8.1f} {row['unit']}" if row["unit"] else ""
    part = f"{row['share']:9.0%}" if row["share"] else f"{'':9}"
    possible = ""
    if row["possible fresh"]:
        possible = f"{row['possible fresh']:.2f} /{row['possible donated']:6.2f}"
    iree = (
        f"{row['iree']:7.2f}{'' if row['iree_right'] else '!':1}" if row["iree"] else f"{'-':>7} "
    )
    wrong = "" if row["right"] else "  DIFFERS"
    return (
        f"{row['name']:26}{row['fresh_s'] * 1e3:9.3f}{row['fresh']:9.2f}{row['donated']:10.2f}"
        f"{row['spread']:8.0%}{iree}{rate:>12}{part}{possible:>15}{row['compile_s']:10.2f}{row['compile']:7.2f}{wrong}"
    )


def limit_of(program: Program) -> tuple[list[Callable[[], None]], float]:
    """Kernels whose quickest is as fast as this machine, and how many times its time the program needs."""
    from mlirhlo.runtime.limits import products, streams

    if program.read or program.written:
        return streams(program.read, program.written), 1.0
    if program.gigaflop:
        try:
            run, gigaflop = products(program.peak)
        except KeyError:  # no instructions for it
            return [], 0.0
        return [run], program.gigaflop / gigaflop
    return [], 0.0


def share(program: Program, medians: dict[str, float], limit_s: float) -> dict[str, Any]:
    """What was achieved with memory given, which part of the limit that is, and XLA ÷ the limit."""
    seconds, moved = medians["ours donated"], 1e-9 * (program.read + program.written)
    amount, unit = (moved, "GB/s") if moved else (program.gigaflop, "GF/s")
    bounds = limit_s and not program.computes
    return {
        "rate": amount / seconds if amount else None,
        "unit": unit if amount else None,
        "limit_s": limit_s or None,
        "share": limit_s / seconds if limit_s else None,
        **{
            f"possible {key}": medians[f"xla {key}"] / limit_s if bounds else None
            for key in ("fresh", "donated")
        },
    }


def measure(program: Program, rounds: int, threads: int) -> dict[str, Any]:
    """Times, ratios, and whether the results agree."""
    import jax
    import numpy as np

    import mlirhlo

    inputs = program.inputs(np.random.default_rng(0))
    lowered = jax.jit(program.function).lower(*inputs)
    start = time.process_time()
    theirs = lowered.compile()
    xla_compile_s = time.process_time() - start
    text = in_default_layouts(lowered.compiler_ir("hlo").as_hlo_text())  # type: ignore[union-attr]
    start = time.process_time()
    ours = mlirhlo.compile(mlirhlo.parse(text), cached=False)
    compile_s = time.process_time() - start

    arrays = [jax.device_put(x) for x in inputs]
    donating = jax.jit(lambda spare, *xs: program.function(*xs), donate_argnums=0, keep_unused=True)
    expected = theirs(*arrays)
    out = ours(*inputs)
    wanted = [np.asarray(x) for x in jax.tree.leaves(expected)]
    right = agree(out, wanted, program.tolerance)
    spare = [jax.tree.map(lambda x: x + 0, expected)]
    del expected

    def donated() -> None:
        spare[0] = jax.block_until_ready(donating(spare[0], *arrays))

    runs: dict[str, Callable[[], Any]] = {
        "ours fresh": lambda: ours(*inputs),
        "xla fresh": lambda: jax.block_until_ready(theirs(*arrays)),
        "ours donated": lambda: ours(*inputs, out=out),
        "xla donated": donated,
    }
    iree = None
    if iree_peer.is_installed():
        iree = iree_peer.compiled(str(lowered.compiler_ir("stablehlo")), inputs, threads)
    iree_right = None
    if iree is not None:
        iree_right = agree(tuple(iree_peer.outputs(iree[0])), wanted, program.tolerance)
        runs["iree"] = iree[0]
    limiting, turns = limit_of(program)
    limits = {f"limit {number}": run for number, run in enumerate(limiting)}
    runs |= limits
    clock = time.perf_counter if threads > 1 else time.process_time
    repeats: dict[str, int] = {}
    for key, run in runs.items():
        run()
        once = timed(run, 1, time.perf_counter)
        long = PEAK_S if key in limits and program.gigaflop else SAMPLE_S
        repeats[key] = max(1, int(long / max(once, 1e-7)))
    times: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            run()  # the run before may have left lines to write back
            settle()
            times[key].append(timed(run, repeats[key], clock))
    medians = {key: statistics.median(values) for key, values in times.items()}
    # Of the limit the lower quartile: what disturbs is no limit of the machine.
    undisturbed = [statistics.quantiles(times[key], n=4)[0] for key in limits]
    limit_s = min(undisturbed, default=0.0) * turns
    low, _, high = statistics.quantiles(times["ours fresh"], n=4)
    return {
        "name": program.name,
        "fresh_s": medians["ours fresh"],
        "donated_s": medians["ours donated"],
        "fresh": medians["xla fresh"] / medians["ours fresh"],
        "donated": medians["xla donated"] / medians["ours donated"],
        "spread": (high - low) / medians["ours fresh"],
        "compile_s": compile_s,
        "compile": xla_compile_s / compile_s,
        "right": right,
        "iree": medians["iree"] / medians["ours fresh"] if "iree" in medians else None,
        "iree_right": iree_right,
        "iree_compile": iree[1] / compile_s if iree is not None else None,
        **share(program, medians, limit_s),
    }


def settle() -> None:
    """Waits for threads that still compute: XLA's free the memory of a result after its run, in milliseconds
    of processor time that would count as those of what runs next."""
    for _ in range(20):
        before = time.process_time()
        time.sleep(1e-3)
        if time.process_time() - before < 1e-4:
            return


def in_default_layouts(text: str) -> str:
    """A module whose parameters and results stand as jax has them, whatever its unoptimised text says."""
    head, _, rest = text.partition("\n")

    def default(order: re.Match[str]) -> str:
        count = order.group().count(",") + 1
        return f"]{{{','.join(map(str, reversed(range(count))))}}}"

    return f"{re.sub(r']{[0-9,]+}', default, head)}\n{rest}"


def timed(run: Callable[[], Any], repeats: int, clock: Callable[[], float]) -> float:
    """Seconds of one run."""
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def agree(out: Any, expected: Sequence[Any], tolerance: float) -> bool:
    """Whether no element is further off than a share of the largest one."""
    import numpy as np

    found = out if isinstance(out, tuple) else (out,)
    for a, b in zip(found, expected, strict=True):
        x, y = (np.asarray(v, np.complex128 if np.iscomplexobj(v) else np.float64) for v in (a, b))
        if x.shape != y.shape:
            return False
        if np.max(np.abs(x - y), initial=0.0) > tolerance * max(
            np.max(np.abs(y), initial=0.0), 1e-30
        ):
            return False
    return True


if __name__ == "__main__":
    main()
