#!/usr/bin/env python3
"""What a call of a compiled module costs beside its work, against jax on the same machine in one process.

    benchmarks/call_overhead.py [--rounds 15] [--calls 5000] [--json OUT]

A module of one scalar addition, called in all ways. The ways take turns, so that a machine that slows down
slows all of them; figures are the median and the best of the rounds, per call, in processor time of the process.
Targets: 300 ns with results given, 1000 ns with new ones, 5000 ns where arguments are numbers or lists.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402

import mlirhlo  # noqa: E402

TARGETS = {
    "out given": 300.0,
    "new result": 1000.0,
    "Python numbers": 5000.0,
    "lists": 5000.0,
    "NumPy scalars, out given": 5000.0,
    "f64 scalars for f32": 5000.0,
}
"""Nanoseconds."""


def ways(with_jax: bool) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    executable = mlirhlo.compile(mlirhlo.parse("f32[] add(f32[] x, f32[] y)"))
    vector = mlirhlo.compile(mlirhlo.parse("f32[2] add(f32[2] x, f32[2] y)"))
    x, y, out = (np.array(v, "f4") for v in (1, 2, 0))
    scalar, wide = np.float32(1), np.float64(1)
    add = np.add
    found: dict[str, Callable[[], Any]] = {
        "an empty Python function": lambda: None,
        "out given": lambda: executable(x, y, out=out),
        "new result": lambda: executable(x, y),
        "Python numbers": lambda: executable(1.0, 2),
        "lists": lambda: vector([1.0, 2.0], [3.0, 4.0]),
        "NumPy scalars, out given": lambda: executable(scalar, y, out=out),
        "f64 scalars for f32": lambda: executable(wide, y),
        "numpy.add(x, y)": lambda: add(x, y),
        "numpy.add(x, y, out=out)": lambda: add(x, y, out=out),
    }
    if with_jax:
        import jax

        jitted = jax.jit(lambda a, b: a + b)
        a, b = jax.numpy.float32(1), jax.numpy.float32(2)
        jitted(a, b).block_until_ready()
        jitted(x, y).block_until_ready()
        found["jax"] = lambda: jitted(a, b)
        found["jax, waiting for it"] = lambda: jitted(a, b).block_until_ready()
        found["jax, numpy in and out"] = lambda: np.asarray(jitted(x, y))
    return found


def measure(function: Callable[[], Any], calls: int) -> float:
    """Nanoseconds a call."""
    rest = range(calls)
    start = time.process_time_ns()
    for _ in rest:
        function()
    return (time.process_time_ns() - start) / calls


def main() -> int:
    """Prints the table; fails when a target is missed by the best round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--no-jax", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    measured = ways(not options.no_jax)
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(options.rounds):
        for name, function in measured.items():
            times[name].append(measure(function, options.calls))
    print(f"{'ns a call':34} {'median':>8} {'best':>8}")
    for name, found in times.items():
        print(f"{name:34} {statistics.median(found):8.0f} {min(found):8.0f}")
    if options.json is not None:
        options.json.write_text(json.dumps(times, indent=1))
    missed = [name for name, target in TARGETS.items() if min(times[name]) > target]
    for name in missed:
        print(f"MISSED: {name}: the target is {TARGETS[name]:.0f} ns")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
