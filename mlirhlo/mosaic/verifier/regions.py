"""Constraints of operations with regions: what their blocks take, and what they end in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.verifier.constraint import Constraint, demand

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation


def _blocks(op: Operation) -> Sequence[Block | None]:
    """The only block of each region; None where there is another number of them."""
    return [r.blocks[0] if len(r.blocks) == 1 else None for r in op.regions]


def _end(block: Block, name: str, count: int) -> str | None:
    last = block.last_op
    found = "nothing" if last is None else name_of(last)
    if last is None or found != name:
        return f"the block ends in {found}, not in {name}"
    given = len(last.operands) - (name == "scf.condition")
    return None if given == count else f"{name} has {given} values, {count} are expected"


def _for(op: Operation) -> str | None:
    carried = len(op.operands) - 3
    blocks = _blocks(op)
    if carried != len(op.results) or len(blocks) != 1 or blocks[0] is None:
        return f"{carried} initial values for {len(op.results)} results"
    if len(blocks[0].args) != 1 + carried:
        return f"the body takes {len(blocks[0].args)} values, {1 + carried} are expected"
    return _end(blocks[0], "scf.yield", carried)


def _while(op: Operation) -> str | None:
    blocks = _blocks(op)
    if len(blocks) != 2 or blocks[0] is None or blocks[1] is None:
        return "there is no condition and body"
    before, after = blocks[0], blocks[1]
    carried, results = len(op.operands), len(op.results)
    if len(before.args) != carried or len(after.args) != results:
        return f"the condition takes {len(before.args)} values, the body {len(after.args)}"
    return _end(before, "scf.condition", results) or _end(after, "scf.yield", carried)


def _yields(op: Operation) -> str | None:
    blocks = _blocks(op)
    if op.results and (len(blocks) < 1 or (name_of(op) == "scf.if" and len(blocks) < 2)):
        return f"there are {len(blocks)} regions for {len(op.results)} results"
    word = "tpu.yield" if name_of(op) == "tpu.region" else "scf.yield"
    for region, block in zip(op.regions, blocks, strict=True):
        if block is None:
            if op.results or len(region.blocks) > 1:
                return f"a region has {len(region.blocks)} blocks"
        elif problem := _end(block, word, len(op.results)):
            return problem
    return None


ROWS: tuple[Constraint, ...] = (
    *demand("scf.for", 1, "the body takes an index and what it hands on, and yields it", _for),
    *demand("scf.while", 1, "condition and body take and hand on as many values", _while),
    *demand("scf.if tpu.region", 1, "each region yields the results", _yields),
)
