#!/usr/bin/env python3
"""Counts what the simulator finds in kernels with a planted fault, and in kernels without.

    tools/gpu_coverage.py --json=coverage.json                # kernels of this compiler
    tools/ptx_of_others.py --peers=peers --out=peers/ptx      # kernels of nvcc and Triton
    tools/ptx_findings.py --coverage coverage.json --out=peers/ptx

The planted faults are those of `test/ptx_faults.py`. Each has to be reported with its code, and with as many
instructions as have part in it; the same kernel without it has to be clean. So have all kernels of the corpus and those
of other compilers, which compute what their source says. The exit status is 1 when a fault is missed, or when anything
is found in a clean kernel.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from ptx_agreement import outcomes  # noqa: E402
from ptx_faults import FAULTS, Fault  # noqa: E402
from ptx_kernels import launch  # noqa: E402

from mlirhlo.diagnostics import Diagnostic, HloError  # noqa: E402


def findings(fault: Fault, *, faulty: bool, seed: int = 0) -> Sequence[Diagnostic]:
    """What a kernel is reported for."""
    x = np.zeros(256, np.uint32)
    text, options = fault.text(faulty=faulty), fault.options
    try:
        report, _ = launch(text, x, grid=fault.grid, block=fault.block, seed=seed, **options)
    except HloError as error:
        return error.diagnostics
    return report.findings


def places(found: Diagnostic) -> int:
    """How many instructions a message names."""
    named = [found.place, *(place for _, place in found.notes)]
    return sum(one is not None and one.line > 0 for one in named)


def is_reported(fault: Fault) -> bool:
    """Whether a planted fault is found, at its code and places."""
    found = [one for one in findings(fault, faulty=True) if one.code == fault.code]
    return bool(found) and places(found[0]) >= fault.places


def planted() -> bool:
    """Prints what is found of the planted faults; whether all are, and nothing in the kernels without."""
    missed = [fault.name for fault in FAULTS if not is_reported(fault)]
    dirty = [fault.name for fault in FAULTS if findings(fault, faulty=False, seed=2)]
    print(
        f"{len(FAULTS) - len(missed)} of {len(FAULTS)} planted faults are found",
        *missed,
        sep="\n  ",
    )
    two = sum(fault.places > 1 for fault in FAULTS)
    codes = Counter(fault.code for fault in FAULTS)
    print(f"  {two} of them are of two instructions, and both are named")
    print("  " + ", ".join(f"{count} {code}" for code, count in sorted(codes.items())))
    clean = len(FAULTS) - len(dirty)
    print(f"{clean} of {len(FAULTS)} kernels are clean without their fault", *dirty, sep="\n  ")
    return not missed and not dirty


def of_others(folder: Path) -> tuple[int, list[str]]:
    """How many kernels of other compilers are clean, and what is wrong with others."""
    clean, wrong = set[str](), list[str]()
    for case, name, problem in outcomes(folder, 0):
        if problem is not None:
            wrong.append(f"{case.file} {name}: {problem}")
        elif not case.finding:
            clean.add(f"{case.file} {name}")
    return len(clean), wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--coverage", type=Path, nargs="*", default=[], help="of gpu_coverage")
    parser.add_argument("--out", type=Path, help="folder of the PTX of others")
    options = parser.parse_args()
    is_fine = planted()
    modules = [one for path in options.coverage for one in json.loads(path.read_text())]
    own = {digest for module in modules for digest in module["kernels"]}
    found = [m for m in modules if re.match("HLO07[78]", m["verdict"])]
    peers, wrong = of_others(options.out) if options.out else (0, [])
    for line in (*(f"{m['name']}: {m['verdict']}" for m in found), *wrong):
        print(line)
    print(
        f"{len(own) + peers} different kernels are clean, {len(own)} of the corpus and {peers} of other compilers; "
        f"something is found in {len(found) + len(wrong)}"
    )
    return int(not is_fine or bool(found or wrong))


if __name__ == "__main__":
    sys.exit(main())
