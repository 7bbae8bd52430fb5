#!/usr/bin/env python3
"""Finds lit cases that pass with their passes turned off: they test nothing.

    tools/check_lit_passes.py                                  # all of test/lit/rewrites
    tools/check_lit_passes.py test/lit/rewrites/algsimp -v

Each case, a module between `// -----`, is run through the passes of its file's `RUN` lines, and left as it
is. Where the two differ the case is positive, and filecheck has to fail on the module that was left, for one
of the lines at least; where they do not it is negative. A file without a positive case, and a positive case
that filecheck does not tell from nothing done, are wrong. Files that do not run HLO passes alone are skipped.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module, print_module  # noqa: E402
from mlirhlo.mosaic.expanded import collapse_kernels  # noqa: E402
from mlirhlo.rewrites.passes import HloPass  # noqa: E402
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline  # noqa: E402

LIT = ROOT / "test" / "lit" / "rewrites"
RUN = re.compile(r"^// RUN: hlo-opt .*--passes=(?:'[^']*'|\S+).*filecheck.*", re.MULTILINE)
PASSES = re.compile(r"--passes=(?:'([^']*)'|(\S+))")
PREFIX = re.compile(r"--check-prefix[= ](\S+)")
NAME = re.compile(r"^HloModule (\w+)", re.MULTILINE)
NOT_SWITCHED = ("--explain", "--print-analysis", "hlo-verifier", "--emit", "--stats")
"""What makes a `RUN` line another kind of test."""


def outputs(piece: str, pipeline: str) -> tuple[str, str]:
    """The module after the passes, and as it was, but for what `dce` behind other passes removes."""
    lines = [line for line in piece.split("\n") if not line.startswith("//")]
    text = collapse_kernels("\n".join(lines))
    passes = parse_pipeline(pipeline)
    after, before = parse_module(text), parse_module(text)
    run_pipeline(after, passes)
    run_pipeline(before, [p for p in passes[1:] if p.name == "dce"])
    return print_module(after), print_module(before)


def told_apart(piece: str, module: str, folder: Path, prefix: str) -> bool:
    """Whether filecheck, with the checks of the case under a prefix, fails on the module."""
    checks, given = folder / "checks", folder / "module"
    checks.write_text(piece)
    given.write_text(module)
    options = parse_argv_options(
        ["filecheck", str(checks), "--input-file", str(given), "--check-prefix", prefix]
    )
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        return Matcher.from_opts(options).run() != 0


def check(file: Path, folder: Path, *, listing: bool) -> Counter[str]:
    """Looks at the cases of one file; prints those that test nothing."""
    text, name = file.read_text(), file.resolve().relative_to(ROOT)
    count: Counter[str] = Counter()
    told: dict[str, bool] = {}
    for run in RUN.findall(text):
        (quoted, plain), prefix = PASSES.findall(run)[0], PREFIX.search(run)
        pipeline = quoted or plain
        try:
            passes = parse_pipeline(pipeline)
        except HloError:
            continue
        if any(word in run for word in NOT_SWITCHED) or not all(
            isinstance(p, HloPass) for p in passes
        ):
            continue
        count["runs"] += 1
        for piece in text.split("// -----"):
            found = NAME.search(piece)
            if found is None:
                continue
            try:
                after, before = outputs(piece, pipeline)
            except HloError:
                count["refused"] += 1
                continue
            if after == before:
                count["negative"] += 1
                if listing:
                    print(f"{name}: {found[1]}: negative")
                continue
            count["positive"] += 1
            apart = told_apart(piece, before, folder, prefix[1] if prefix else "CHECK")
            told[found[1]] = apart or told.get(found[1], False)
    if not count["runs"]:
        return Counter({"files skipped": 1})
    for case in (case for case, apart in told.items() if not apart):
        count["wrong"] += 1
        print(f"{name}: {case}: passes with its passes turned off")
    if not count["positive"] and not count["refused"]:
        count["wrong"] += 1
        print(f"{name}: the passes do nothing to any case")
    return count + Counter({"files": 1})


def main() -> int:
    """Prints what is wrong and the counts; fails when a case tests nothing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[LIT])
    parser.add_argument("-v", action="store_true", help="list negative cases")
    arguments = parser.parse_args()
    files = [f for p in arguments.paths for f in ([p] if p.is_file() else p.rglob("*.hlo"))]
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(files):
            count += check(file, Path(folder), listing=arguments.v)
    print(", ".join(f"{n} {what}" for what, n in sorted(count.items())))
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
