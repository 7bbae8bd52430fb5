#!/usr/bin/env python3
"""Searches folders of dumps for the first wrong stage: folders with one edited stage, and folders as they are.

    tools/measure_bisect.py --planted 30 --clean 60 --seed 1
    tools/measure_bisect.py --planted 0 --dumps FOLDER     # FOLDER holds a folder of dumps a program

Folders come from the corpus (`*.passes.tar.gz` of XLA:CPU, XLA:GPU and XLA:TPU) and from `--dumps`. With `--held` the
third of programs is taken that was held back while the tool was written, with `--developed` the others.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from planted.dumps import archives, plant, unpack  # noqa: E402

from mlirhlo.debug.bisect.folders import bisect_folder  # noqa: E402
from mlirhlo.debug.bisect.stages import read_stages  # noqa: E402
from mlirhlo.debug.trials.workers import Limits  # noqa: E402


def is_held(name: str) -> bool:
    """Whether a program was held back."""
    return zlib.crc32(name.partition(".")[0].encode()) % 3 == 0


def fetch(source: Path, folder: Path) -> Path:
    """A copy of a source as a folder of dumps."""
    target = folder / source.name.removesuffix(".passes.tar.gz")
    if target.exists():
        shutil.rmtree(target)
    if source.is_dir():
        return Path(shutil.copytree(source, target))
    return unpack(source, target)


def main() -> int:
    """Exit 1 when a culprit is wrong or false."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--planted", type=int, default=30)
    parser.add_argument("--clean", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus")
    parser.add_argument("--dumps", type=Path, action="append", default=[])
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--developed", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    sources = archives(options.corpus)
    sources += [d for folder in options.dumps for d in sorted(folder.iterdir()) if d.is_dir()]
    sources = [s for s in sources if options.only in s.name]
    if options.held or options.developed:
        sources = [s for s in sources if is_held(s.name) == options.held]
    right = wrong = false = named_first = 0
    limits = Limits(60.0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        order = [s for k in range(4) for s in _shuffled(sources, options.seed + k)]
        for number, source in enumerate(order):
            if right + wrong >= options.planted:
                break
            target = fetch(source, folder)
            planted = plant(target, options.seed + number)
            if planted is None:
                continue
            start = time.perf_counter()
            found = bisect_folder(read_stages(str(target)), jobs=options.jobs, limits=limits)
            culprit = found.culprit
            named = () if culprit is None else (culprit.stage, *culprit.between)
            is_right = (
                culprit is not None and culprit.stage.file == planted.file and len(named) == 1
            )
            right, wrong = right + is_right, wrong + (not is_right)
            changed = planted.new.removeprefix("ROOT ").split(" = ")[0].removeprefix("%")
            suspects = [s.name for s in culprit.suspects] if culprit else []
            rank = suspects.index(changed) + 1 if changed in suspects else 0
            named_first += rank == 1
            says = "right" if is_right else f"WRONG: {culprit and culprit.stage.file}"
            print(
                f"{source.name:44} {planted.file[:40]:40} {says}, instruction {rank or 'no'} of {len(suspects)},"
                f" {time.perf_counter() - start:.1f} s",
                flush=True,
            )
            if not is_right:
                print(f"    {planted.old}\n    {planted.new}", flush=True)
        for source in sources[: options.clean]:
            start = time.perf_counter()
            found = bisect_folder(
                read_stages(str(fetch(source, folder))), jobs=options.jobs, limits=limits
            )
            false += found.culprit is not None
            says = (
                "none"
                if found.culprit is None
                else f"FALSE: {found.culprit.stage.file}: {found.culprit.detail}"
            )
            print(
                f"{source.name:44} {found.compared} of {len(found.stages) - 1} compared, culprit {says},"
                f" {time.perf_counter() - start:.1f} s",
                flush=True,
            )
    clean = min(options.clean, len(sources))
    print(
        f"planted: {right} of {right + wrong} culprits right, the edited instruction named first in {named_first};"
        f" unedited: {false} false of {clean}"
    )
    return 1 if wrong or false else 0


def _shuffled(sources: list[Path], seed: int) -> list[Path]:
    found = list(sources)
    random.Random(seed).shuffle(found)
    return found


if __name__ == "__main__":
    sys.exit(main())
