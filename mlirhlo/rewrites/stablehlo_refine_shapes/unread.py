"""What nobody reads, and what may go then."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from mlirhlo.dialects.chlo.table import ROWS as CHLO_ROWS
from mlirhlo.dialects.effects import Effect
from mlirhlo.dialects.stablehlo.table import ROWS


def is_pure(function: FuncOp) -> bool:
    """Whether a function only computes."""
    return all(
        (row := ROWS.get(op.name) or CHLO_ROWS.get(op.name)) is not None
        and row.effect is Effect.NONE
        for op in function.body.block.ops
        if op.name != "func.return"
    )


def sweep(block: Block) -> None:
    """Takes away what nobody reads and has no effect."""
    op = block.last_op
    while op is not None:
        before = op.prev_op
        for region in op.regions:
            for inner in region.blocks:
                sweep(inner)
        row = ROWS.get(op.name) or CHLO_ROWS.get(op.name)
        if (
            row is not None
            and row.effect is Effect.NONE
            and "terminator" not in row.traits
            and not any(result.first_use for result in op.results)
        ):
            block.erase_op(op)
        op = before
