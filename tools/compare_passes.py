#!/usr/bin/env python3
"""Compares our passes with XLA's: a table of agree, better, worse, differs.

    tools/compare_passes.py algsimp
    tools/compare_passes.py algsimp --dump test/data/some.passes.tar.gz --worse
    tools/compare_passes.py --generated 40 --seed 1     # random programs, compiled here by XLA:CPU
    tools/compare_passes.py --cases         # cases of the lit tests, compiled here by XLA:CPU
    tools/compare_passes.py --page          # every pass; writes docs/compare-passes.md

What XLA did is read from dumps, of the corpus or made on the spot of random programs and of the cases of
the passes' tests (minutes: XLA dies of some), which hold the module before and after every pass that
changed it. Each module before runs through ours; then, dead code gone on both sides,
agree    the modules are the same up to names
better   ours has fewer instructions
worse    ours has more
differs  as many, but others
Where the pass fuses it is kernels that count: instructions that run by themselves, no more than handing
values on. What is inside fusions says how often it is written there, not how often it is computed.
And, of those that are not the same,
dearer   ours has more flops, transcendentals or bytes accessed by the cost analysis
Constants that XLA's pass leaves to constant folding are counted on both sides alike.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.analysis.call_graph import call_graph  # noqa: E402
from mlirhlo.analysis.cost import CostAnalysis, analyse  # noqa: E402
from mlirhlo.debug.index.names import parse_name  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo import HloModule  # noqa: E402
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module  # noqa: E402
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline  # noqa: E402
from mlirhlo.rewrites.registry import list_passes  # noqa: E402

SHARED = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared"))
PAGE = ROOT / "docs" / "compare-passes.md"
ON_THE_PAGE = 60
"""Random programs that the page tells of."""
VERDICTS = ("agree", "better", "worse", "differs", "dearer")

SETTINGS: Mapping[tuple[str, str], str] = {
    ("cpu", "algsimp"): (
        "executing-on-cpu=true rewrite-no-op-bitcast-convert-to-bitcast=true "
        "enable-dynamic-update-slice-to-pad=true"
    ),
    ("gpu", "algsimp"): (
        "enable-conditional-simplification=true rewrite-no-op-bitcast-convert-to-bitcast=true"
    ),
    ("cpu", "fusion"): "moves=true multi-output=true",
    ("gpu", "priority-fusion"): "moves=true",
    ("cpu", "gather_expander"): "simple-only=true",
    ("cpu", "layout-assignment"): "target=cpu",
    ("tpu", "layout-assignment"): "target=tpu",
    ("gpu", "gather_expander"): "simple-only=true",
    ("cpu", "scatter_expander"): "simple-only=true",
    ("gpu", "scatter_expander"): "simple-only=true",
    ("tpu", "all_to_all_decomposer"): "decompose-to-tuple=false min-array-rank=3",
    ("tpu", "bfloat16-propagation"): "dots=true",
    ("cpu", "reshape-mover"): "single-step=true",
    ("gpu", "reshape-mover"): "single-step=true",
    ("tpu", "reshape-mover"): "single-step=true",
}
"""Options that XLA's compilers give a pass, by platform; dumps tell names, not options."""

TIDIES = ("shardy-xla",)
"""Passes for which XLA leaves HLO for StableHLO and comes back, on which way tuples and what is equal
twice go: they go on both sides then."""
LAID_OUT = ("layout", "hlo_normalization", "fusion")
"""Words of pipelines that run when layouts are assigned; XLA's passes look at them there."""
FUSING = ("fusion", "multi_output_fusion", "priority-fusion")
"""Passes that are measured by the kernels that they leave."""
NO_KERNELS = frozenset({"bitcast", "constant", "get-tuple-element", "parameter", "tuple"})
"""Opcodes that hand values on."""
NOT_LAID_OUT = "through_layout_assignment"
"""XLA:CPU's pipeline that ends by assigning layouts."""

