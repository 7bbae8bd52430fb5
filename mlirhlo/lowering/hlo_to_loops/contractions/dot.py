"""Dots by their axes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import DotOp
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import choose
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor, Index
from mlirhlo.lowering.hlo_to_loops.loop_kernels import array
from mlirhlo.lowering.target import current


def of_dot(op: DotOp, in_memory: Sequence[SSAValue]) -> Contraction:
    """The contraction of a dot; `in_memory`: values that are buffers."""
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
    indices = tuple(Index(((a, 1),)) for a in axes)
    return Factor(value, array(value), indices, value in in_memory)
