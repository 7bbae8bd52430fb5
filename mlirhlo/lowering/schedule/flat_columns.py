"""The schedules of columns whose rows end within sectors: blocks read several rows as they lie beside each other."""

from __future__ import annotations

from math import gcd, prod

from mlirhlo.dialects.structured import FoldOp, KernelOp, sizes_of
from mlirhlo.lowering.gpu.affine import Sum
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.reads import linear_index, reads_of, row_major
from mlirhlo.lowering.schedule.row_chains import folds_below
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

_BYTES = 16
"""That a thread reads at once."""
_THREADS = 256
_WARP = 32
MOST_FOLDED = 32
"""Elements of several rows, side by side, that a thread folds."""
_PARTIAL = 0.02
"""Part of the traffic that folds of parts, written and read again, may add."""


def flatten_columns(kernel: KernelOp, device: GpuDevice) -> None:
    """Makes launches of columns whose rows start within sectors launches of whole rows."""
    roots = [op for op in kernel.block.ops if SCHEDULE in op.attributes]
    schedules = [schedule_of(op) for op in roots]
    if not schedules or any(s is None or s.kind != "columns" for s in schedules):
        return
    folds = folds_below(roots)
    schedule = _flat(folds[0], device) if len(folds) == 1 else None
    if schedule is not None:
        for op in roots:
            op.attributes[SCHEDULE] = schedule.attribute()


def _flat(fold: FoldOp, device: GpuDevice) -> Schedule | None:
    columns, rows = prod(sizes_of(fold.outputs[0])), prod(fold.folded)
    sizes: list[int] = []
    others = 0
    for value, map_ in reads_of(fold, frozenset()):
        if map_ is None or element_of(value).is_complex:
            return None
        if linear_index(map_, sizes_of(value), fold.space) == rows_of_columns(fold):
            sizes.append(element_of(value).byte_size)
        else:
            others += element_of(value).byte_size
    if not sizes or columns * min(sizes) % SECTOR == 0:
        return None
    # What columns have one of is read by neighbouring threads.
    vector = 1 if others else gcd(_BYTES // max(sizes), rows * columns)
    together = SECTOR // gcd(SECTOR, columns * min(sizes))
    together *= max(1, min(-(-_THREADS * vector // (columns * together)), rows // (4 * together)))
    together = min(together, rows)
    slots = together * columns
    threads = min(device.threads_per_block_limit, -(-slots // (vector * _WARP)) * _WARP)
    shared = slots * sum(element_of(v).byte_size for v in fold.outputs)
    is_small = -(-slots // (threads * vector)) * vector <= MOST_FOLDED
    if not is_small or shared > device.shared_memory_per_block_optin:
        return None
    written = sum(element_of(v).byte_size for v in fold.outputs) * columns
    written = 2 * (-(-written // SECTOR) * SECTOR) + others * slots
    most = max(1, int(_PARTIAL * rows * columns * sum(sizes) / written))
    whole = rows // together
    each = -(-whole // min(2 * device.core_count, most, whole))
    return Schedule(
        0,
        "flat_columns",
        threads=threads,
        vector=vector,
        row_threads=together,
        parts=-(-whole // each),
    )


def rows_of_columns(fold: FoldOp) -> Sum:
    """The row-major index of the elements of a fold, by what is folded, then by the results."""
    space, rank = fold.space, len(sizes_of(fold.outputs[0]))
    dims = [*range(rank, len(space)), *range(rank)]
    return row_major(dims, space)