EXPLAINED: Mapping[str, str] = {
    "algsimp": (
        "XLA's looks at an instruction once in a sweep, ours again when operands change: of `(a*C)*(a*C)`, "
        "read elsewhere too, ours makes `(a*a)*(C*C)`, one multiplication more."
    ),
    "batchnorm_expander": (
        "Ours computes each element as the operation is defined, and rounds where that does; XLA:CPU's regroups "
        "inference into one product and one sum for an element, and a few numbers for a feature."
    ),
    "comparison-expander": (
        "Ours writes the constants for each side, which `cse` merges; XLA's writes them once."
    ),
    "conditional-to-select": (
        "XLA:CPU's also takes branches chosen by a number, and branches with loops, which then run when they are "
        "not chosen, for ever perhaps; ours leaves both."
    ),
    "copy-insertion": (
        "Ours copies a tuple that a branch hands on inside the branch, by its elements; XLA's in front of it. "
        "There are as many copies."
    ),
    "dynamic_padder": (
        "Ours keeps slices inside the dynamic size, and skips padding in reduces whose initial value is not "
        "known to change nothing; XLA's reads the padding there, and gives other results."
    ),
    "fusion": (
        "XLA:CPU computes an instruction again in all that read it, unless that is expensive; ours does where "
        "it takes less time than the memory (docs/fusion.md), and leaves a kernel of its own otherwise. "
        "Instructions of different shardings stay apart in ours."
    ),
    "stochastic_convert_decomposer": (
        "Ours gives 0 for NaN, as conversion to integers does; XLA's leaves NaN to the last conversion."
    ),
    "multi_output_fusion": (
        "Ours joins kernels for the sake of an array that both read from 4 KiB on, where reading it once is "
        "worth more than running side by side; those of the corpus are smaller."
    ),
    "priority-fusion": (
        "XLA:GPU has a model of its device: values of rows (`log`, `rsqrt`, small reduces) are computed again "
        "by every thread, scatters take their updates in, and Triton's fusions what they read and what reads "
        "them. Ours never computes twice what is expensive, and leaves fusions with a backend configuration "
        "as they are."
    ),
}
"""Why ours is worse where it is."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One module around a pass."""

    wanted: str
    """The pass."""
    name: str
    platform: str
    before: str
    after: str


def generated(count: int, seed: int) -> list[Pair]:
    """Modules around all passes of XLA:CPU, of so many random programs (`test/strategies/programs.py`)."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XLA_FLAGS": dumping(folder), "JAX_PLATFORMS": "cpu"}
        make = [sys.executable, "-c", _COMPILE, str(ROOT / "test"), str(seed), str(count)]
        subprocess.run(make, env=environment, check=True)
        return dumped(Path(folder))


def of_cases() -> list[Pair]:
    """Modules around all passes of XLA:CPU, of the cases of the passes' lit tests that it takes."""
    sys.path.insert(0, str(ROOT / "test"))
    from xla_execution import XLA

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XLA_FLAGS"] = dumping(folder)
        for file in sorted((ROOT / "test" / "lit" / "rewrites").glob("*.hlo")):
            for number, piece in enumerate(file.read_text().split("// -----")):
                text = "\n".join(line for line in piece.split("\n") if not line.startswith("//"))
                # Compiled, and not run: the inputs are missing. One that XLA dies of has no dumps to read.
                XLA.run(re.sub(r"HloModule \w+", f"HloModule {file.stem}_{number}", text), [])
        XLA.stop()
        del os.environ["XLA_FLAGS"]
        return dumped(Path(folder))


def dumping(folder: str) -> str:
    """Flags for dumps of every pass."""
    what = "--xla_dump_hlo_as_text --xla_dump_large_constants --xla_dump_hlo_pass_re=.+"
    return f"--xla_dump_to={folder} {what}"


def dumped(folder: Path) -> list[Pair]:
    """Modules around all passes that changed one, out of a folder of dumps of XLA:CPU."""
    found: list[Pair] = []
    before: dict[tuple[str | None, int | None], str] = {}
    names = [(parse_name(file.name), file) for file in folder.glob("*.txt")]
    for name, file in sorted(names, key=lambda n: (n[0].module_id or 0, n[0].step or 0)):
        if name.kind != "boundary" or not name.after:
            continue
        text, module = file.read_text(), (name.module_name, name.module_id)
        if name.after != "pipeline-start" and text != before.get(module):
            place = f"{name.module_name}.{name.module_id}/{file.name}"
            found.append(Pair(name.after, place, "cpu", before[module], text))
        before[module] = text
    return found


_COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
from strategies.programs import arguments_of, program
import jax
first, count = map(int, sys.argv[2:])
for seed in range(first, first + count):
    jax.jit(program(seed)).lower(*arguments_of(seed)).compile()
