"""Runs every module of the corpus as PTX on the simulator, and counts which give the right results.

    python tools/gpu_coverage.py                              # before and after XLA:GPU's passes
    python tools/gpu_coverage.py --only sort --gpu sm_80
    python tools/gpu_coverage.py --json coverage.json
    python tools/gpu_coverage.py --json coverage.json --resume   # the modules that are not in the file yet

A module passes as in `tools/cpu_coverage.py`: by the recorded results, or by what the interpreter makes of
the same module. What the simulator finds wrong with a kernel counts as a failure. Each module runs in a child
process; one that needs more than `--timeout` seconds is too large for the simulator and counts as failed too.

The exit status is 1 when less than `--least` percent pass.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import cpu_coverage

VARIANTS = ("hlo", "gpu_opt")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for and prints the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", default=",".join(VARIANTS), help="of modules [all]")
    parser.add_argument("--only", default="", help="programs whose name the pattern finds")
    parser.add_argument("--gpu", default="h100", help="the device that is simulated [h100]")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a module [60]")
    parser.add_argument("--kernels", action="store_true", help="Pallas programs too")
    parser.add_argument("--least", type=float, default=98.0, help="percent that have to pass [98]")
    parser.add_argument("--json", type=Path, help="write all outcomes to this file")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes in the file")
    options = parser.parse_args(argv)
    if options.resume and not options.json:
        parser.error("--resume needs --json")
    cpu_coverage.warm_up()
    runs = partial(cpu_coverage.in_child, threads=1, timeout=options.timeout, gpu=options.gpu)
    outcomes: list[cpu_coverage.Outcome] = []
    if options.resume and options.json.exists():
        outcomes = [cpu_coverage.Outcome(**one) for one in json.loads(options.json.read_text())]
    done = {(one.name, one.variant) for one in outcomes}
    for entry, variant in cpu_coverage.programs(
        options.variants.split(","), options.only, kernels=options.kernels
    ):
        if (entry["name"], variant) in done:
            continue
        outcome = runs(entry, variant, platform="CUDA")
        outcomes.append(outcome)
        words = outcome.verdict.partition("\n")[0][:150]
        print(f"{outcome.seconds:6.1f} s  {outcome.name}.{variant}: {words}", flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
    cpu_coverage.summary(outcomes)
    fine = sum(o.is_fine for o in outcomes)
    share = 100 * fine / max(len(outcomes), 1)
    kernels = {digest for o in outcomes for digest in o.kernels}
    print(f"\n{fine} of {len(outcomes)} modules ({share:.1f} %) give the right results")
    print(f"{len(kernels)} different kernels ran, and nothing was found in them")
    return int(share < options.least)


if __name__ == "__main__":
    sys.exit(main())
