#!/usr/bin/env python3
"""Lets `hlo-fuzz` look for planted miscompiles, one wrong rule at a time, and says how soon it finds each.

tools/measure_fuzz.py                        # ten kinds
tools/measure_fuzz.py --only floor --print   # those whose name holds a word, with the reduced module
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(ROOT / "tools")]

from planted.bugs import WRONG_PASSES  # noqa: E402
from scaling import children_seconds  # noqa: E402

from mlirhlo.debug.fuzz.campaign import Group, Result, Settings, fuzz  # noqa: E402

KINDS = (
    "subtract_is_reversed",
    "divide_is_first",
    "abs_of_negate",
    "reverse_is_lost",
    "transpose_of_transpose",
    "select_is_negated",
    "clamp_is_lost",
    "concatenate_is_swapped",
    "sign_is_abs",
    "slice_of_pad",
)


def cpu_seconds() -> float:
    """Of this process and of its children, also those that run."""
    return sum(os.times()[:4]) + children_seconds()


def is_miscompile(group: Group) -> bool:
    """Whether it is about values; wrong rules crash and leave invalid modules as well."""
    return group.cause == "values differ"


def main() -> int:
    """Exit 1 when a kind is not found in so much processor time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=180, help="processor time for each kind")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--print", action="store_true", help="print what is left of the module")
    options = parser.parse_args()
    missed = 0
    for kind in (kind for kind in KINDS if options.only in kind):
        settings = Settings(
            options.seed,
            ("passes",),
            passes=(f"wrong{{only={kind}}}",),
            load_passes=(WRONG_PASSES,),
        )
        start = cpu_seconds()

        def is_over(result: Result, end: float = start + options.seconds) -> bool:
            return any(map(is_miscompile, result.groups)) or cpu_seconds() > end

        result = fuzz(settings, cases=1 << 40, jobs=options.jobs, until=is_over)
        used = cpu_seconds() - start
        group = next(filter(is_miscompile, result.groups), None)
        missed += group is None
        said = "not found" if group is None else f"{group.reduced.count(' = ')} instructions"
        print(f"{kind:26} {result.next:6} cases {used:6.1f} s  {said}", flush=True)
        if options.print and group is not None:
            print(group.reduced)
    print(f"{missed} not found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
