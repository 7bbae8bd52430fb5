"""`gpu-map-transposes`: elementwise launches that read across the order of memory go through boxes of shared memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mlirhlo.dialects.structured import KernelOp, MapOp
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, schedule_of
from mlirhlo.lowering.schedule.banks import Placing, placing_of
from mlirhlo.lowering.schedule.boxes import boxes_of, crossing_of

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
        placings: dict[tuple[int, ...], Placing] = {}
        for box in boxes[:_TRIES]:
            placings[box] = placing_of(crossing, box)
            if not placings[box].waits:
                break
        box = min(placings, key=lambda box: placings[box].waits)
        op.attributes[SCHEDULE] = replace(
            schedule,
            kind="transpose",
            threads=min(_THREADS, -(-prod(box) // _WARP) * _WARP),
            row_threads=placings[box].width,
            tile=box,
            pitches=placings[box].pitches,
        ).attribute()
