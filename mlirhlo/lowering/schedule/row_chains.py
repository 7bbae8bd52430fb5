"""`gpu-map-rows`: kernels that fold rows, and compute on from that, in one launch that reads each row once.

A kernel is one when all of its folds have one space (R, F), with the last dimension of F the minor one of what is
read, and all its results have the shape R or (R, F).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import Operation

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import (
    AssembleOp,
    FoldOp,
    GatherOp,
    KernelOp,
    MapOp,
    identity_map,
    sizes_of,
)
from mlirhlo.lowering.gpu.affine import results_of, simplified
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of
from mlirhlo.lowering.schedule.transposes.boxes import SECTOR

HELD = 32
"""Elements of a row that a thread holds in registers at most."""
_HELD = 16
"""Elements of a row that a thread folds, where there are enough of them."""
_MANY_FOLDS = 3
"""Folds that cost threads as much beside their elements as a few more of these."""
_BLOCK = 128
"""Threads of a block of short rows."""
_MAX_IDLE = 1.02
"""Rows that blocks have threads for, for each there is."""
_COLUMN_BLOCK = 256
_BYTES = 16
WARP = 32


def map_rows(kernel: KernelOp, device: GpuDevice) -> None:
    """Sets the schedules of a kernel of row chains; leaves others alone."""
    chain = chain_of(kernel)
    if chain is None or not all(_minor_read(f) == len(f.space) - 1 for f in chain.folds):
        return
    rows, length = prod(chain.sizes), prod(chain.folded)
    alone = len(chain.folds) == 1 and not chain.writes_elements
    schedule = shape_of_rows(chain.folds, rows, length, device, alone=alone)
    if not alone:
        blocks = _cluster(schedule.threads, rows, length, device)
        schedule = replace(schedule, row_threads=schedule.row_threads * blocks)
    chain.set(schedule)


def _cluster(threads: int, rows: int, length: int, device: GpuDevice) -> int:
    """Blocks that hold a row together which is too long for one."""
    most = device.blocks_per_cluster_limit
    if not threads * HELD < length <= threads * HELD * most:
        return 1
    blocks = 2
    while blocks < most and (
        threads * blocks * _HELD < length or 2 * blocks * rows <= device.core_count
    ):
        blocks *= 2
    return blocks


def map_columns(kernel: KernelOp, device: GpuDevice) -> None:
    """`gpu-map-columns`: sets the schedules of kernels that fold the outer dimensions of what they read."""
    chain = chain_of(kernel)
    if chain is None or chain.writes_elements:
        return
    if any(_minor_read(f) != len(chain.sizes) - 1 for f in chain.folds):
        return
    columns, length = prod(chain.sizes), prod(chain.folded)
    vector = _column_vector(chain)
    across = min(WARP, _power_above(columns // vector))
    down = 1
    while down < _COLUMN_BLOCK // across and 2 * down <= length:
        down *= 2
    while down > 1 and _rounded_up(length, down) > length * _MAX_IDLE:
        down //= 2
    parts = 1
    blocks = -(-columns // (across * vector))
    while (
        len(chain.folds) == 1
        and blocks * parts < 2 * device.core_count
        and length % (2 * parts) == 0
        and length // (2 * parts) >= 8 * down
        and _rounded_up(length // (2 * parts), down) <= length // (2 * parts) * _MAX_IDLE
    ):
        parts *= 2
    chain.set(
        Schedule(
            0,
            "columns",
            threads=across * down,
            vector=vector,
            row_threads=down,
            parts=parts,
        )
    )


def _column_vector(chain: Chain) -> int:
    """Columns that a thread reads at once, so that all threads of a warp have some."""
    arrays = [v for f in chain.folds for v in f.inputs if sizes_of(v)]
    bits = max((element_of(v).bits for v in arrays), default=32)
    vector = max(1, _BYTES * 8 // max(bits, 8))
    last, columns = chain.sizes[-1] if chain.sizes else 1, prod(chain.sizes)
    while vector > 1 and (last % vector or columns < vector * WARP):
        vector //= 2
    return vector


@dataclass(frozen=True, slots=True)
class Chain:
    """Folds of one space (R, F), and the ops of that space or of R that are computed from them."""

    roots: Sequence[Operation]
    folds: Sequence[FoldOp]

    @property
    def sizes(self) -> tuple[int, ...]:
        """R."""
        return sizes_of(self.folds[0].outputs[0])

    @property
    def folded(self) -> tuple[int, ...]:
        """F."""
        return self.folds[0].folded

    @property
    def writes_elements(self) -> bool:
        """Whether a result has the shape (R, F)."""
        return any(sizes_of(op.results[0]) != self.sizes for op in self.roots)

    def set(self, schedule: Schedule) -> None:
        """Gives the results this schedule."""
        for op in self.roots:
            op.attributes[SCHEDULE] = schedule.attribute()


def chain_of(kernel: KernelOp) -> Chain | None:
    """The chain that a kernel without schedules is; None for other kernels."""
    owners = dict.fromkeys(v.owner for v in kernel.results_returned)
    roots = [op for op in owners if isinstance(op, MapOp | FoldOp)]
    if not roots or len(roots) < len(owners):
        return None
    folds = folds_below(roots)
    if not folds or any(SCHEDULE in op.attributes for op in kernel.block.ops):
        return None
    chain = Chain(roots, folds)
    sizes, folded = chain.sizes, chain.folded
    space = (*sizes, *folded)
    below = below_of(roots)
    from_folds = _computed_from(kernel, folds)
    is_chain = (
        all(sizes_of(f.outputs[0]) == sizes and f.folded == folded for f in folds)
        and all(f.guarded is None for f in folds)
        and all(sizes_of(op.results[0]) in (sizes, space) for op in roots)
        and prod(folded) > 1
        and prod(space) > 0
        and all(isinstance(op, MapOp | FoldOp | GatherOp | AssembleOp | ConstantOp) for op in below)
        and all(_is_chained(op, sizes, space, from_folds) for op in (*roots, *below))
    )
    return chain if is_chain else None


def folds_below(ops: Sequence[Operation]) -> list[FoldOp]:
    """The folds that ops are computed from, and those among them, in their order."""
    found = {op for op in (*ops, *below_of(ops)) if isinstance(op, FoldOp)}
    block = ops[0].parent
    assert block is not None
    return [op for op in block.ops if isinstance(op, FoldOp) and op in found]


def below_of(ops: Sequence[Operation]) -> list[Operation]:
    """All that ops are computed from."""
    seen: dict[Operation, None] = {}
    stack = list(ops)
    while stack:
        for value in stack.pop().operands:
            if isinstance(value.owner, Operation) and value.owner not in seen:
                seen[value.owner] = None
                stack.append(value.owner)
    return list(seen)


def _minor_read(fold: FoldOp) -> int | None:
    """The dimension of a fold's space along which neighbours are neighbours in its largest input."""
    if not fold.inputs:
        return None
    largest = max(range(len(fold.inputs)), key=lambda n: prod(sizes_of(fold.inputs[n])))
    for expr in reversed(fold.index_maps[largest].results):
        total = simplified(expr, fold.space)
        dims = [d for d in range(len(fold.space)) if total.factor(d) == 1]
        if dims:
            return dims[-1]
        if total.terms:
            return None
    return None


