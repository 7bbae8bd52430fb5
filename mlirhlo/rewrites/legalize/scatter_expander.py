"""`scatter_expander`: scatters as loops over updates in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers, string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    CopyOp,
    ParameterOp,
    ScatterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array
from mlirhlo.rewrites.computations import called
from mlirhlo.rewrites.legalize.expander import ExpanderPass
from mlirhlo.rewrites.legalize.indexed_loops import (
    PRED,
    Writer,
    loop,
    plain,
    rows_of_indices,
    shape_at,
)
from mlirhlo.rewrites.rules import Rewriter, Rule, rule
from mlirhlo.rewrites.simplify.scatter_simplifier import updates_by_row

S64 = PRIMITIVE_TYPES["s64"]


@rule(ScatterOp, needs=("!simple_only",))
def scatter_of_any(op: ScatterOp, rewriter: Rewriter) -> None:
    """scatter(x, i, u) => a loop: row by row of i, u's window combined into x where it fits"""
    _expand(op, rewriter)


@rule(ScatterOp, needs=("simple_only",))
def scatter_of_one_window(op: ScatterOp, rewriter: Rewriter) -> None:
    """scatter(x, i, u) => a loop of one round, i holding one index"""
    updates = op.input_shapes[-1]
    if isinstance(updates, ArrayShape):
        sizes = updates.dimensions
        if prod(n for d, n in enumerate(sizes) if d not in op.update_window_dims) == 1:
            _expand(op, rewriter)


def _expand(op: ScatterOp, rewriter: Rewriter) -> None:
    if any(not isinstance(s, ArrayShape) or s.is_dynamic for s in op.input_shapes):
        return
    count = (len(op.inputs) - 1) // 2
    operands, indices, updates = op.inputs[:count], op.inputs[count], op.inputs[count + 1 :]
    computation = called(op, op.to_apply)
    if op.input_batching_dims or not _is_elementwise(computation):
        return
    first = array(updates[0])
    if not first.element_count:
        _leave(op, rewriter)
        return
    rounds = prod(n for d, n in enumerate(first.dimensions) if d not in op.update_window_dims)
    if rounds >= 1 << 31:
        return
    b = Builder(op, rewriter)
    write = Writer(b.made.append)
    rows = rows_of_indices(write, indices, op.index_vector_dim)
    source = array(operands[0])
    tables = updates_by_row(op, write, updates)
    window = array(tables[0]).dimensions[1:]

    def step(
        own: Writer, number: Instruction, state: Sequence[Instruction]
    ) -> Sequence[Instruction]:
        values, table, news = state[:count], state[count], state[count + 1 :]
        row = own.row(table, number)
        fits = _fits(own, row, op, source, window)
        starts = own.starts(row, op.scatter_dims_to_operand_dims, source.rank)
        olds = [
            own(
                "dynamic-slice",
                value,
                *starts,
                shape=plain(shape_at(value).element_type, window),
                dynamic_slice_sizes=integers(tuple(window)),
            )
            for value in values
        ]
        parts = [own.row(new, number) for new in news]
        combined = _inline(own, computation, (*olds, *parts), window)
        wanted = own.spread(fits, window)
        results: list[Instruction] = []
        for value, old, new in zip(values, olds, combined, strict=True):
            chosen = own("select", wanted, new, old, shape=old.shape)
            placed = own("dynamic-update-slice", value, chosen, *starts, shape=value.shape)
            results.append(placed)
        return (*results, table, *news)

    found = loop(op, write, rounds, (*operands, rows, *tables), step)
    if count > 1:
        b(TupleOp, *found[:count], shape=op.shape)
        b.done()
    else:
        b.done(found[0])


def _leave(op: ScatterOp, rewriter: Rewriter) -> None:
    """Nothing is combined: the operands are the results."""
    b = Builder(op, rewriter)
    if isinstance(op.shape, ArrayShape):
        b.like(CopyOp, op.inputs[0])
    else:
        b.like(TupleOp, *op.inputs[: len(op.inputs) // 2])
    b.done()


def _fits(
    own: Writer, row: Instruction, op: ScatterOp, source: ArrayShape, window: Sequence[int]
) -> Instruction:
    """Whether the window lies inside the operand."""
    wide = own("convert", row, shape=plain(S64, shape_at(row).dimensions))
    starts = own.starts(wide, op.scatter_dims_to_operand_dims, source.rank)
    pred = ArrayShape(PRED, ())
    found = own.scalar(PRED, 1)
    for dim in op.scatter_dims_to_operand_dims:
        last = source.dimensions[dim] - window[dim]
        for limit, direction in ((0, "GE"), (last, "LE")):
            bound = own.scalar(S64, limit)
            test = own("compare", starts[dim], bound, shape=pred, direction=string(direction))
            found = own("and", found, test, shape=pred)
    return found


def _is_elementwise(computation: ComputationOp) -> bool:
    root = computation.root
    for op in computation.instructions:
        if isinstance(op, ParameterOp | ConstantOp) or (isinstance(op, TupleOp) and op is root):
            continue
        shape = op.shape
        if not op.opcode.elementwise or op.control_predecessors:
            return False
        if not isinstance(shape, ArrayShape) or shape.dimensions:
            return False
    return True


def _inline(
    own: Writer, computation: ComputationOp, arguments: Sequence[Instruction], sizes: Sequence[int]
) -> list[Instruction]:
    """A function of scalars on arrays."""
    values: dict[SSAValue, Instruction] = {}
    root = computation.root
    for op in computation.instructions:
        if isinstance(op, ParameterOp):
            values[op.output] = arguments[op.parameter_number]
            continue
        if isinstance(op, TupleOp):
            continue
        scalar = array(op)
        properties = {k: v for k, v in op.properties.items() if k not in ("metadata", "sharding")}
        if isinstance(op, ConstantOp):
            made = own("constant", shape=ArrayShape(scalar.element_type, ()), **properties)
            values[op.output] = own.spread(made, sizes)
        else:
            operands = [values[v] for v in op.inputs]
            wanted = plain(scalar.element_type, sizes)
            values[op.output] = own(op.opcode.name, *operands, shape=wanted, **properties)
    if isinstance(root, TupleOp):
        return [values[v] for v in root.inputs]
    return [values[root.output]]


@dataclass(frozen=True)
class ScatterExpanderPass(ExpanderPass):
    """Expands scatters into loops that combine one window of updates a round.

    Before and after:

        %s = f32[9] scatter(%x, %i, %u), …, to_apply=%add
          =>   %w = (s32[], f32[9], s32[5,1], f32[5,1]) while(…)   %s = get-tuple-element(%w), index=1

    Updates are applied in the order of their indices; a window that does not lie inside the operand is left
    out whole. Without updates the operands are the results. Dynamic shapes, batching dimensions and functions that
    are not element-wise stay. Source: reference of the passes, "ScatterExpander".
    """

    name = "scatter_expander"
    rules: ClassVar[tuple[Rule, ...]] = (scatter_of_any, scatter_of_one_window)

    simple_only: bool = False
    """Expands scatters of one window only."""
