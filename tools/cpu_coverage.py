"""Runs every module of the corpus as machine code, and counts what it takes.

    python tools/cpu_coverage.py                                 # all variants, one thread
    python tools/cpu_coverage.py --variants hlo,cpu_opt --only sort --threads 1,2
    python tools/cpu_coverage.py --json coverage.json

A module passes when its results are the recorded ones within the corpus' tolerance. Those that XLA:GPU
and XLA:TPU optimised may round otherwise; they pass as well when they give what the interpreter makes of
the same module, or of inputs one unit of the last place away: where bf16 stands between f32 and f32, a sum
in another order may round the other way. Each runs in a child process with a time limit, so that a crash
or a hang costs one.

At the end: how many pass, why others do not, and which instructions were run by a callback into
Python instead of machine code (see docs/cpu-compiler.md). The exit status is 1 when one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mlirhlo.debug.fuzz.platforms import simulated_kernels
from mlirhlo.diagnostics import HloError

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared")) / "corpus"

VARIANTS = {
    "hlo": "hlo",
    "stablehlo": "stablehlo",
    "loc": "stablehlo_loc",
    "meta": "hlo_meta",
    "pb": "hlo_module_pb",
    "cpu_opt": "cpu_after_opt",
    "gpu_opt": "gpu_after_opt",
    "tpu_opt": "tpu_after_opt",
    "spmd": "cpu_spmd",
    "gpu_spmd": "gpu_spmd",
}
"""What a variant's file is called in the manifest."""

_ROUNDED_ELSEWHERE = ("gpu_opt", "tpu_opt", "gpu_spmd")

_FINE = ("ok", "as interpreter", "as interpreter nearby")

_NEARBY = 8
"""Inputs nearby that are tried."""

Entry = dict[str, Any]


@dataclass
class Outcome:
    """What became of one module."""

    name: str
    variant: str
    threads: int
    verdict: str
    """One of `_FINE`, or what is wrong: a code and words."""
    seconds: float = 0.0
    callbacks: dict[str, int] = field(default_factory=dict[str, int])
    """Instructions that ran in Python, by what they are, with the number of their calls."""
    kernels: list[str] = field(default_factory=list[str])
    """Digests of the PTX of kernels that ran without a finding, whatever their names."""

    @property
    def is_fine(self) -> bool:
        """Whether it passes."""
        return self.verdict in _FINE

    @property
    def reason(self) -> str:
        """The verdict without what differs from module to module."""
        words = self.verdict.partition("\n")[0]
        if not words.startswith("HLO"):
            return words.partition(":")[0]
        return re.sub(r"%[\w.-]+", "%…", words)


@cache
def library() -> Any:
    """The corpus' own way to read and compare arrays."""
    sys.path.insert(0, str(CORPUS / "gen"))
    import corpuslib  # type: ignore[import-not-found]  # it comes with the corpus

    return corpuslib


def programs(variants: Sequence[str], only: str, *, kernels: bool) -> Iterator[tuple[Entry, str]]:
    """Entries of the manifest with recorded results, each with a variant that can be run."""
    if not CORPUS.is_dir():
        return
    for entry in json.loads((CORPUS / "MANIFEST.json").read_text())["programs"]:
        if "npz" not in entry["files"] or not re.search(only, entry["name"]):
            continue
        if not kernels and "pallas" in entry["features"]:
            continue
        for variant in variants:
            runs = entry["runnable"].get(variant, variant == "gpu_spmd")
            if VARIANTS[variant] in entry["files"] and runs:
                yield entry, variant


def run(entry: Entry, variant: str, threads: int, platform: str = "CPU", gpu: str = "") -> Outcome:
    """Compiles and runs one module in this process."""
    outcome = Outcome(entry["name"], variant, threads, "")
    try:
        outcome.verdict = _verdict(entry, variant, threads, outcome, platform, gpu)
    except HloError as problem:
        diagnostic = problem.diagnostics[0]
        outcome.verdict = f"{diagnostic.code}: {diagnostic.message}"
    return outcome


def _verdict(
    entry: Entry, variant: str, threads: int, outcome: Outcome, platform: str, gpu: str
) -> str:
    from mlirhlo.cli import inputs as files
    from mlirhlo.cli.replay.compiled import Compiled
    from mlirhlo.debug import replay
    from mlirhlo.formats import load
    from mlirhlo.formats.arrays import read_npz
    from mlirhlo.runtime.threads import set_thread_count

    set_thread_count(threads)
    path = CORPUS / entry["files"][VARIANTS[variant]]
    module = files.as_hlo(load(path)).module
    archive = read_npz(str(CORPUS / entry["files"]["npz"]))
    inputs = replay.inputs_from_archive(module, archive)
    compiled = Compiled(gpu=gpu)
    results = compiled.prepare(module, inputs, platform=platform)()
    if found := compiled.findings():
        return f"{found[0].code}: {found[0].message} ({len(found)} findings)"
    for executable in compiled.executables.values():
        for name, count in getattr(executable, "callbacks", {}).items():
            outcome.callbacks[name] = outcome.callbacks.get(name, 0) + count
        outcome.kernels += simulated_kernels(executable)
    problem = _compare(entry, replay.arrays_per_partition(inputs, results), None)
    if not problem:
        return "ok"
    if variant in _ROUNDED_ELSEWHERE:
        got = replay.arrays_per_partition(inputs, results)
        judged = replay.arrays_per_partition(inputs, replay.run(module, inputs))
        if not (problem := _compare(entry, got, judged)):
            return "as interpreter"
        for seed in range(_NEARBY):
            nearby = _moved(inputs, seed)
            judged = replay.arrays_per_partition(inputs, replay.run(module, nearby))
            if not _compare(entry, got, judged):
                return "as interpreter nearby"
        return f"not as the interpreter: {problem}"
    return f"wrong: {problem}"


