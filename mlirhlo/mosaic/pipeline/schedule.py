"""Our last stage: operations of a block in the order in which a core would start them, with their cycles.

Each operation gets `cycle`, the cycle of its block in which it can start. What it costs, and on which unit, is the
timeline's model (`timeline/cost.py`), of a v5e. Operations that touch memory, semaphores or regions keep their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation

from mlirhlo.mosaic.pipeline.building import functions_of
from mlirhlo.mosaic.pipeline.simplify import is_pure
from mlirhlo.mosaic.timeline.cost import SCALAR, Cost, cost_of
from mlirhlo.mosaic.timeline.figures import chip_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_MODEL = "v5e"
_STEP = Cost(SCALAR, 1, 1)
"""Of what begins other work: loops, branches."""


def schedule(module: ModuleOp) -> None:
    """Orders every block by the cycles in which its operations can start."""
    for function in functions_of(module):
        blocks = [
            block for op in function.walk() for region in op.regions for block in region.blocks
        ]
        for block in blocks:
            _schedule(block)


def _schedule(block: Block) -> None:
    chip, ops, last = chip_of(_MODEL), list(block.ops), block.last_op
    starts: dict[Operation, float] = {}
    there: dict[Operation, float] = {}
    free: dict[str, float] = {}
    barrier = 0.0
    for op in ops:
        cost = _STEP if op.regions else cost_of(op, chip)
        units = (cost.unit, *(unit for unit, _ in cost.also))
        nested = (inner for region in op.regions for inner in region.walk())
        owners = (value.owner for user in (op, *nested) for value in user.operands)
        ready = max(
            (there.get(one, 0.0) for one in owners if isinstance(one, Operation)), default=0.0
        )
        start = max(ready, *(free.get(unit, 0.0) for unit in units))
        if not is_pure(op):
            start = max(start, barrier)
            barrier = start + 1
        free[cost.unit] = start + cost.cycles
        free.update((unit, start + busy) for unit, busy in cost.also)
        starts[op], there[op] = start, start + cost.latency
    order = sorted(range(len(ops)), key=lambda at: (starts[ops[at]], at))
    end = max(starts.values(), default=0.0) + 1
    for op in ops:
        block.detach_op(op)
    for at in order:
        if ops[at] is not last:
            block.add_op(ops[at])
    if last is not None:
        starts[last] = end
        block.add_op(last)
    for op in ops:
        op.attributes["cycle"] = IntegerAttr(int(starts[op]), i64)