"""


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
                yield Pair(wanted, row["file"], platform, read(row["before"]), read(row["file"]))


@dataclass(frozen=True, slots=True)
class Result:
    """What a pipeline makes of a module."""

    text: str
    """Without names, computations sorted."""
    count: int
    """Instructions, or kernels."""
    cost: CostAnalysis


def result_of(text: str, pipeline: str, kernels: bool = False) -> Result:
    """Runs a pipeline on a module; `kernels`: counts those."""
    module = parse_module(text)
    run_pipeline(module, parse_pipeline(pipeline))
    header, *rest = print_module(module, PrintOptions.fingerprint()).split("\n\n")
    count = kernels_of(HloModule(module)) if kernels else len(list(HloModule(module).instructions))
    return Result("\n\n".join([header, *sorted(rest)]), count, analyse(module))


def kernels_of(module: HloModule) -> int:
    """Instructions that run by themselves, and do more than to hand values on."""
    embedded = call_graph(module.op).embedded()
    return sum(
        instruction.opcode.name not in NO_KERNELS
        for computation in module.computations
        if computation.computation_name not in embedded
        for instruction in computation.instructions
    )


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
    # Files are called `….PIPELINE.after_PASS.before_PASS…`.
    pipeline = Path(pair.name).name.partition(".after_")[0].rpartition(".")[2]
    laid_out = NOT_LAID_OUT not in pipeline and any(word in pipeline for word in LAID_OUT)
    if laid_out and hasattr(pass_, "is_layout_sensitive"):
        options.append("is-layout-sensitive=true")
    given = " ".join(filter(None, options))
    return f"{name}{{{given}}}" if given else name


def compare(name: str, pair: Pair) -> tuple[str, bool, Result, Result]:
    """agree, better, worse or differs; whether ours is dearer; ours and XLA's."""
    rest = "tuple-simplifier,cse,dce" if name in TIDIES else "dce"
    ours = result_of(pair.before, f"{pipeline_of(name, pair)},{rest}", name in FUSING)
    theirs = result_of(pair.after, rest, name in FUSING)
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

    def fill(self, found: Iterable[Pair], limit: int, listing: bool) -> None:
        """Compares; prints what is not agreed on where `listing`."""
        for pair in found:
            counts = self.counts.setdefault(pair.platform, Counter())
            if limit and sum(counts[v] for v in VERDICTS[:4]) >= limit:
                continue
            try:
                verdict, more, ours, theirs = compare(self.name, pair)
            except HloError as problem:
                print(f"{pair.name}: {problem}", file=sys.stderr)
                self.failed += 1
                continue
            counts[verdict] += 1
            counts["dearer"] += more
            if listing and verdict != "agree":
                mark = " dearer" if more else ""
                print(f"{verdict:8} {ours.count:6} {theirs.count:6}  {pair.name}{mark}")

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


def table_of(tables: Sequence[Table]) -> list[str]:
    """Markdown of the verdicts of passes, with their sums."""
    lines = [
        "| pass | platform | " + " | ".join(VERDICTS) + " |",
        "| --- | --- |" + " ---: |" * len(VERDICTS),
    ]
    total: Counter[str] = Counter()
    for table in tables:
        lines += table.rows()
        for counts in table.counts.values():
            total += counts
    lines.append("| **all** | | " + " | ".join(str(total[v]) for v in VERDICTS) + " |")
    return lines


def page(tables: Sequence[Table], random: Sequence[Table], cases: Sequence[Table]) -> str:
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
        *table_of(tables),
        "",
        "## On random programs",
        "",
        f"`tools/compare_passes.py --generated {ON_THE_PAGE} --seed 1` compiles so many random programs",
        "with XLA:CPU, and compares as above:",
        "",
        *table_of(random),
        "",
        "## On the cases of the passes' tests",
        "",
        "`tools/compare_passes.py --cases` compiles the modules of `test/lit/rewrites/*.hlo` with XLA:CPU, those that",
        "it takes, and compares what all its passes did to them. Where a pass is alone in triggering on",
        "its case, that is the pass isolated:",
        "",
        *table_of(cases),
    ]
    lines += ["", "## Where ours is worse", ""]
    worse = [
        t.name for t in (*tables, *random, *cases) if any(c["worse"] for c in t.counts.values())
    ]
    for name in dict.fromkeys(worse):
        if name not in EXPLAINED:
            raise SystemExit(f"{name} is worse than XLA's, and EXPLAINED does not say why")
        lines += [f"- `{name}`: {EXPLAINED[name]}"]
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
    parser.add_argument("--generated", type=int, default=0, help="so many random programs instead")
    parser.add_argument("--seed", type=int, default=1, help="of the first random program")
    parser.add_argument("--cases", action="store_true", help="the cases of the lit tests instead")
    parser.add_argument("--limit", type=int, default=0, help="at most so many modules a platform")
    parser.add_argument("--worse", action="store_true", help="list what is not agreed on")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    tables: list[Table] = []
    random: list[Table] = []
    cases: list[Table] = []

    def fill(made: Sequence[Pair]) -> list[Table]:
        known = set(list_passes(loaded=False))
        names = arguments.names or sorted({pair.wanted for pair in made} & known)
        filled = [Table(name) for name in names]
        for table in filled:
            own = (pair for pair in made if pair.wanted == table.name)
            table.fill(own, arguments.limit, arguments.worse)
            print("\n".join(table.lines()), flush=True)
        return filled

    if not arguments.generated and not arguments.cases:
        archives = arguments.dump or sorted((SHARED / "corpus").glob("programs/*/*.passes.tar.gz"))
        tables = [Table(name) for name in arguments.names or shared_passes(archives)]
        for table in tables:
            found = (pair for archive in archives for pair in pairs(archive, table.name))
            table.fill(found, arguments.limit, arguments.worse)
            print("\n".join(table.lines()), flush=True)
    if arguments.generated or arguments.page:
        random = fill(generated(arguments.generated or ON_THE_PAGE, arguments.seed))
    if arguments.cases or arguments.page:
        cases = fill(of_cases())
    if arguments.page:
        PAGE.write_text(page(tables, random, cases))
    return 1 if any(t.failed or not t.counts for t in (*tables, *random, *cases)) else 0


if __name__ == "__main__":
    sys.exit(main())
