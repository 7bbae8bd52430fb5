"""Loops, branches and waits."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.gpu.interpreter.groups import Control, Steps, WarpGroup


def _for(group: WarpGroup, op: Operation) -> Steps:
    lower, upper, step, *carried = (group.env[v] for v in op.operands)
    block = op.regions[0].blocks[0]
    state: Sequence[Any] = carried
    for i in range(int(lower), int(upper), int(step)):
        for argument, value in zip(block.args, (np.int32(i), *state), strict=True):
            group.env[argument] = value
        state = yield from group.go(block)
    return tuple(state)


def _if(group: WarpGroup, op: Operation) -> Steps:
    region = op.regions[0 if group.env[op.operands[0]] else 1]
    if not region.blocks:
        return ()
    return (yield from group.go(region.blocks[0]))


def _while(group: WarpGroup, op: Operation) -> Steps:
    state: Sequence[Any] = [group.env[v] for v in op.operands]
    before, after = (region.blocks[0] for region in op.regions)
    while True:
        group.env.update(zip(before.args, state, strict=True))
        holds, *state = yield from group.go(before)
        if not holds:
            return tuple(state)
        group.env.update(zip(after.args, state, strict=True))
        state = yield from group.go(after)


def _switch(group: WarpGroup, op: Operation) -> Steps:
    cases = integers_of(op, "cases") or ()
    number = int(group.env[op.operands[0]])
    region = op.regions[1 + cases.index(number) if number in cases else 0]
    return (yield from group.go(region.blocks[0]))


def _until(group: WarpGroup, op: Operation, ended: Callable[[], bool]) -> Steps:
    group.waits_at = op
    while not ended():
        yield
    group.waits_at = None


def _wait(group: WarpGroup, op: Operation) -> Steps:
    barrier, parity, *_ = (group.env[v] for v in op.operands)
    state = barrier.array.item(0)
    yield from _until(group, op, lambda: state.phase % 2 != int(parity))
    return ()


def _block_barrier(group: WarpGroup, op: Operation) -> Steps:
    meeting = group.block.meeting
    mine = meeting.arrive()
    yield from _until(group, op, lambda: meeting.round != mine)
    return ()


def cluster_arrive(group: WarpGroup, op: Operation, operands: Any) -> Any:
    """Arrives at the barrier of the cluster."""
    del op, operands
    group.env[ARRIVED] = group.run.meeting.arrive()
    return ()


def _cluster_wait(group: WarpGroup, op: Operation) -> Steps:
    mine = group.env.pop(ARRIVED, 0)
    yield from _until(group, op, lambda: group.run.meeting.round != mine)
    return ()


ARRIVED: Any = "arrived"
CONTROL: Mapping[str, Control] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.index_switch": _switch,
    "mosaic_gpu.wait": _wait,
    "nvvm.mbarrier.try_wait.parity": _wait,
    "gpu.barrier": _block_barrier,
    "nvvm.cluster.wait": _cluster_wait,
}
"""What has regions or waits."""