def _computed_from(kernel: KernelOp, folds: Sequence[FoldOp]) -> set[Operation]:
    """Folds, and the ops of their kernel that are computed from them."""
    found: set[Operation] = set(folds)
    for op in kernel.block.ops:
        if any(value.owner in found for value in op.operands):
            found.add(op)
    return found


def _is_chained(
    op: Operation,
    sizes: tuple[int, ...],
    space: tuple[int, ...],
    from_folds: set[Operation],
) -> bool:
    """Whether an op reads the folds it is computed from for its own row alone."""
    if isinstance(op, GatherOp | AssembleOp):
        return op not in from_folds
    if not isinstance(op, MapOp | FoldOp):
        return True
    rows, everything = (results_of(identity_map(len(s)), s) for s in (sizes, space))
    is_chain_space = op.space in (sizes, space)
    for value, map_ in zip(op.inputs, op.index_maps, strict=True):
        if value.owner not in from_folds:
            continue
        if not is_chain_space or results_of(map_, op.space) not in (rows, everything):
            return False
    return True


def shape_of_rows(
    folds: Sequence[FoldOp], rows: int, length: int, device: GpuDevice, *, alone: bool
) -> Schedule:
    """How many threads fold a row, and how many elements each reads at once."""
    arrays = [v for f in folds for v in f.inputs if sizes_of(v)]
    bits = max((element_of(v).bits for v in arrays), default=32)
    vector = max(1, _BYTES * 8 // max(bits, 8))
    while vector > 1 and (folds[0].folded[-1] % vector or length < 2 * vector):
        vector //= 2
    parts = 1
    wanted = 2 * device.core_count
    if alone and rows < wanted and length >= 1 << 14:
        chunk = 1024 * vector * 4
        while (
            rows * parts < wanted
            and length // (2 * parts) >= chunk
            and length % (2 * parts * vector) == 0
        ):
            parts *= 2
    own = length // parts
    few = 4 if len(folds) < _MANY_FOLDS else 8
    held = _HELD if rows * parts >= wanted else max(vector, few)
    # Rows that start within sectors are read from the starts of these, a second time in the row.
    narrow = min((element_of(v).byte_size for v in arrays), default=4)
    times = 2 if own * narrow % SECTOR and rows > 1 else 1
    threads = 1
    while (
        threads < 1024 and threads * max(held, vector) < own and 2 * threads * vector * times <= own
    ):
        threads *= 2
    # Neighbours of a warp read whole sectors at once.
    while 2 * threads * vector <= own and threads * vector * narrow < SECTOR:
        threads *= 2
    block = max(threads, min(_BLOCK, _power_above(threads * rows * parts)), 32)
    while block > max(threads, WARP) and _rounded_up(rows, block // threads) > rows * _MAX_IDLE:
        block //= 2
    if parts > 1:
        block = threads = max(threads, WARP)
    return Schedule(0, "rows", threads=block, vector=vector, row_threads=threads, parts=parts)


def _rounded_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _power_above(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
