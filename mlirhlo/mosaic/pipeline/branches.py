"""Branches between stages: those that are decided, turned, nested, or stand one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, Region

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import build, insert, replace
from mlirhlo.mosaic.pipeline.constants import one_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, SSAValue


def simplify_branch(branch: Operation) -> bool:
    """Whether an `scf.if` became another one, or none.

    A decided branch is what it does; `if not c` is `if c` with its sides changed; branches on the same
    condition right after one another are one, and so is a branch that is all another one does. Source of
    the rules: MLIR's canonicalisation of `scf.if`.
    """
    return _decide(branch) or _turn(branch) or _combine(branch) or _flatten(branch)


def inline(op: Operation, block: Block) -> None:
    """Puts the operations of a region before the one that has it, which goes."""
    last = block.last_op
    assert last is not None
    for inner in list(block.ops):
        if inner is not last:
            block.detach_op(inner)
            insert(inner, op)
    replace(op, list(last.operands))


def _decide(branch: Operation) -> bool:
    """A branch on a constant is the operations of one side."""
    condition = one_value(branch.operands[0])
    if condition is None:
        return False
    region = branch.regions[0 if condition else 1]
    if not region.blocks:
        replace(branch, [])
        return True
    inline(branch, region.blocks[0])
    return True


def _turn(branch: Operation) -> bool:
    """A branch on what is not so has its sides the other way round."""
    test = branch.operands[0].owner
    if not isinstance(test, Operation) or name_of(test) != "arith.xori":
        return False
    if not one_value(test.operands[1]):
        return False
    then, other = _taken(branch)
    other = other or Block([build("scf.yield")])
    replace(branch, _made(branch, test.operands[0], (other, then)).results)
    return True


def _combine(branch: Operation) -> bool:
    """A branch right after one on the same condition goes on in its sides."""
    before = branch.prev_op
    if before is None or name_of(before) != "scf.if" or before.operands[0] != branch.operands[0]:
        return False
    sides = [
        _joined(before, first, second)
        for first, second in zip(_taken(before), _taken(branch), strict=True)
    ]
    types = (*before.result_types, *branch.result_types)
    results = _made(branch, branch.operands[0], sides, types).results
    replace(branch, results[len(before.results) :])
    replace(before, results[: len(before.results)])
    return True


def _joined(before: Operation, first: Block | None, second: Block | None) -> Block | None:
    """What one side of a branch does, then what that of the next one does with its results."""
    if first is None or second is None:
        return first or second
    end, last = first.last_op, second.last_op
    assert end is not None
    assert last is not None
    for result, value in zip(before.results, list(end.operands), strict=True):
        for use in list(result.uses):
            if second.is_ancestor(use.operation):
                use.operation.operands[use.index] = value
    values = [*end.operands, *last.operands]
    first.erase_op(end)
    for op in list(second.ops):
        second.detach_op(op)
        first.add_op(op)
    last.operands = values
    return first


def _flatten(branch: Operation) -> bool:
    """A branch that is all another one does is one on both conditions."""
    inner = branch.regions[0].blocks[0].first_op
    if inner is None or name_of(inner) != "scf.if" or branch.results or inner.results:
        return False
    if inner.next_op is not branch.regions[0].blocks[0].last_op:
        return False
    if not (_does_nothing(branch.regions[1]) and _does_nothing(inner.regions[1])):
        return False
    conditions = (branch.operands[0], inner.operands[0])
    both = insert(build("arith.andi", conditions, (conditions[0].type,), None, branch), branch)
    _made(branch, both.results[0], (_taken(inner)[0], None))
    replace(branch, [])
    return True


def _does_nothing(side: Region) -> bool:
    return not side.blocks or side.blocks[0].first_op is side.blocks[0].last_op


def _taken(branch: Operation) -> list[Block | None]:
    """The blocks of both sides, detached; None for a side that is not there."""
    return [
        region.detach_block(region.blocks[0]) if region.blocks else None
        for region in branch.regions
    ]


def _made(
    like: Operation,
    condition: SSAValue,
    sides: Sequence[Block | None],
    types: Sequence[Attribute] | None = None,
) -> Operation:
    """A branch before another one, with its attributes."""
    new = type(like).create(
        operands=[condition],
        result_types=like.result_types if types is None else types,
        properties=like.properties,
        attributes=like.attributes,
        regions=[Region(() if side is None else side) for side in sides],
    )
    return insert(new, like)
