"""Contractions as products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument, Operation, SSAValue

from mlirhlo.dialects.structured import ContractOp, IndexOp, sizes_of
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.schedule.group_ranges import GroupRange, factors_of, row_groups_of


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """A contraction as products of matrices: which dimensions of its space are what."""

    op: ContractOp
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    terms: tuple[int, ...]
    groups: GroupRange | None = None
    """Of rows: each has its own second factor."""

    def size(self, dims: Sequence[int]) -> int:
        """Elements along dimensions of the space."""
        return prod(self.op.space[d] for d in dims)

    def lines(self, side: int) -> tuple[int, ...]:
        """Dimensions of rows or columns."""
        return self.columns if side else self.rows

    def is_minor(self, side: int, dims: Sequence[int]) -> bool:
        """Whether neighbours along the last of these dimensions are neighbours in what a factor reads."""
        if not dims:
            return False
        for number in inputs_of_factor(self.op, side):
            results = self.op.index_maps[number].results
            if results and simplified(results[-1], self.op.space).factor(dims[-1]) not in (0, None):
                return True
        return False


def matrix_product_of(op: ContractOp) -> MatrixProduct:
    """The matrices of a contraction: rows belong to the first factor alone, columns to the second."""
    rank = len(sizes_of(op.output))
    used = [
        {
            d
            for n in inputs_of_factor(op, side)
            for e in op.index_maps[n].results
            for d in e.used_dims()
        }
        | {i.dimension for i in operations_of_factor(op, side) if isinstance(i, IndexOp)}
        for side in (0, 1)
    ]
    groups = row_groups_of(op)
    rows = tuple(d for d in range(rank) if d in used[0] and d not in used[1])
    if groups is not None:
        rows = (groups.position,)
    columns = tuple(d for d in range(rank) if d in used[1] and d not in used[0])
    batch = tuple(d for d in range(rank) if d not in rows and d not in columns)
    terms = tuple(d for d in range(rank, len(op.space)) if groups is None or d != groups.group)
    return MatrixProduct(op, batch, rows, columns, terms, groups)


def inputs_of_factor(op: ContractOp, side: int) -> list[int]:
    """Numbers of the inputs that a factor is computed from."""
    operations = operations_of_factor(op, side)
    values = [factors_of(op)[side], *(v for o in operations for v in o.operands)]
    return sorted({value.index for value in values if isinstance(value, BlockArgument)})


def operations_of_factor(op: ContractOp, side: int) -> list[Operation]:
    """What a body computes a factor by."""
    found: dict[Operation, None] = {}
    stack: list[SSAValue] = [factors_of(op)[side]]
    while stack:
        owner = stack.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            stack += owner.operands
    return list(found)
