#!/usr/bin/env python3
"""What passes cost: a pipeline on a chain of layers, and each pass on a module it has nothing to do in.

    benchmarks/passes.py                        # the cpu pipeline, 1, 4, 12 and 24 layers
    benchmarks/passes.py --train                # the AdamW train step of a transformer, as JAX makes it, of as many
    benchmarks/passes.py --file module.hlo.gz   # that module; passes after three runs of the pipeline

A layer of the chain is a dot, a bias, a softmax-like chain and a residual sum, as 21 instructions of HLO. Times are the
least of `--repeat` runs, in microseconds of the processor an instruction and pass: where a pass is linear
they are the same for any number of layers, but for what a run costs by itself. As in a pipeline, what passes
ask of the module together (instructions by class, callers, shapes) is found once, in a row of its own, and
passes know what they kept from the run before.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.dialects.hlo import HloModule  # noqa: E402
from mlirhlo.dialects.hlo.build import paused_gc  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module  # noqa: E402
from mlirhlo.rewrites.cloning import clone_module  # noqa: E402
from mlirhlo.rewrites.passes import HloPass, Trace  # noqa: E402
from mlirhlo.rewrites.pipeline import PipelinePass, run_pipeline  # noqa: E402
from mlirhlo.rewrites.pipelines import pipelines_of  # noqa: E402

LAYERS = (1, 4, 12, 24)
TOGETHER = "(what passes ask together)"

HEAD = """HloModule layers

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

