#!/usr/bin/env python3
"""What starting costs: a tool on a small file, and the first compilation of a process, in processor time.

    benchmarks/startup.py [--rounds 7]

Each program runs in a process of its own, in turns; the figure is the least of the rounds, user and system time
together, with the number of modules that were imported. xDSL's dialects are measured alone too: what the compiler's
operations are made of is imported before anything is read or lowered, so that their line is a floor of ours.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMALL = ROOT / "test" / "data" / "programs" / "fusion_chain" / "fusion_chain.hlo"

_TOOL = f"import sys; sys.argv[1:] = ['{SMALL}', '-o', '/dev/null']; from mlirhlo.cli.hlo_opt import main; main()"
_MODULE = "f32[64] tanh(f32[64] x)"
_COMPILE = f"import mlirhlo; mlirhlo.compile(mlirhlo.parse({_MODULE!r}))"
PROGRAMS: Mapping[str, str] = {
    "Python": "pass",
    "xDSL's builtin dialect": "import xdsl.dialects.builtin",
    "xDSL's dialects of the CPU compiler": (
        "from xdsl.dialects import arith, builtin, func, llvm, math, memref, scf, vector"
    ),
    "hlo-opt --help": "from mlirhlo.cli.hlo_opt import main; main(['--help'])",
    "hlo-opt on a small file": _TOOL,
    "first compilation": _COMPILE,
    "first compilation, from the cache": _COMPILE,
}
"""What runs, by name."""


def once(program: str, cache: str) -> tuple[float, int]:
    """Milliseconds of processor time of a process, and the modules that it imported."""
    text = f"{program}\nimport sys\nprint(len(sys.modules), file=sys.stderr)"
    environment = {**os.environ, "MLIRHLO_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return 1000 * spent, int(done.stderr.split()[-1])


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    least: dict[str, tuple[float, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name, program in PROGRAMS.items():
                found = once(program, folder if "cache" in name else "off")
                least[name] = min(found, least.get(name, found))
    print(f"{'':36} {'ms':>6} {'modules':>8}")
    for name, (milliseconds, modules) in least.items():
        print(f"{name:36} {milliseconds:6.0f} {modules:8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
