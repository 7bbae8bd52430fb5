#!/usr/bin/env python3
"""Compares our passes with XLA's: a table of agree, better, worse, differs.

    tools/compare_passes.py algsimp
    tools/compare_passes.py algsimp --dump test/data/some.passes.tar.gz --worse
    tools/compare_passes.py --page          # every pass; writes docs/compare-passes.md

What XLA did is read from dumps of the corpus, which hold the module before and after every pass that
changed it. Each module before runs through ours; then, dead code gone on both sides,
agree    the modules are the same up to names
better   ours has fewer instructions
worse    ours has more
differs  as many, but others
and, of those that are not the same,
dearer   ours has more flops, transcendentals or bytes accessed by the cost analysis
Constants that XLA's pass leaves to constant folding are counted on both sides alike.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.analysis.cost import CostAnalysis, analyse  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo import HloModule  # noqa: E402
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module  # noqa: E402
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline  # noqa: E402
from mlirhlo.rewrites.registry import list_passes  # noqa: E402

SHARED = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared"))
PAGE = ROOT / "docs" / "compare-passes.md"
VERDICTS = ("agree", "better", "worse", "differs", "dearer")

SETTINGS: Mapping[tuple[str, str], str] = {
    ("cpu", "algsimp"): "executing-on-cpu=true rewrite-no-op-bitcast-convert-to-bitcast=true",
    ("gpu", "algsimp"): (
        "enable-conditional-simplification=true rewrite-no-op-bitcast-convert-to-bitcast=true"
    ),
    ("cpu", "gather_expander"): "simple-only=true",
    ("cpu", "layout-assignment"): "target=cpu",
    ("gpu", "gather_expander"): "simple-only=true",
    ("gpu", "scatter_expander"): "simple-only=true",
}
"""Options that XLA's compilers give a pass, by platform; dumps tell names, not options."""

LAID_OUT = ("layout", "hlo_normalization", "fusion")
"""Words of pipelines that run when layouts are assigned; XLA's passes look at them there."""

EXPLAINED: Mapping[str, str] = {
    "algsimp": (
        "XLA:TPU's layouts are tiled: bitcasts between tiled arrays are left alone by ours, and its "
        "pass has rules of its own that XLA does not publish."
    ),
    "fusion": (
        "Ours plans by its own costs (docs/fusion.md), not by XLA's: other instructions meet in one "
        "kernel, and cheap producers are not copied into every reader."
    ),
    "multi_output_fusion": "Ours plans by its own costs, as for `fusion`.",
    "priority-fusion": "Ours plans by its own costs, as for `fusion`.",
    "all_to_all_decomposer": (
        "XLA:TPU keeps an all-to-all of arrays and only raises its rank; ours makes the form of tuples."
    ),
    "scatter_expander": (
        "XLA:CPU expands the scatters that it has no code for, here 3 of 12; ours expands all."
    ),
    "shardy-xla": (
        "XLA's leaves HLO for StableHLO and comes back, which merges equal constants and instructions "
        "on the way; ours leaves those to `cse`."
    ),
}
"""Why ours is worse where it is."""


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


@dataclass(frozen=True, slots=True)
class Result:
    """What a pipeline makes of a module."""

    text: str
    """Without names, computations sorted."""
    count: int
    """Instructions."""
    cost: CostAnalysis


def result_of(text: str, pipeline: str) -> Result:
    """Runs a pipeline on a module."""
    module = parse_module(text)
    run_pipeline(module, parse_pipeline(pipeline))
    header, *rest = print_module(module, PrintOptions.fingerprint()).split("\n\n")
    count = sum(1 for _ in HloModule(module).instructions)
    return Result("\n\n".join([header, *sorted(rest)]), count, analyse(module))


def dearer(ours: Result, theirs: Result) -> bool:
    """Whether ours costs more in flops, transcendentals or bytes, beyond rounding."""
    pairs = (
        (ours.cost.flops, theirs.cost.flops),
        (ours.cost.transcendentals, theirs.cost.transcendentals),
        (ours.cost.bytes_accessed, theirs.cost.bytes_accessed),
    )
    return any(mine > other * 1.0001 for mine, other in pairs)


def pipeline_of(name: str, pair: Pair) -> str:
    """The pass with the options that XLA gives it at that place."""
    (pass_,) = parse_pipeline(name)
    options = [SETTINGS.get((pair.platform, name), "")]
    if any(word in pair.name for word in LAID_OUT) and hasattr(pass_, "is_layout_sensitive"):
        options.append("is-layout-sensitive=true")
    given = " ".join(filter(None, options))
    return f"{name}{{{given}}}" if given else name


