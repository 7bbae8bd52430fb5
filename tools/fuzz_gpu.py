#!/usr/bin/env python3
"""Runs random modules as PTX on the simulated GPU: they compute what the interpreter does, and nothing is found wrong.

    tools/fuzz_gpu.py --cases 2000 --seed 1
    tools/fuzz_gpu.py --seed 1 --only 17                     # one case: its module, and what went wrong

A case is a module of `test/strategies/modules.py`; it follows from the seed and its number. A result may differ from
the interpreter's as far as it moves when every inexact number of the interpreter's run moves by a few units in the
last place, and a margin (`tools/fuzz_pipelines.py`). What the simulator finds wrong with a kernel is a failure, and so
is a case that takes more than half a minute of CPU time. What has no GPU code has an error that says so, and is counted
by its code.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cpu_coverage import simulated_kernels
from fuzz_pipelines import Reference, bounded, cause
from strategies.modules import Module

import mlirhlo
from mlirhlo.diagnostics import HloError

NO_CODE = "HLO0802"
"""The code of errors that say what has no GPU code."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case."""

    kind: str
    """`equal`, `fails`, the code of what has no GPU code, or `of no use`: the interpreter refuses it."""
    detail: str = ""
    kernels: Sequence[str] = ()
    """Digests of the kernels that ran."""


def module_of(seed: int, number: int) -> Module:
    """The module of a case."""
    steps = random.Random(f"steps {seed}:{number}").choice((3, 10, 20))
    return Module(f"gpu {seed}:{number}", steps=steps)


def leaves(value: Any) -> list[Any]:
    """Arrays of a result, out of tuples."""
    return (
        [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]
    )


def judge(module: Module, gpu: str) -> Outcome:
    """Runs a module on both."""
    try:
        reference = Reference(module.text, module.inputs)
    except (HloError, ValueError) as problem:
        return Outcome("of no use", str(problem))
    try:
        with bounded():
            compiled: Any = mlirhlo.compile(mlirhlo.parse(module.text), "gpu", gpu=gpu)
            results = leaves(compiled(*module.inputs))
    except HloError as problem:
        return Outcome(problem.code if problem.code == NO_CODE else "fails", str(problem))
    except Exception as problem:  # noqa: BLE001  # the point of the tool
        return Outcome("fails", f"{cause(problem)}\n{traceback.format_exc()}")
    if findings := compiled.findings:
        return Outcome("fails", str(findings[0]))
    difference = reference.difference(results, exact=False)
    if difference:
        return Outcome("fails", f"values differ\n{difference}")
    return Outcome("equal", kernels=simulated_kernels(compiled))


def main() -> int:
    """Exit 1 when a case fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gpu", default="h100", help="the device that is simulated")
    parser.add_argument("--only", type=int, metavar="N", help="one case, printed whole")
    options = parser.parse_args()
    if options.only is not None:
        module = module_of(options.seed, options.only)
        outcome = judge(module, options.gpu)
        print(module.text, outcome.kind, outcome.detail, sep="\n")
        return int(outcome.kind == "fails")
    counts: Counter[str] = Counter()
    kernels = set[str]()
    numbers = range(options.first, options.first + options.cases)
    for number in numbers:
        outcome = judge(module_of(options.seed, number), options.gpu)
        counts[outcome.kind] += 1
        kernels.update(outcome.kernels)
        if outcome.kind == "fails":
            print(f"case {number}: {outcome.detail.splitlines()[0]}", flush=True)
    tally = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(
        f"seed {options.seed}, cases {numbers.start} to {numbers.stop - 1}: {tally}; {len(kernels)} different kernels"
    )
    return int(counts["fails"] > 0)


if __name__ == "__main__":
    sys.exit(main())