ENTRY main {
  x0 = f32[64,32] parameter(0)
  w = f32[32,32] parameter(1)
  v = f32[32] parameter(2)
"""

LAYER = """  d{k} = f32[64,32] dot(x{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r{k} = f32[1,32] reshape(v)
  q{k} = f32[32] reshape(r{k})
  b{k} = f32[64,32] broadcast(q{k}), dimensions={{1}}
  sum{k} = f32[64,32] add(d{k}, b{k})
  lo{k} = f32[] constant(-inf)
  m{k} = f32[64] reduce(sum{k}, lo{k}), dimensions={{1}}, to_apply=most
  mb{k} = f32[64,32] broadcast(m{k}), dimensions={{0}}
  low{k} = f32[64,32] subtract(sum{k}, mb{k})
  e{k} = f32[64,32] exponential(low{k})
  z{k} = f32[] constant(0)
  t{k} = f32[64] reduce(e{k}, z{k}), dimensions={{1}}, to_apply=sum
  tb{k} = f32[64,32] broadcast(t{k}), dimensions={{0}}
  p{k} = f32[64,32] divide(e{k}, tb{k})
  one{k} = f32[] constant(1)
  ob{k} = f32[64,32] broadcast(one{k}), dimensions={{}}
  g{k} = f32[64,32] multiply(p{k}, ob{k})
  h{k} = f32[64,32] tanh(g{k})
  tr{k} = f32[32,64] transpose(h{k}), dimensions={{1,0}}
  y{k} = f32[64,32] transpose(tr{k}), dimensions={{1,0}}
  x{k} = f32[64,32] add(y{k}, x{i})
"""


def layers(count: int) -> str:
    """HLO text of so many layers."""
    body = "".join(LAYER.format(k=k, i=k - 1) for k in range(1, count + 1))
    return f"{HEAD}{body}  ROOT r = f32[64,32] copy(x{count})\n}}\n"


def flat(passes: Sequence[ModulePass]) -> list[HloPass]:
    """All passes of pipelines, each once by its text."""
    found: dict[str, HloPass] = {}
    stack = list(passes)
    while stack:
        each = stack.pop(0)
        if isinstance(each, PipelinePass):
            stack[:0] = each.passes
        elif isinstance(each, HloPass):
            found.setdefault(str(each.pipeline_pass_spec()), each)
    return list(found.values())


class PassSeconds:
    """Seconds of the processor by pass, while a pipeline runs."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}
        self._starts: list[float] = []

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """Nothing to do."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Starts the clock of a pass."""
        self._starts.append(time.process_time())

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """Adds up; a pipeline is the passes in it."""
        spent = time.process_time() - self._starts.pop()
        if not isinstance(pass_, PipelinePass):
            self.found[pass_.name] = self.found.get(pass_.name, 0.0) + spent


def pipeline_seconds(text: str, platform: str, repeat: int) -> tuple[float, int, dict[str, float]]:
    """Least time of the platform's pipeline, the instructions it started with, and its passes' times."""
    module = parse_module(text)
    count = sum(1 for _ in HloModule(module).instructions)
    least, passes = float("inf"), PassSeconds()
    for _ in range(repeat):
        copy, watcher = clone_module(module), PassSeconds()
        gc.collect()
        start = time.process_time()
        run_pipeline(copy, pipelines_of(platform), [watcher])
        if (spent := time.process_time() - start) < least:
            least, passes = spent, watcher
    return least, count, passes.found


def train_step(count: int) -> str:
    """HLO text of the train step, with AdamW, of a transformer of so many layers. Needs jax."""
    import jax
    from cpu_compile import transformer

    function, inputs = transformer(count, train=True, adam=True)
    lowered = jax.jit(function).lower(*inputs)
    return str(lowered.compiler_ir("hlo").as_hlo_text())  # type: ignore[union-attr]


DEAREST = 12
"""Passes of a pipeline that have a row."""


def print_pipeline(texts: Mapping[str, str], platform: str, repeat: int) -> None:
    """The whole pipeline on each module, and its dearest passes on all."""
    print(f"{'pipeline of ' + platform:24} {'instructions':>12} {'seconds':>9} {'µs each':>9}")
    found: list[tuple[int, dict[str, float]]] = []
    for name, text in texts.items():
        seconds, count, passes = pipeline_seconds(text, platform, repeat)
        found.append((count, passes))
        print(f"{name:24} {count:12} {seconds:9.3f} {seconds / count * 1e6:9.1f}", flush=True)
    print("\nits dearest passes, all their runs together, µs an instruction")
    print(f"{'':36}" + "".join(f"{name:>11}" for name in texts))
    last = found[-1][1]
    for name in sorted(last, key=lambda name: -last[name])[:DEAREST]:
        cells = "".join(f"{passes.get(name, 0.0) / count * 1e6:11.2f}" for count, passes in found)
        print(f"{name:36}{cells}")


def idle_costs(text: str, platform: str, repeat: int) -> dict[str, float]:
    """Microseconds an instruction of each pass that changes nothing any more; of the dearest options.

    What other passes undo, a pass finds again after any number of pipelines: it runs alone until it finds no more.
    """
    module = parse_module(text)
    for _ in range(3):
        run_pipeline(module, pipelines_of(platform))
    found: dict[str, float] = {}
    view, copy = HloModule(module, {}, {}), clone_module(module)
    for each in flat(pipelines_of(platform)):
        here, rounds = view, 0
        while each.run(HloModule(copy), Trace()) and rounds < MOST_ALONE:
            here, rounds = HloModule(copy, {}, {}), rounds + 1
        if rounds < MOST_ALONE:
            count = sum(1 for _ in here.instructions)
            each.run(here, Trace())
            seconds = least_time(lambda each=each, here=here: each.run(here, Trace()), repeat)
            found[each.name] = max(found.get(each.name, 0.0), seconds / count * 1e6)
        if rounds:
            copy = clone_module(module)
    count = sum(1 for _ in view.instructions)

    def ask_all() -> None:
        fresh = HloModule(module, {})
        for ask in view.facts or ():
            fresh.known(ask)

    return {TOGETHER: least_time(ask_all, repeat) / count * 1e6, **found}


MOST_ALONE = 5
"""Runs of a pass alone that may find something."""

SHORTEST = 0.03
"""Seconds that a figure is the least of, at least."""


def least_time(run: Callable[[], object], repeat: int) -> float:
    """Seconds of the processor, with the collector off as `run_pipeline` has it."""
    least, spent = float("inf"), 0.0
    runs = 0
    while runs < repeat or spent < SHORTEST:
        start = time.process_time()
        with paused_gc():
            run()
        took = time.process_time() - start
        least, spent, runs = min(least, took), spent + took, runs + 1
    return least


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--platform", default="cpu")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--train", action="store_true", help="the train step of a transformer")
    parser.add_argument("--file", type=Path, help="a module in place of the layers")
    arguments = parser.parse_args()
    make = train_step if arguments.train else layers
    if arguments.file is None:
        texts = {f"{n} layers": make(n) for n in LAYERS}
    else:
        raw = arguments.file.read_bytes()
        text = (gzip.decompress(raw) if arguments.file.suffix == ".gz" else raw).decode()
        texts = {arguments.file.name.split(".")[0]: text}
    print_pipeline(texts, arguments.platform, arguments.repeat)
    print("\npasses with nothing to do, µs an instruction")
    costs = [idle_costs(text, arguments.platform, arguments.repeat) for text in texts.values()]
    print(f"{'':36}" + "".join(f"{name:>11}" for name in texts))
    for name in sorted(costs[-1], key=lambda name: -costs[-1][name]):
        cells = "".join(f"{each.get(name, float('nan')):11.2f}" for each in costs)
        print(f"{name:36}{cells}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