def compare(name: str, pair: Pair) -> tuple[str, bool, Result, Result]:
    """agree, better, worse or differs; whether ours is dearer; ours and XLA's."""
    ours = result_of(pair.before, f"{pipeline_of(name, pair)},dce")
    theirs = result_of(pair.after, "dce")
    if ours.text == theirs.text:
        return "agree", False, ours, theirs
    found = "differs"
    if ours.count != theirs.count:
        found = "better" if ours.count < theirs.count else "worse"
    return found, dearer(ours, theirs), ours, theirs


@dataclass(slots=True)
class Table:
    """Verdicts of one pass by platform."""

    name: str
    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    failed: int = 0

    def fill(self, archives: Sequence[Path], limit: int, listing: bool) -> None:
        """Compares; prints what is not agreed on where `listing`."""
        for archive in archives:
            for pair in pairs(archive, self.name):
                counts = self.counts.setdefault(pair.platform, Counter())
                seen = sum(counts[v] for v in VERDICTS[:4])
                if limit and seen >= limit:
                    break
                try:
                    found, more, ours, theirs = compare(self.name, pair)
                except HloError as problem:
                    print(f"{archive.name}: {pair.name}: {problem}", file=sys.stderr)
                    self.failed += 1
                    continue
                counts[found] += 1
                counts["dearer"] += more
                if listing and found != "agree":
                    mark = " dearer" if more else ""
                    sizes = f"{ours.count:6} {theirs.count:6}"
                    print(f"{found:8} {sizes}  {archive.name}  {pair.name}{mark}")

    def lines(self) -> Iterator[str]:
        """As text."""
        yield f"{self.name:16}" + "".join(f"{v:>9}" for v in VERDICTS)
        for platform, counts in sorted(self.counts.items()):
            yield f"  {platform:14}" + "".join(f"{counts[v]:9}" for v in VERDICTS)

    def rows(self) -> Iterator[str]:
        """As rows of the page."""
        for platform, counts in sorted(self.counts.items()):
            cells = " | ".join(str(counts[v]) for v in VERDICTS)
            yield f"| `{self.name}` | {platform} | {cells} |"


def page(tables: Sequence[Table]) -> str:
    """Markdown of all passes. Raises `SystemExit` for a pass that is worse and has no explanation."""
    lines = [
        "<!-- Written by tools/compare_passes.py --page; run it again after changing a pass. -->",
        "",
        "# Our passes against XLA's",
        "",
        "```console no-run",
        "$ tools/compare_passes.py algsimp --worse",
        "```",
        "",
        "compares a pass with what XLA:CPU, XLA:GPU and XLA:TPU did to every module of the corpus that",
        "the pass of that name changed: **agree** the same up to names, **better** fewer instructions,",
        "**worse** more, **differs** as many but others; **dearer**, of those that do not agree, more",
        "flops, transcendentals or bytes by the cost analysis. Dead code is removed on both sides first.",
        "All passes:",
        "",
        "| pass | platform | " + " | ".join(VERDICTS) + " |",
        "| --- | --- |" + " ---: |" * len(VERDICTS),
    ]
    total: Counter[str] = Counter()
    for table in tables:
        lines += table.rows()
        for counts in table.counts.values():
            total += counts
    lines.append("| **all** | | " + " | ".join(str(total[v]) for v in VERDICTS) + " |")
    lines += ["", "## Where ours is worse", ""]
    for table in tables:
        if any(counts["worse"] for counts in table.counts.values()):
            if table.name not in EXPLAINED:
                raise SystemExit(
                    f"{table.name} is worse than XLA's, and EXPLAINED does not say why"
                )
            lines += [f"- `{table.name}`: {EXPLAINED[table.name]}"]
    return "\n".join(lines) + "\n"


def shared_passes(archives: Sequence[Path]) -> list[str]:
    """Passes of ours that XLA ran on a module of the corpus."""
    seen: set[str] = set()
    for archive in archives:
        with tarfile.open(archive) as files:
            handle = files.extractfile("INDEX.json")
            assert handle is not None
            seen |= {row["pass"] for row in json.load(handle) if row["before"]}
    return sorted(seen & set(list_passes(loaded=False)))


def main() -> int:
    """Prints the tables; fails when a module cannot be compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help="passes, by XLA's names; all when none is given")
    parser.add_argument("--dump", type=Path, action="append", help="archive of dumps")
    parser.add_argument("--limit", type=int, default=0, help="at most so many modules a platform")
    parser.add_argument("--worse", action="store_true", help="list what is not agreed on")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    archives = arguments.dump or sorted((SHARED / "corpus").glob("programs/*/*.passes.tar.gz"))
    tables: list[Table] = []
    for name in arguments.names or shared_passes(archives):
        table = Table(name)
        table.fill(archives, arguments.limit, arguments.worse)
        print("\n".join(table.lines()), flush=True)
        tables.append(table)
    if arguments.page:
        PAGE.write_text(page(tables))
    return 1 if any(t.failed or not t.counts for t in tables) else 0


if __name__ == "__main__":
    sys.exit(main())
