"""`select_and_scatter_expander`: where the selected elements lie by windows, then a scatter to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import SymbolRefAttr

from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import holder
from mlirhlo.dialects.hlo.ops import (
    ConcatenateOp,
    GetTupleElementOp,
    Instruction,
    IotaOp,
    ReduceWindowOp,
    ScatterOp,
    SelectAndScatterOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.common import Builder, array, is_array, sized, typed
from mlirhlo.rewrites.computations import add_computation
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass
from mlirhlo.rewrites.linear_algebra.client import Graph
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_S32 = PRIMITIVE_TYPES["s32"]


@rule(SelectAndScatterOp)
def select_and_scatter_of_windows(op: SelectAndScatterOp, rewriter: Rewriter) -> None:
    """select-and-scatter(x, s, i) => scatter(broadcast(i), places, s), by a reduce-window of x and indices"""
    x, source, init = op.inputs
    if not is_array(op) or array(x).is_dynamic or array(source).is_dynamic or not array(x).rank:
        return
    rank, counted = array(x).rank, typed(array(x), _S32)
    b = Builder(op, rewriter)
    places = [b(IotaOp, shape=counted, iota_dimension=integer(d)) for d in range(rank)]
    nowhere = b.scalar(_S32, -1)
    found = b(
        ReduceWindowOp,
        x,
        *places,
        init,
        *([nowhere] * rank),
        shape=TupleShape((array(source), *([typed(array(source), _S32)] * rank))),
        window=op.properties["window"],
        to_apply=_selection(op, rewriter, rank),
    )
    sizes = array(source).dimensions
    columns: list[Instruction] = []
    for d in range(rank):
        place = b(GetTupleElementOp, found, shape=typed(array(source), _S32), index=integer(d + 1))
        columns.append(b.reshape(place, sized(counted, (*sizes, 1))))
    indices = columns[0]
    if rank > 1:
        whole = sized(counted, (*sizes, rank))
        indices = b(ConcatenateOp, *columns, shape=whole, dimensions=integers((rank,)))
    every = integers(tuple(range(rank)))
    b.like(
        ScatterOp,
        b.broadcast(init, (), op.shape),
        indices,
        source,
        update_window_dims=integers(()),
        inserted_window_dims=every,
        scatter_dims_to_operand_dims=every,
        index_vector_dim=integer(rank),
        to_apply=op.properties["scatter"],
    )
    b.done()


def _selection(op: SelectAndScatterOp, rewriter: Rewriter, rank: int) -> SymbolRefAttr:
    """What takes two elements with their indices to the selected one; -1 stands for no element."""
    type_ = array(op.inputs[0]).element_type
    options = rewriter.options
    made = options.made if isinstance(options, Callees) else {}
    key = (op.select, type_, rank, holder(op).thread)
    if key not in made:
        graph, block = Graph.of(op)
        types = (type_, *([_S32] * rank))
        left = [graph.parameter(ArrayShape(t, ())) for t in types]
        right = [graph.parameter(ArrayShape(t, ())) for t in types]
        selected = left[1].compare("NE", -1) & graph.inline(op.select, left[0], right[0])
        is_left = selected | right[1].compare("EQ", -1)
        root = graph.tuple(*(is_left.select(a, c) for a, c in zip(left, right, strict=True)))
        made[key] = add_computation(op, f"{op.select}.reduce_window", block, root.op)
    return made[key]


@dataclass(frozen=True)
class SelectAndScatterExpanderPass(ExpanderPass):
    """Writes select-and-scatter, the gradient of pooling, as a reduce-window and a scatter.

    Before and after:

        %s = f32[8] select-and-scatter(%x, f32[4] %source, %init), window={size=2 stride=2}, select=%ge, scatter=%add
          =>   %w = (f32[4], s32[4]) reduce-window(%x, iota(), %init, -1), …, to_apply=%ge.reduce_window
               %s = f32[8] scatter(broadcast(%init), s32[4,1] reshape(%w's indices), %source), to_apply=%add, …

    The window finds the selected element with its index in each dimension. -1 stands for no element: padding is never
    selected, and what a window of padding alone would add is dropped by the scatter. Source: XLA's pass of this name.
    """

    name = "select_and_scatter_expander"
    rules: ClassVar[tuple[Rule, ...]] = (select_and_scatter_of_windows,)
