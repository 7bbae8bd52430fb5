"""`tree_reduction_rewriter`: long reductions in two steps, the first of windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowAttr, WindowDimension
from mlirhlo.dialects.hlo.ops import ReduceOp, ReduceWindowOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    is_array,
    own_properties,
    sized,
    starts_neutral,
)
from mlirhlo.rewrites.computations import called
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@rule(ReduceOp, contract="rounding")
def long_reduction(op: ReduceOp, rewriter: Rewriter) -> None:
    """reduce(x, init) => reduce(reduce-window(x, init), init), over a long dimension"""
    options = rewriter.options
    expander = options.expander if isinstance(options, Callees) else None
    length = expander.window_size if isinstance(expander, TreeReductionRewriterPass) else 32
    if len(op.inputs) != 2 or not is_array(op) or array(op.inputs[0]).is_dynamic:
        return
    x, init = op.inputs
    sizes = array(x).dimensions
    if all(sizes[d] <= length for d in op.dimensions) or not array(x).element_count:
        return
    if not starts_neutral(op, called(op, op.to_apply)):
        return
    window: list[WindowDimension] = []
    counts: list[int] = []
    for dim, size in enumerate(sizes):
        own = min(size, length) if dim in op.dimensions else 1
        missing = -size % own
        window.append(WindowDimension(own, own, missing // 2, missing - missing // 2))
        counts.append(-(-size // own))
    b = Builder(op, rewriter)
    folded = b(
        ReduceWindowOp,
        x,
        init,
        shape=sized(array(x), counts),
        window=WindowAttr(Window(tuple(window))),
        to_apply=op.properties["to_apply"],
    )
    b.like(ReduceOp, folded, init, **own_properties(op))
    b.done()


@dataclass(frozen=True)
class TreeReductionRewriterPass(ExpanderPass):
    """Reduces long dimensions in steps: windows of 32 first, then what they gave.

    Before and after:

        %r = f32[] reduce(f32[1000] %x, %zero), dimensions={0}, to_apply=%add
          =>   %w = f32[32] reduce-window(%x, %zero), window={size=32 stride=32 pad=12_12}, to_apply=%add
               %r = f32[] reduce(%w, %zero), dimensions={0}, to_apply=%add

    Sums of many small numbers lose less, since no partial sum grows so far beyond what is added to it. The initial
    value is taken more than once and has to be an identity; reductions of several arrays stay. Source: XLA's pass
    of this name.
    """

    name = "tree_reduction_rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (long_reduction,)

    window_size: int = 32
    """Elements along each reduced dimension that are folded first; shorter reductions stay."""
