"""Holds structured kernels against the instructions that they stand for, on the corpus.

    python tools/structured_coverage.py                        # as the CPU compiler fuses the programs
    python tools/structured_coverage.py --pipeline gpu         # as XLA:GPU's passes leave them
    python tools/structured_coverage.py --only conv --merged   # after the passes on kernels
    python tools/structured_coverage.py --random 300           # programs of the random generator instead

Every module runs on the interpreter with made-up inputs; of each instruction and fusion that is a kernel, the first
with its shapes, attributes and computations, the kernel is verified, read back from its text and run in numpy on the
inputs seen. Results have to be equal, bit for bit where no sum is involved. At the end: how many kernels were equal,
how many near, what has no structured form and why. The exit status is 1 when one differs.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test")]

from structured_support import Outcome, kernels_of  # noqa: E402
from unit.corpus import corpus_texts  # noqa: E402
from xdsl.dialects.builtin import ModuleOp  # noqa: E402

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.structured import KernelOp  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module  # noqa: E402
from mlirhlo.interp.fake_data import make_fake_arguments  # noqa: E402


def prepared(module: ModuleOp, pipeline: str) -> ModuleOp:
    """A module as a platform's compiler leaves it."""
    if pipeline == "cpu":
        from mlirhlo.lowering.cpu.pipeline import optimize

        return optimize(module)
    if pipeline == "gpu":
        from mlirhlo.rewrites.pipeline import run_pipeline
        from mlirhlo.rewrites.pipelines import pipelines_of

        run_pipeline(module, pipelines_of("gpu"))
    return module


def texts(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Name and text of every module."""
    if not arguments.random:
        yield from corpus_texts(arguments.largest)
        return
    from mlirhlo.debug.fuzz.generators.modules import Module

    for case in range(arguments.random):
        yield f"random {case}", Module(f"{arguments.seed}.{case}").text


def merge(kernel: KernelOp) -> None:
    """Runs the passes on kernels."""
    from mlirhlo.lowering.structured import optimize_kernel

    optimize_kernel(kernel)
    kernel.verify()


def judged(
    text: str, name: str, arguments: argparse.Namespace, seen: set[Hashable]
) -> list[Outcome]:
    """The kernels of one module; a module that cannot be run is an outcome of its own."""

    def too_long(*_: object) -> None:
        raise TimeoutError

    passes: Callable[[KernelOp], object] = merge if arguments.merged else lambda kernel: None
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(arguments.timeout)
    try:
        module = prepared(parse_module(text, name), arguments.pipeline)
        inputs = make_fake_arguments(module)
        return list(kernels_of(module, inputs, seen, passes))
    except TimeoutError:
        return [Outcome("", "module", "not run: too long")]
    except HloError as problem:
        code = problem.diagnostics[0]
        return [Outcome("", "module", f"not run: {code.code}: {code.message}")]
    except Exception as problem:  # noqa: BLE001  a fault of the conversion: reported with its module
        where = traceback.extract_tb(problem.__traceback__)[-1]
        what = f"{type(problem).__name__}: {problem} ({Path(where.filename).name}:{where.lineno})"
        return [Outcome("", "module", f"raises {what}")]
    finally:
        signal.alarm(0)


def main() -> int:
    """As the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipeline", choices=("cpu", "gpu", "none"), default="cpu")
    parser.add_argument("--only", default="", help="regular expression of names")
    parser.add_argument("--merged", action="store_true", help="run the passes on kernels first")
    parser.add_argument("--largest", type=int, default=60_000, help="characters of a module")
    parser.add_argument("--timeout", type=int, default=30, help="seconds a module")
    parser.add_argument("--random", type=int, default=0, help="random modules instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="one module in so many")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    seen: set[Hashable] = set()
    wrong = 0
    for number, (name, text) in enumerate(texts(arguments)):
        if number % arguments.every or not re.search(arguments.only, name):
            continue
        for outcome in judged(text, name, arguments, seen):
            kind = outcome.verdict
            if kind.startswith(("HLO", "not run")):
                refused[f"{outcome.opcode}: {re.sub(r'%[^ ]+', '%…', kind)}"[:150]] += 1
                kind = "not run" if kind.startswith("not run") else "no structured form"
            elif not outcome.is_fine:
                wrong += 1
                print(f"{name}: {outcome.name} ({outcome.opcode}): {kind}", flush=True)
                kind = "wrong"
            counts[kind] += 1
    for reason, count in refused.most_common(40):
        print(f"{count:6}  {reason}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
