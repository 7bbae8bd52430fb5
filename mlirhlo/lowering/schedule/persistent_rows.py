"""The schedules of rows that read something alike, as the scales of a norm: how many rows a block computes in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.structured import KernelOp, sizes_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.row_chains import folds_below
from mlirhlo.lowering.schedule.staged_rows import StagedRead, staged_reads

_AGAIN = 0.025
"""Part of the traffic that reading alike values again may add."""
_OTHERS = 8192
"""Bytes of shared memory for what folds of rows need."""


_MAX_IDLE = 1.02
"""Rows that blocks have threads for, for each there is."""


def alike_reads(roots: Sequence[Operation]) -> list[StagedRead]:
    """What every row reads alike, an element for each of its own."""
    return [
        read
        for read in staged_reads(roots)
        if read.by_element and not read.by_row and not element_of(read.value).is_complex
    ]


def persist_rows(kernel: KernelOp, device: GpuDevice) -> None:
    """Lets blocks compute several rows in turn where rows read something alike, which then stays on the chip."""
    roots = [op for op in kernel.block.ops if SCHEDULE in op.attributes]
    schedules = [schedule_of(op) for op in roots]
    if not schedules or any(s is None or s.kind != "rows" or s.parts > 1 for s in schedules):
        return
    alike = [read.value for read in alike_reads(roots)]
    first = schedules[0]
    assert first is not None
    again = sum(map(_bytes, alike))
    is_large = again > device.shared_memory_per_block_optin - _OTHERS
    if not alike or is_large or first.rounds or first.row_threads > first.threads:
        return
    schedule = _persistent(first, roots, again, device)
    for op in roots:
        op.attributes[SCHEDULE] = schedule.attribute()


def _persistent(
    schedule: Schedule, roots: Sequence[Operation], again: int, device: GpuDevice
) -> Schedule:
    """As many blocks as the device runs at once, or fewer where each would add much to the traffic."""
    fold = folds_below(roots)[0]
    rows = prod(sizes_of(fold.outputs[0]))
    own = {r.value for r in staged_reads(roots) if r.by_row} | {
        v for op in roots for v in op.results
    }
    moved = sum(map(_bytes, own))
    most = 1 + int(_AGAIN * (moved + again) / again)
    team, threads = schedule.row_threads, device.threads_per_block_limit
    while threads > schedule.threads and most < device.core_count:
        # Few blocks should have many threads; teams without a row would read another one's again.
        for blocks in range(most, most // 2, -1):
            at_once = blocks * (threads // team)
            rounds = -(-rows // at_once)
            if rounds * at_once <= rows * _MAX_IDLE:
                return replace(schedule, threads=threads, rounds=rounds)
        threads //= 2
    resident = device.core_count * max(device.threads_per_core_limit // threads, 1)
    at_once = min(most, resident) * (threads // team)
    return replace(schedule, threads=threads, rounds=-(-rows // at_once))


def _bytes(value: SSAValue) -> int:
    return prod(sizes_of(value)) * element_of(value).byte_size
