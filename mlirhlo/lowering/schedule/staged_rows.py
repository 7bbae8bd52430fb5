"""The schedules of short rows: how many a block brings to shared memory together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.structured import FoldOp, KernelOp, MapOp, sizes_of
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of, schedule_of
from mlirhlo.lowering.schedule.reads import linear_index, reads_of, row_major
from mlirhlo.lowering.schedule.row_chains import folds_below
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

_WARP = 32
_HELD = 8
"""Elements of a row that a thread folds."""
_LONG = 2048
"""Bytes of a row that wastes less than a part in 32 of its sectors when it is read alone."""
_BLOCK = 128
_AGAIN = 0.025
"""Part of the traffic that reading alike values in every block may add."""
_SHARING = 16
"""Rows of a block that read something alike."""


@dataclass(frozen=True, slots=True)
class StagedRead:
    """A value that rows and their elements read in the order of memory."""

    value: SSAValue
    map: AffineMap
    """From the space of rows and their elements."""
    by_row: bool
    """Whether each row reads others."""
    by_element: bool
    """Whether a row reads as many as it has elements."""


def staged_reads(roots: Sequence[Operation]) -> list[StagedRead]:
    """What the chain of these results reads in the order of memory."""
    folds = folds_below(roots)
    rank = len(sizes_of(folds[0].outputs[0]))
    space = folds[0].space
    orders = {  # of one row, all elements are read by the row
        row_major(range(first, last), space): (first < rank, last > rank)
        for first, last in ((rank, len(space)), (0, rank), (0, len(space)))
    }
    found: dict[SSAValue, StagedRead] = {}
    for op in (*folds, *roots):
        if not isinstance(op, MapOp | FoldOp) or op.space != space:
            continue
        for value, map_ in reads_of(op, frozenset(roots)):
            if map_ is None or isinstance(value.owner, Operation):
                continue
            linear = linear_index(map_, sizes_of(value), space)
            by_row, by_element = orders.get(linear, (False, False))
            dims = space[0 if by_row else rank : len(space) if by_element else rank]
            if (by_row or by_element) and prod(sizes_of(value)) == prod(dims):
                found.setdefault(value, StagedRead(value, map_, by_row, by_element))
    return list(found.values())


def stage_rows(kernel: KernelOp, device: GpuDevice) -> None:
    """Makes launches of short rows launches that bring them to shared memory."""
    roots = [op for op in kernel.block.ops if SCHEDULE in op.attributes]
    schedules = [schedule_of(op) for op in roots]
    if not schedules or any(s is None or s.kind != "rows" or s.parts > 1 for s in schedules):
        return
    staged = _staged_schedule(roots, device)
    if staged is not None:
        for op in roots:
            op.attributes[SCHEDULE] = staged.attribute()


def _staged_schedule(roots: Sequence[Operation], device: GpuDevice) -> Schedule | None:
    """The schedule of rows that are worth it; None for others."""
    fold = folds_below(roots)[0]
    rows, length = prod(sizes_of(fold.outputs[0])), prod(fold.folded)
    reads = staged_reads(roots)
    outputs: list[SSAValue] = [v for op in roots for v in op.results]
    of_elements = [v for v in outputs if sizes_of(v) == fold.space]
    of_rows = [v for v in outputs if v not in of_elements]
    alike = [r.value for r in reads if not r.by_row]
    moved = [*(r.value for r in reads if r.by_row and r.by_element), *of_elements]
    row_bytes = [length * _size(v) for v in moved]
    if not moved or max(row_bytes) >= _LONG:
        return None
    is_aligned = all(n % SECTOR == 0 for n in row_bytes)
    if is_aligned and not of_rows and not alike:
        return None
    threads = 1
    while threads < _WARP and threads * _HELD < length:
        threads *= 2
    per_block = _WARP // threads
    if alike:
        per_block = max(per_block, _SHARING)
    of_rows += [r.value for r in reads if not r.by_element]
    while any(n * per_block % SECTOR for n in (*row_bytes, *map(_size, of_rows))):
        per_block *= 2
    while per_block * threads < _BLOCK and rows >= 4 * per_block * device.core_count:
        per_block *= 2

    def is_possible(per_block: int) -> bool:
        shared = sum(_size(v) * length for v in alike)
        shared += per_block * sum((*row_bytes, *map(_size, of_rows)))
        return shared <= device.shared_memory_per_block and per_block * threads <= 1024

    again = sum(-(-_size(v) * length // SECTOR) * SECTOR for v in alike)
    while (
        again > per_block * sum(row_bytes) * _AGAIN
        and per_block < rows
        and is_possible(2 * per_block)
    ):
        per_block *= 2
    if not is_possible(per_block):
        return None
    return Schedule(0, "staged_rows", threads=per_block * threads, row_threads=threads)


def _size(value: SSAValue) -> int:
    return element_of(value).byte_size
