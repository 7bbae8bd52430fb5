"""`reduce-window-rewriter`: long running sums in two levels, windows over vectors as over matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowAttr, WindowDimension
from mlirhlo.dialects.hlo.ops import Instruction, MapOp, PadOp, ReduceWindowOp, SliceOp
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    is_array,
    paddings,
    sized,
    slices,
    starts_neutral,
)
from mlirhlo.rewrites.computations import called
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_ONE = WindowDimension()


def _is_plain(op: ReduceWindowOp) -> bool:
    return (
        len(op.inputs) == 2
        and is_array(op)
        and not array(op.inputs[0]).is_dynamic
        and 0 not in array(op.inputs[0]).dimensions
    )


@rule(ReduceWindowOp, contract="rounding")
def running_reduction(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x), all before it or all after it => blocks' own, and those of whole blocks before it"""
    if not _is_plain(op):
        return
    options = rewriter.options
    expander = options.expander if isinstance(options, Callees) else None
    base = expander.base_length if isinstance(expander, ReduceWindowRewriterPass) else 128
    x, init = op.inputs
    sizes = array(x).dimensions
    found = _scanned(op.window.dimensions, sizes)
    if found is None or sizes[found[0]] <= base or not starts_neutral(op, called(op, op.to_apply)):
        return
    dim, forward = found
    b = Builder(op, rewriter)
    n, rank = sizes[dim], len(sizes)
    rows = -(-n // base)
    missing = rows * base - n

    def changed(which: int, *new: int) -> tuple[int, ...]:
        return (*sizes[:which], *new, *sizes[which + 1 :])

    value: Instruction | None = None
    if missing:  # before the first where what follows is taken together
        edges = [(0, 0, 0)] * rank
        edges[dim] = (0, missing, 0) if forward else (missing, 0, 0)
        shape = sized(array(x), changed(dim, rows * base))
        value = b(PadOp, x, init, shape=shape, padding=paddings(edges))
    blocks = b.reshape(x if value is None else value, sized(array(x), changed(dim, rows, base)))

    def scan(operand: Instruction, which: int) -> Instruction:
        length = array(operand).dimensions[which]
        parts = [_ONE] * array(operand).rank
        edge = (length - 1, 0) if forward else (0, length - 1)
        parts[which] = WindowDimension(length, 1, *edge)
        window: Attribute = WindowAttr(Window(tuple(parts)))
        kept = {"to_apply": op.properties["to_apply"], "window": window}
        return b(ReduceWindowOp, operand, init, shape=array(operand), **kept)

    inner = scan(blocks, dim + 1)
    # The last of each block is the whole block's.
    at = base - 1 if forward else 0
    parts = [(0, n, 1) for n in array(inner).dimensions]
    parts[dim + 1] = (at, at + 1, 1)
    cut = b(SliceOp, inner, shape=sized(array(x), changed(dim, rows, 1)), slice=slices(parts))
    whole = scan(b.reshape(cut, sized(array(x), changed(dim, rows))), dim)
    parts = [(0, n, 1) for n in array(whole).dimensions]
    edges = [(0, 0, 0)] * rank
    parts[dim], edges[dim] = ((0, rows - 1, 1), (1, 0, 0)) if forward else ((1, rows, 1), (0, 1, 0))
    others = b(SliceOp, whole, shape=sized(array(x), changed(dim, rows - 1)), slice=slices(parts))
    before = b(PadOp, others, init, shape=array(whole), padding=paddings(edges))
    spread = b.broadcast(before, (*range(dim + 1), *range(dim + 2, rank + 1)), array(blocks))
    both = (spread, inner) if forward else (inner, spread)
    joined = b(
        MapOp,
        *both,
        shape=array(blocks),
        dimensions=integers(tuple(range(rank + 1))),
        to_apply=op.properties["to_apply"],
    )
    flat = b.reshape(joined, sized(array(x), changed(dim, rows * base)))
    if missing:
        start = 0 if forward else missing
        parts = [(0, size, 1) for size in sizes]
        parts[dim] = (start, start + n, 1)
        b.like(SliceOp, flat, slice=slices(parts))
    b.done()


def _scanned(window: Sequence[WindowDimension], sizes: Sequence[int]) -> tuple[int, bool] | None:
    """The dimension along which all before (True) or all after an element is taken together."""
    wide = [d for d, w in enumerate(window) if w != _ONE]
    if len(wide) != 1:
        return None
    dim = wide[0]
    n = sizes[dim]
    for forward, edge in ((True, (n - 1, 0)), (False, (0, n - 1))):
        if window[dim] == WindowDimension(n, 1, *edge):
            return dim, forward
    return None


@rule(ReduceWindowOp)
def reduce_window_of_vector(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x[n]) => reshape(reduce-window(reshape(x, [n,1])))"""
    if not _is_plain(op) or array(op).rank != 1:
        return
    x, init = op.inputs
    b = Builder(op, rewriter)
    matrix = b.reshape(x, sized(array(x), (array(x).dimensions[0], 1)))
    window = WindowAttr(Window((*op.window.dimensions, _ONE)))
    made = b(
        ReduceWindowOp,
        matrix,
        init,
        shape=sized(array(op), (array(op).dimensions[0], 1)),
        window=window,
        to_apply=op.properties["to_apply"],
    )
    b.reshape(made, op.shape)
    b.done()


@dataclass(frozen=True)
class ReduceWindowRewriterPass(ExpanderPass):
    """Splits running sums, products and extrema over long dimensions into two levels of shorter ones.

    Before and after, a running sum of 1000:

        reduce-window(f32[1000] %x), window={size=1000 pad=999_0}
          =>   each of 8 blocks of 128, the 8 sums of blocks, and for each element the sums of blocks before its own

    The work grows as n · 128 and no longer as n². The initial value must make no difference (0 for a sum); it is
    taken more than once. Windows over vectors become windows over matrices of one column. Source: XLA's pass.
    """

    name = "reduce-window-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (running_reduction, reduce_window_of_vector)

    base_length: int = 128
    """The longest dimension that is not split."""
