#!/usr/bin/env python3
"""Reduces the planted bugs of `test/planted` and says how small they became.

tools/measure_reduce.py                       # all 20
tools/measure_reduce.py --seed 7              # in other programs
tools/measure_reduce.py --only floor --print  # those whose name holds a word, with what is left

What two cores take is half of the processor time: the wall clock counts what else runs on the machine.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from planted.bugs import bugs  # noqa: E402

from mlirhlo.debug.reduce import Event, reduce  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402

INSTRUCTIONS, SECONDS, CORES = 8, 60, 2
PROGRAMS = 10


def cpu_seconds() -> float:
    """Of this process and of all children that have ended."""
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> int:
    """Exit 1 when the median is above `INSTRUCTIONS`, or a bug takes two cores more than `SECONDS`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--seed", type=int, default=0, help="of the programs around the bugs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--print", action="store_true", help="print what is left, and each success")
    options = parser.parse_args()
    names = [bug.name for bug in bugs(options.seed) if options.only in bug.name]

    def tell(event: Event) -> None:
        if options.print and event.is_smaller:
            print(f"  {event.reducer}: {event.instructions}", file=sys.stderr)

    sizes, most = list[int](), 0.0
    print(f"{'bug':32} {'before':>7} {'after':>6} {'tries':>6} {'wall s':>7} {'CPU s':>6}")
    for name in names:
        start = cpu_seconds()
        for seed in range(
            options.seed, options.seed + PROGRAMS
        ):  # the first in which the bug shows
            bug = next(bug for bug in bugs(seed) if bug.name == name)
            with suppress(HloError):
                done = reduce(
                    bug.text, bug.condition, name=f"{name}.hlo", jobs=options.jobs, progress=tell
                )
                break
        else:
            print(f"{name:32} shows in none of {PROGRAMS} programs")
            return 1
        used = cpu_seconds() - start
        sizes.append(done.instructions)
        most = max(most, used / CORES)
        print(
            f"{name:32} {done.instructions_before:7} {done.instructions:6} {done.evaluated:6}"
            f" {done.seconds:7.1f} {used:6.1f}",
            flush=True,
        )
        if options.print:
            print(done.text)
    median = statistics.median(sizes)
    print(
        f"{len(sizes)} bugs: median {median:g} instructions, slowest {most:.1f} s of {CORES} cores"
    )
    return int(median > INSTRUCTIONS or most > SECONDS)


if __name__ == "__main__":
    sys.exit(main())