def _moved(inputs: Any, seed: int) -> Any:
    """Inputs whose floats are one unit of the last place up or down."""
    rng = np.random.default_rng(seed)

    def moved(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return value
        ends = np.array([-np.inf, np.inf], value.dtype)
        return np.nextafter(value, ends[rng.integers(0, 2, value.shape)])

    return replace(inputs, per_device=[list(map(moved, d)) for d in inputs.per_device])


def _compare(entry: Entry, got: list[list[Any]], wanted: list[list[Any]] | None) -> str:
    """What is wrong with results of partitions; nothing when they are close."""
    corpus = library()
    stored = corpus.load_npz(CORPUS / entry["files"]["npz"])
    if wanted is None:
        parts = stored["parts_out"]
        in_parts = len(got) > 1
        wanted = [
            [(parts[n][p] if in_parts else value) for n, value in enumerate(stored["outputs"])]
            for p in range(len(got))
        ]
    factor = entry["tolerance"].get("factor", 1.0)
    for place, (arrays, expected) in enumerate(zip(got, wanted, strict=True)):
        if len(arrays) != len(expected):
            return f"{len(arrays)} outputs, {len(expected)} expected"
        for number, (a, b) in enumerate(zip(arrays, expected, strict=True)):
            hlo = stored["meta"]["out"][number]["dtype"]
            with np.errstate(all="ignore"):
                fits, why = corpus.compare(np.asarray(a), np.asarray(b), hlo, factor)
            if not fits:
                return f"out{number}.p{place} {hlo}: {why}"
    return ""


def in_child(
    entry: Entry, variant: str, threads: int, timeout: float, platform: str = "CPU", gpu: str = ""
) -> Outcome:
    """`run` in a forked process; a crash and a hang are verdicts."""
    started = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            made = run(entry, variant, threads, platform, gpu)
        except BaseException as problem:  # noqa: BLE001 - whatever it is, the parent is told
            message = f"traceback: {type(problem).__name__}: {problem}"
            made = Outcome(entry["name"], variant, threads, message)
        with os.fdopen(writer, "w") as file:
            json.dump(asdict(made), file)
        os._exit(0)
    os.close(writer)
    data = b""
    verdict = ""
    while not verdict:
        left = timeout - (time.monotonic() - started)
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            verdict = f"hangs: no result within {timeout:g} s"
            os.kill(child, signal.SIGKILL)
        elif chunk := os.read(reader, 1 << 16):
            data += chunk
        else:
            break
    os.close(reader)
    _, status = os.waitpid(child, 0)
    outcome = Outcome(entry["name"], variant, threads, verdict)
    if not verdict:
        if data:
            outcome = Outcome(**json.loads(data))
        else:
            outcome.verdict = f"crash: signal {os.WTERMSIG(status)}"
    outcome.seconds = round(time.monotonic() - started, 2)
    return outcome


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for and prints the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", default=",".join(VARIANTS), help="of modules [all]")
    parser.add_argument("--only", default="", help="programs whose name the pattern finds")
    parser.add_argument("--threads", default="1", help="numbers of threads, with commas [1]")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a module [60]")
    parser.add_argument("--kernels", action="store_true", help="Pallas programs too")
    parser.add_argument("--json", help="write all outcomes to this file")
    options = parser.parse_args(argv)
    variants = options.variants.split(",")
    if unknown := [v for v in variants if v not in VARIANTS]:
        parser.error(f"no variant {unknown[0]!r}; there are {', '.join(VARIANTS)}")
    warm_up()
    outcomes: list[Outcome] = []
    for entry, variant in programs(variants, options.only, kernels=options.kernels):
        for threads in map(int, options.threads.split(",")):
            outcome = in_child(entry, variant, threads, options.timeout)
            outcomes.append(outcome)
            if not outcome.is_fine:
                words = outcome.verdict.partition("\n")[0][:150]
                print(f"FAIL {outcome.name}.{variant} ({threads}): {words}", flush=True)
    summary(outcomes)
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
    return int(not all(o.is_fine for o in outcomes))


def warm_up() -> None:
    """Imports what children need, so that they start with it."""
    import mlirhlo
    from mlirhlo.interp.engine import load_meanings

    load_meanings()
    library()
    mlirhlo.parse("f32[2] add(f32[2] x, f32[2] y)")


def summary(outcomes: Sequence[Outcome]) -> None:
    """Prints how many pass, and why others do not."""
    print()
    for variant in dict.fromkeys(o.variant for o in outcomes):
        group = [o for o in outcomes if o.variant == variant]
        fine = sum(o.is_fine for o in group)
        native = sum(o.is_fine and not o.callbacks for o in group)
        print(f"{variant:10} {fine:4} of {len(group)} pass, {native} without callbacks")
    for title, counts in (
        ("why others fail", Counter(o.reason for o in outcomes if not o.is_fine)),
        ("run in Python", Counter(name for o in outcomes for name in o.callbacks)),
    ):
        if counts:
            print(f"\n{title}:")
        for reason, count in counts.most_common():
            print(f"{count:5}  {reason[:140]}")


if __name__ == "__main__":
    sys.exit(main())
