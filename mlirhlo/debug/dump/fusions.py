"""Pages about fusion: a computation without fusions, at steps on the way, and as it ended.

A step is the module after so many instructions were fused, by the pass itself with that much fuel.
Source: dumps reference, `xla_dump_fusion_visualization`.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.debug.dump.writer import ModuleDump
from mlirhlo.debug.graph import GraphOptions, Stage, render
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import FusionOp
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.passes import HloPass, Trace

_MOST_STEPS = 24
_MOST_INSTRUCTIONS = 100_000
"""Of all steps of a page together."""


def dump_fusions(
    dump: ModuleDump, before: ModuleOp, pass_: ModulePass | None, module: ModuleOp
) -> None:
    """`COMPUTATION.module_NNNN.NAME._fusion.html` for each computation of `module` that has fusions.

    `before` is the module before `pass_`, the first that fused.
    """
    known = HloModule(before).by_name()
    stages: tuple[Stage, ...] = ()
    for name, computation in HloModule(module).by_name().items():
        fused = any(isinstance(op, FusionOp) for op in computation.instructions)
        if not fused or name not in known:
            continue
        stages = stages or (Stage("before fusion", before), *_steps(before, pass_))
        stem = dump.stem("_fusion", prefix=name)
        options = GraphOptions(label=stem, stages=stages)
        dump.write(f"{stem}.html", partial(render, module, "html", options, name), is_text=False)


def _steps(before: ModuleOp, pass_: ModulePass | None) -> list[Stage]:
    """The module after some of what the pass fuses, evenly spread; none for a pass without fuel."""
    if not isinstance(pass_, HloPass) or not hasattr(pass_, "fuel"):
        return []
    count = _fused(clone_module(before), pass_, None)
    size = sum(1 for _ in HloModule(before).instructions)
    steps = min(count, _MOST_STEPS, _MOST_INSTRUCTIONS // max(size, 1))
    stages: list[Stage] = []
    for fuel in sorted({count * step // steps for step in range(1, steps + 1)}):
        module = clone_module(before)
        _fused(module, pass_, fuel)
        stages.append(Stage(f"{fuel} of {count} fused", module))
    return stages


def _fused(module: ModuleOp, pass_: HloPass, fuel: int | None) -> int:
    """Runs the pass; how many instructions it fused."""
    trace = Trace()
    options = {"fuel": fuel}
    dataclasses.replace(pass_, **options).run(HloModule(module), trace)
    return trace.rule_counts.total()
