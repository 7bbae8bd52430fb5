"""Loops and branches between stages: what a loop only hands on, and branches that say less than they could."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.branches import inline, simplify_branch
from mlirhlo.mosaic.pipeline.building import insert, replace
from mlirhlo.mosaic.target.divisible import constant_of

if TYPE_CHECKING:
    from xdsl.ir import Operation


def simplify_control(function: Operation) -> bool:
    """Whether anything changed: loops carry only what changes, those of one known step are their body,
    branches are as `branches` has them."""
    changed = False
    for op in list(function.walk()):
        if op.parent is None:
            continue
        if name_of(op) == "scf.for":
            changed |= _run_once(op) or _drop_unchanged(op)
        elif name_of(op) == "scf.if":
            changed |= simplify_branch(op)
    return changed


def _run_once(loop: Operation) -> bool:
    """A loop of one known step is its body, one of none what it began with."""
    lower, upper, step = (constant_of(operand) for operand in loop.operands[:3])
    if lower is None or upper is None or step is None or step <= 0:
        return False
    count = len(range(lower, upper, step))
    if count > 1:
        return False
    if count == 0:
        replace(loop, loop.operands[3:])
        return True
    block = loop.regions[0].blocks[0]
    for argument, value in zip(block.args, (loop.operands[0], *loop.operands[3:]), strict=True):
        argument.replace_all_uses_with(value)
    inline(loop, block)
    return True


def _drop_unchanged(loop: Operation) -> bool:
    """A carried value that every round hands on as it got it is the one outside."""
    block = loop.regions[0].blocks[0]
    last = block.last_op
    assert last is not None
    kept: list[int] = []
    for at, (start, value) in enumerate(zip(loop.operands[3:], last.operands, strict=True)):
        argument = block.args[1 + at]
        if value in (argument, start):
            argument.replace_all_uses_with(start)
            loop.results[at].replace_all_uses_with(start)
        else:
            kept.append(at)
    count = len(loop.results)
    if len(kept) == count:
        return False
    last.operands = [last.operands[at] for at in kept]
    for at in reversed(range(count)):
        if at not in kept:
            block.erase_arg(block.args[1 + at])
    new = type(loop).create(
        operands=[*loop.operands[:3], *(loop.operands[3 + at] for at in kept)],
        result_types=[loop.results[at].type for at in kept],
        properties=loop.properties,
        attributes=loop.attributes,
        regions=[loop.detach_region(region) for region in list(loop.regions)],
    )
    insert(new, loop)
    found = dict(zip(kept, new.results, strict=True))
    for at, result in enumerate(loop.results):
        if at in found:
            found[at].name_hint = result.name_hint
    # What was handed on has no uses any more.
    replace(loop, [found.get(at, loop.operands[3 + at]) for at in range(count)])
    return True
