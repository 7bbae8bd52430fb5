"""Dots by their axes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.hlo.ops import DotOp, ReshapeOp, SliceOp, TransposeOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import choose
from mlirhlo.lowering.hlo_to_loops.contractions.inner import FEW_ROWS
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor, Index
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.loop_kernels import array
from mlirhlo.lowering.target import current


def of_dot(op: DotOp, in_memory: Sequence[SSAValue]) -> Contraction:
    """The contraction of a dot; `in_memory`: values that are buffers."""
    return _by_units(op, in_memory) or _by_elements(op, in_memory)


def _by_elements(op: DotOp, in_memory: Sequence[SSAValue]) -> Contraction:
    lhs, rhs = op.inputs[:2]
    left, right, own = array(lhs), array(rhs), array(op.output)
    sizes: list[int] = []

    def axis(size: int) -> int:
        sizes.append(size)
        return len(sizes) - 1

    lhs_axes: dict[int, int] = {}
    rhs_axes: dict[int, int] = {}
    for here, there in zip(op.lhs_batch_dims, op.rhs_batch_dims, strict=True):
        lhs_axes[here] = rhs_axes[there] = axis(left.dimensions[here])
    batch = tuple(lhs_axes[d] for d in op.lhs_batch_dims)
    for here, there in zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True):
        lhs_axes[here] = rhs_axes[there] = axis(left.dimensions[here])
    depth = tuple(lhs_axes[d] for d in op.lhs_contracting_dims)
    rows = tuple(axis(left.dimensions[d]) for d in range(left.rank) if d not in lhs_axes)
    columns = tuple(axis(right.dimensions[d]) for d in range(right.rank) if d not in rhs_axes)
    lhs_axes |= dict(zip((d for d in range(left.rank) if d not in lhs_axes), rows, strict=True))
    rhs_axes |= dict(zip((d for d in range(right.rank) if d not in rhs_axes), columns, strict=True))
    algorithm = op.algorithm.lower()
    return Contraction(
        choose(left.element_type, right.element_type, own.element_type, algorithm, current()),
        sizes,
        batch,
        rows,
        columns,
        depth,
        _factor(lhs, [lhs_axes[d] for d in range(left.rank)], in_memory),
        _factor(rhs, [rhs_axes[d] for d in range(right.rank)], in_memory),
        Factor(
            op.output,
            own,
            tuple(Index(((a, 1),)) for a in (*batch, *rows, *columns)),
            True,
        ),
        algorithm,
    )


def _factor(value: SSAValue, axes: Sequence[int], in_memory: Sequence[SSAValue]) -> Factor:
    """An operand; one that is in memory but for the places of its elements is read there."""
    indices = tuple(Index(((a, 1),)) for a in axes)
    source, places = value, indices
    while source not in in_memory:
        moved = _moved(source.owner, places)
        if moved is None:
            return Factor(value, array(value), indices, False)
        source, places = moved
    return Factor(source, array(source), places, True)


def _moved(
    op: Operation | Block, indices: Sequence[Index]
) -> tuple[SSAValue, tuple[Index, ...]] | None:
    """The operand of a transpose, a slice, or a reshape that adds or takes dimensions of one element, and
    how its dimensions are indexed where those of the result are by `indices`; None for anything else."""
    match op:
        case TransposeOp():
            by_dimension = dict(zip(op.dimensions, indices, strict=True))
            return op.operand, tuple(by_dimension[d] for d in range(len(indices)))
        case SliceOp():
            assert op.slices is not None
            parts = zip(indices, op.slices.dimensions, strict=True)
            return op.operand, tuple(_sliced(i, s.start, s.stride) for i, s in parts)
        case ReshapeOp():
            before, after = array(op.operand).dimensions, array(op.output).dimensions
            if [n for n in before if n != 1] != [n for n in after if n != 1]:
                return None
            kept = iter([i for i, n in zip(indices, after, strict=True) if n != 1])
            return op.operand, tuple(Index() if n == 1 else next(kept) for n in before)
        case _:
            return None


def _sliced(index: Index, start: int, step: int) -> Index:
    terms = tuple((axis, factor * step) for axis, factor in index.terms)
    return Index(terms, start + step * index.offset)


def _by_units(op: DotOp, in_memory: Sequence[SSAValue]) -> Contraction | None:
    """A dot whose right operand stands in memory as micro-kernels read it: groups of neighbours along the
    depth side by side, `lhs[m, u, g] * rhs[u, n, g]`. None for any other.
    """
    lhs, rhs = op.inputs[:2]
    left, right, own = array(lhs), array(rhs), array(op.output)
    source = lhs
    while source not in in_memory and isinstance(source.owner, ReshapeOp):
        source = source.owner.inputs[0]
    if rhs not in in_memory or source not in in_memory or op.lhs_batch_dims:
        return None
    if (left.rank, right.rank) != (3, 3) or not all(
        physical_order(s) == tuple(range(s.rank)) for s in (left, array(source), right, own)
    ):
        return None
    pairs = set(zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True))
    algorithm = op.algorithm.lower()
    arithmetic = choose(
        left.element_type, right.element_type, own.element_type, algorithm, current()
    )
    (rows, units, group), (_, columns, _) = left.dimensions, right.dimensions
    if pairs != {(1, 0), (2, 2)} or group != arithmetic.group or group == 1:
        return None
    if left.element_type is not arithmetic.lhs or right.element_type is not arithmetic.rhs:
        return None
    # Whole registers of units; few rows are multiplied without groups.
    if rows <= FEW_ROWS or units % 16 or columns % 32:
        return None
    row, column, depth = range(3)
    by_unit = ArrayShape(right.element_type, (units, columns))
    return Contraction(
        arithmetic,
        [rows, columns, units * group],
        (),
        (row,),
        (column,),
        (depth,),
        Factor(
            source,
            ArrayShape(left.element_type, (rows, units * group)),
            (Index(((row, 1),)), Index(((depth, 1),))),
            True,
        ),
        Factor(rhs, by_unit, (Index(((depth, 1),)), Index(((column, 1),))), True),
        Factor(op.output, own, (Index(((row, 1),)), Index(((column, 1),))), True),
        algorithm,
        rhs_in_units=True,
    )
