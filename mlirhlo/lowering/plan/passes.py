"""The passes in front of a plan: how a back end's list of them is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import error, out_of_memory
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, leaves
from mlirhlo.rewrites.algsimp import AlgebraicSimplifierPass
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.layout.default_layouts import DefaultLayoutsPass, has_layouts
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.pipeline import History, Instrumentation, run_pipeline

_KEEPS_VALUES = frozenset(
    {
        "divide_by_one",
        "dot_with_dimensions_of_one",
        "multiply_one",
        "power_two",
        "reduce_of_reshape",
        "reduce_of_same_count",
        "reduce_of_transpose",
        "reduce_window_of_pad",
        "reduce_window_that_broadcasts",
    }
)
"""Rules of `algsimp` that are not exact in general and yet wanted: the order of a sum is the
kernel's own, x * x is the nearest to pow(x, 2)."""


def rules_that_keep_values() -> tuple[str, ...]:
    """The rules of `algsimp` for code: exact ones, and those of `_KEEPS_VALUES`."""
    return tuple(
        rule.name
        for rule in AlgebraicSimplifierPass.rules
        if rule.contract == "exact" or rule.name in _KEEPS_VALUES
    )


class Passes(Protocol):
    """A back end's passes in order."""

    def __call__(self, *, has_layouts: bool) -> Sequence[HloPass]:
        """`has_layouts`: whether the order of dimensions in memory was chosen."""
        ...


def optimize(
    module: ModuleOp,
    name: str,
    passes: Passes,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    trace: Trace | None = None,
) -> ModuleOp:
    """A copy of an HLO module as it is planned: simplified and fused.

    `name`: the pipeline's. `wanted` says by name which passes run, `trace` is told what happens.
    """
    copy = clone_module(module)
    optimize_in_place(copy, name, passes, watchers, wanted, trace)
    return copy


def optimize_in_place(
    module: ModuleOp,
    name: str,
    passes: Passes,
    watchers: Sequence[Instrumentation] = (),
    wanted: Callable[[str], bool] = lambda name: True,
    trace: Trace | None = None,
) -> None:
    """What `optimize` does, to the module itself."""
    history = History(kept=None)  # none that keeps anything comes again
    view = HloModule(module, history.facts)
    if laid_out := has_layouts(view):
        DefaultLayoutsPass().run(view, Trace())
        history.facts.clear()
        laid_out = has_layouts(view)
    chosen = [p for p in passes(has_layouts=laid_out) if wanted(p.name)]
    run_pipeline(module, chosen, watchers, name=name, trace=trace, history=history)


_MAX_ELEMENTS = 1 << 56
"""Of an array that is computed where it is read: its indices, and the work on it, fit 64 bits."""


def check_sizes(module: ModuleOp, target: str) -> None:
    """Raises `HloError`: HLO0435 for arrays without a bound, HLO0507 for what 64 bits cannot count."""
    for shape in HloModule(module).result_shapes():
        for _, part in leaves(shape):
            if not isinstance(part, ArrayShape):
                continue
            if UNBOUNDED in part.dimensions:
                raise error(
                    "HLO0435",
                    f"{part} is unbounded: only known sizes have code for {target}",
                    help="give the parameters their sizes, or run the module on the interpreter",
                )
            if part.element_count > _MAX_ELEMENTS:
                raise out_of_memory(f"no memory can hold {part}")
