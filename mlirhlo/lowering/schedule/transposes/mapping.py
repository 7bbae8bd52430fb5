"""`gpu-map-transposes`: elementwise launches that read across the order of memory go through boxes of shared memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mlirhlo.dialects.structured import KernelOp, MapOp
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, schedule_of
from mlirhlo.lowering.schedule.transposes.banks import placing_of
from mlirhlo.lowering.schedule.transposes.boxes import boxes_of, crossing_of
from mlirhlo.lowering.schedule.transposes.lattices import Lattice

_THREADS = 256
_WARP = 32
_TRIES = 8
"""Boxes among which one without bank conflicts is looked for."""


def map_transposes(kernel: KernelOp, device: GpuDevice) -> None:
    """Makes elementwise launches of one op that read across the order of memory launches of boxes."""
    launched = {op: s for op in kernel.block.ops if (s := schedule_of(op)) is not None}
    for op, schedule in launched.items():
        is_alone = sum(s.launch == schedule.launch for s in launched.values()) == 1
        if schedule.kind != "elements" or not isinstance(op, MapOp) or not is_alone:
            continue
        crossing = crossing_of(op)
        boxes = [] if crossing is None else boxes_of(crossing, device)
        if crossing is None or not boxes:
            continue
        limit = device.shared_memory_per_block_optin
        box, placing = placing_of(crossing, boxes[:_TRIES], limit)
        lattice = placing.lattice or Lattice((), (), (), 0)
        op.attributes[SCHEDULE] = replace(
            schedule,
            kind="transpose",
            threads=min(_THREADS, -(-prod(box) // _WARP) * _WARP),
            row_threads=placing.widths[0],
            column_threads=placing.widths[1],
            is_across=int(placing.is_across),
            tile=box,
            pitches=placing.pitches,
            swizzle=placing.swizzle,
            written=lattice.written,
            lanes=lattice.lanes,
            lines=lattice.lines,
        ).attribute()
