#!/usr/bin/env python3
"""Compares a pass with XLA's: a table of agree, better, worse, differs.

    tools/compare_passes.py algsimp
    tools/compare_passes.py algsimp --dump test/data/some.passes.tar.gz --worse

What XLA did is read from dumps of the corpus, which hold the module before and after every pass that
changed it. Each module before runs through ours; then, dead code gone on both sides,
agree    the modules are the same up to names
better   ours has fewer instructions
worse    ours has more
differs  as many, but others
Constants that XLA's pass leaves to constant folding are counted on both sides alike.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo import HloModule  # noqa: E402
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module  # noqa: E402
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline  # noqa: E402

SHARED = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared"))


@dataclass(frozen=True, slots=True)
class Pair:
    """One module around a pass."""

    name: str
    platform: str
    before: str
    after: str


def pairs(archive: Path, wanted: str) -> Iterator[Pair]:
    """Modules around the pass, out of one archive of dumps."""
    platform = archive.name.removesuffix(".passes.tar.gz").rpartition(".")[2]
    with tarfile.open(archive) as files:

        def read(name: str) -> str:
            handle = files.extractfile(name)
            assert handle is not None
            return handle.read().decode()

        for row in json.loads(read("INDEX.json")):
            if row["pass"] == wanted and row["before"]:
                yield Pair(row["file"], platform, read(row["before"]), read(row["file"]))


def cleaned(text: str, pipeline: str) -> tuple[str, int]:
    """What a pipeline makes of a module: its text without names, and its instructions."""
    module = parse_module(text)
    run_pipeline(module, parse_pipeline(pipeline))
    header, *rest = print_module(module, PrintOptions.fingerprint()).split("\n\n")
    count = sum(1 for _ in HloModule(module).instructions)
    return "\n\n".join([header, *sorted(rest)]), count


def verdict(pair: Pair, pipeline: str, layouts: bool) -> tuple[str, int, int]:
    """agree, better, worse or differs; our count and XLA's."""
    (pass_,) = parse_pipeline(pipeline)
    sees_layouts = layouts and hasattr(pass_, "is_layout_sensitive")
    options = "{is-layout-sensitive=true}" if sees_layouts else ""
    ours, mine = cleaned(pair.before, f"{pipeline}{options},dce")
    theirs, other = cleaned(pair.after, "dce")
    if ours == theirs:
        return "agree", mine, other
    return ("better" if mine < other else "worse" if mine > other else "differs"), mine, other


def main() -> int:
    """Prints the table; fails when a module cannot be compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", help="the pass, by XLA's name")
    parser.add_argument("--dump", type=Path, action="append", help="archive of dumps")
    parser.add_argument("--limit", type=int, default=0, help="at most so many modules a platform")
    parser.add_argument("--worse", action="store_true", help="list what is not agreed on")
    arguments = parser.parse_args()
    archives = arguments.dump or sorted((SHARED / "corpus").glob("programs/*/*.passes.tar.gz"))
    table: dict[str, Counter[str]] = {}
    failed = 0
    for archive in archives:
        for pair in pairs(archive, arguments.name):
            counts = table.setdefault(pair.platform, Counter())
            if arguments.limit and counts.total() >= arguments.limit:
                break
            # XLA looks at layouts after it assigned them, which the modules' names tell.
            layouts = "layout" in pair.name or "post-layout" in pair.name
            try:
                found, mine, other = verdict(pair, arguments.name, layouts)
            except HloError as problem:
                print(f"{archive.name}: {pair.name}: {problem}", file=sys.stderr)
                failed += 1
                continue
            counts[found] += 1
            if arguments.worse and found != "agree":
                print(f"{found:8} {mine:6} {other:6}  {archive.name}  {pair.name}")
    columns = ("agree", "better", "worse", "differs")
    print(f"{arguments.name:16}" + "".join(f"{c:>9}" for c in columns))
    for platform, counts in sorted(table.items()):
        print(f"  {platform:14}" + "".join(f"{counts[c]:9}" for c in columns))
    return 1 if failed or not table else 0


if __name__ == "__main__":
    sys.exit(main())
