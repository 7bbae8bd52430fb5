"""Our last stage: operations of a block in the order a wide core would start them, with their cycles.

Each operation gets `cycle`, the cycle of its block in which it can start. Units and latencies are
those of a model (`UNITS`), not of a chip: one load, one store, two vector arithmetic, one matrix and
one scalar unit. Operations that touch memory, semaphores or regions keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import functions_of, is_vector
from mlirhlo.mosaic.pipeline.simplify import is_pure

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

UNITS: Mapping[str, tuple[int, int]] = {
    "load": (1, 4),
    "store": (1, 1),
    "vector": (2, 2),
    "transcendental": (1, 8),
    "cross-lane": (1, 16),
    "matrix": (1, 64),
    "scalar": (2, 1),
    "order": (1, 1),
}
"""By unit, how many operations it starts in a cycle, and after how many cycles results are there."""

_CROSS_LANE = frozenset(
    {
        "tpu.all_reduce",
        "tpu.reduce",
        "tpu.transpose",
        "tpu.dynamic_rotate",
        "tpu.dynamic_gather",
        "mosaic_tc.relayout",
    }
)


def unit_of(op: Operation) -> str:
    """The unit an operation runs on."""
    name = name_of(op)
    if name in ("tpu.load", "tpu.vector_load", "tpu.strided_load"):
        return "load"
    if name in ("tpu.store", "tpu.vector_store", "tpu.strided_store"):
        return "store"
    if name == "tpu.matmul":
        return "matrix"
    if name in _CROSS_LANE:
        return "cross-lane"
    if not is_pure(op):
        return "order"
    if not any(is_vector(value.type) for value in (*op.operands, *op.results)):
        return "scalar"
    return "transcendental" if name.startswith("math.") else "vector"


def schedule(module: ModuleOp) -> None:
    """Orders every block by the cycles in which its operations can start."""
    for function in functions_of(module):
        blocks = [
            block for op in function.walk() for region in op.regions for block in region.blocks
        ]
        for block in blocks:
            _schedule(block)


def _schedule(block: Block) -> None:
    ops = list(block.ops)
    last = block.last_op
    starts: dict[Operation, int] = {}
    used: dict[tuple[str, int], int] = {}
    free: dict[str, int] = {}
    barrier = 0
    for op in ops:
        unit = unit_of(op)
        width, _ = UNITS[unit]
        ready = max((_done(value.owner, op, starts) for value in op.operands), default=0)
        for nested in op.walk() if op.regions else ():
            for value in nested.operands:
                ready = max(ready, _done(value.owner, op, starts))
        is_ordered = not is_pure(op)
        cycle = (
            max(ready, barrier, free.get(unit, 0)) if is_ordered else max(ready, free.get(unit, 0))
        )
        while used.get((unit, cycle), 0) >= width:
            cycle += 1
        used[unit, cycle] = used.get((unit, cycle), 0) + 1
        if used[unit, cycle] >= width and free.get(unit, 0) == cycle:
            free[unit] = cycle + 1
        starts[op] = cycle
        if is_ordered:
            barrier = cycle + 1
    order = sorted(range(len(ops)), key=lambda at: (starts[ops[at]], at))
    end = max(starts.values(), default=0) + 1
    for op in ops:
        block.detach_op(op)
    for at in order:
        if ops[at] is not last:
            block.add_op(ops[at])
    if last is not None:
        starts[last] = end
        block.add_op(last)
    for op in ops:
        op.attributes["cycle"] = IntegerAttr(starts[op], i64)


def _done(owner: Operation | Block, user: Operation, starts: Mapping[Operation, int]) -> int:
    if not isinstance(owner, Operation) or owner not in starts or owner is user:
        return 0
    return starts[owner] + UNITS[unit_of(owner)][1]
