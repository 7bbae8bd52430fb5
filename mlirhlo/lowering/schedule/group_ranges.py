"""Contractions whose factors count within groups alone, as those of ragged dots: which terms a tile needs.

Where rows are in groups, each tile of the result is of one group, and multiplies factors as they are: rows of other
groups are computed by other tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from mlirhlo.dialects.hlo.ops import AndOp, CompareOp, SelectOp
from mlirhlo.dialects.structured import ContractOp, IndexOp, sizes_of
from mlirhlo.dialects.structured.base import yielded


@dataclass(frozen=True, slots=True)
class GroupRange:
    """Factors are zeros where the index along `position` is not from the start to the end of the group."""

    position: int
    group: int
    """Dimensions of the iteration space."""
    start: SSAValue
    end: SSAValue
    inside: SSAValue
    """In the body: bounds of the group, and whether the index is within them."""
    inputs: tuple[int, ...]
    """Numbers of the inputs that bounds are computed from."""


def group_range_of(op: ContractOp) -> GroupRange | None:
    """The groups of a contraction: `select(start <= index and index < end, factor, 0)` for both factors."""
    tests = [_test(value) for value in yielded(op.body)]
    test = tests[0]
    if test is None or any(other is not test for other in tests):
        return None
    bounds = [_bound(v, word) for v, word in zip(test.inputs, ("GE", "LT"), strict=True)]
    found = [bound for bound in bounds if bound is not None]
    if len(found) < 2 or found[0][0] != found[1][0]:
        return None
    (position, start), (_, end) = found
    numbers = _arguments([start, end])
    groups = {op.index_maps[n].results[-1:] for n in numbers}
    last = next(iter(groups), ())
    if len(groups) != 1 or not last or not isinstance(last[0], AffineDimExpr):
        return None
    return GroupRange(position, last[0].position, start, end, test.output, numbers)


def row_groups_of(op: ContractOp) -> GroupRange | None:
    """The groups of rows of a contraction over groups and terms."""
    found, rank = group_range_of(op), len(sizes_of(op.output))
    return found if found is not None and found.position < rank <= found.group else None


def factors_of(op: ContractOp) -> tuple[SSAValue, SSAValue]:
    """What a body multiplies; of groups of rows the factors in their group."""
    first, second = yielded(op.body)
    if row_groups_of(op) is None:
        return first, second
    return _inside(first), _inside(second)


def _inside(factor: SSAValue) -> SSAValue:
    assert isinstance(factor.owner, SelectOp)
    return factor.owner.inputs[1]


def _test(factor: SSAValue) -> AndOp | None:
    chosen = factor.owner
    test = chosen.inputs[0].owner if isinstance(chosen, SelectOp) else None
    return test if isinstance(test, AndOp) else None


def _bound(value: SSAValue, direction: str) -> tuple[int, SSAValue] | None:
    """The dimension of an index, and what it is compared with."""
    test = value.owner
    if not isinstance(test, CompareOp) or test.direction != direction:
        return None
    index, bound = test.inputs
    owner = index.owner
    return (owner.dimension, bound) if isinstance(owner, IndexOp) else None


def _arguments(values: Sequence[SSAValue]) -> tuple[int, ...]:
    """Numbers of the arguments of a body that values are computed from."""
    found: set[int] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, BlockArgument):
            found.add(value.index)
        elif isinstance(value.owner, Operation):
            stack += value.owner.operands
    return tuple(sorted(found))
