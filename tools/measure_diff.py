#!/usr/bin/env python3
"""Compares modules with edited copies of themselves, and says how many of the edits `hlo-diff` names.

tools/measure_diff.py --cases 200 --seed 1     # random modules of the corpus, three edits each, all renamed
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from planted.edits import edit  # noqa: E402

from mlirhlo.debug.diff.modules import diff_modules  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402

LARGEST = 200_000


def main() -> int:
    """Exit 1 below 98 %."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edits", type=int, default=3)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus")
    parser.add_argument(
        "--show", action="store_true", help="print what is missed and what is false"
    )
    options = parser.parse_args()
    files = sorted(options.corpus.glob("programs/*/*.hlo"))
    files = [f for f in files if f.stat().st_size < LARGEST]
    draw = random.Random(options.seed)
    hits = found = truth = cases = 0
    while cases < options.cases:
        file = draw.choice(files)
        try:
            case = edit(
                file.read_text(errors="surrogateescape"), draw.randrange(1 << 30), options.edits
            )
            diff = diff_modules(case.before, case.after)
        except (HloError, ValueError):
            continue
        cases += 1
        said = {
            (each.kind, each.name_after if each.kind == "added" else each.name_before)
            for each in diff.instructions
            if each.kind not in ("unchanged", "moved")
        }
        hits, found, truth = (
            hits + len(said & case.truth),
            found + len(said),
            truth + len(case.truth),
        )
        if options.show and said != case.truth:
            print(
                f"{file.name}: missed {sorted(case.truth - said)}, false {sorted(said - case.truth)}"
            )
    precision, recall = hits / max(found, 1), hits / max(truth, 1)
    print(f"{cases} modules, {truth} differences: precision {precision:.1%}, recall {recall:.1%}")
    return 0 if min(precision, recall) >= 0.98 else 1


if __name__ == "__main__":
    sys.exit(main())
