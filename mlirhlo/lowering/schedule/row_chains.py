"""`gpu-map-rows`: kernels that fold rows, and compute on from that, in one launch that reads each row once.

A kernel is one when all of its folds have one space (R, F), with the last dimension of F the minor one of what is
read, and all its results have the shape R or (R, F).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr

from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    GatherOp,
    KernelOp,
    MapOp,
    sizes_of,
)
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule

_HELD = 16
"""Elements of a row that a thread folds, where there are enough of them."""
_BLOCK = 128
"""Threads of a block of short rows."""
_BYTES = 16


def map_rows(kernel: KernelOp, device: GpuDevice) -> None:
    """Sets the schedules of a kernel of row chains; leaves others alone."""
    roots = list(dict.fromkeys(v.owner for v in kernel.results_returned))
    if not roots or not all(isinstance(op, MapOp | FoldOp) for op in roots):
        return
    ops = [op for op in roots if isinstance(op, Operation)]
    folds = folds_below(ops)
    if not folds or any(SCHEDULE in op.attributes for op in kernel.block.ops):
        return
    sizes, folded = sizes_of(folds[0].outputs[0]), folds[0].folded
    space = (*sizes, *folded)
    length = prod(folded)
    is_chain = (
        all(sizes_of(f.outputs[0]) == sizes and f.folded == folded for f in folds)
        and all(f.guarded is None for f in folds)
        and all(sizes_of(op.results[0]) in (sizes, space) for op in ops)
        and length > 1
        and prod(space) > 0
        and not any(isinstance(op, ContractOp) for op in _below(ops))
        and all(_reads_rows(f) for f in folds)
        and all(_is_chained(op, sizes, space) for op in (*ops, *_below(ops)))
    )
    if is_chain:
        schedule = shape_of_rows(folds, prod(sizes), length, device, alone=len(folds) == 1)
        writes_rows = any(sizes_of(op.results[0]) != sizes for op in ops)
        if schedule.parts > 1 and writes_rows:
            return
        for op in ops:
            op.attributes[SCHEDULE] = schedule.attribute()


def folds_below(ops: Sequence[Operation]) -> list[FoldOp]:
    """The folds that ops are computed from, and those among them, in their order."""
    found = {op for op in (*ops, *_below(ops)) if isinstance(op, FoldOp)}
    block = ops[0].parent
    assert block is not None
    return [op for op in block.ops if op in found]


def _below(ops: Sequence[Operation]) -> list[Operation]:
    seen: dict[Operation, None] = {}
    stack = list(ops)
    while stack:
        for value in stack.pop().operands:
            if isinstance(value.owner, Operation) and value.owner not in seen:
                seen[value.owner] = None
                stack.append(value.owner)
    return list(seen)


def _reads_rows(fold: FoldOp) -> bool:
    """Whether neighbours along the last folded dimension are neighbours in the largest input."""
    rank = len(fold.space)
    if not fold.inputs:
        return False
    largest = max(range(len(fold.inputs)), key=lambda n: prod(sizes_of(fold.inputs[n])))
    results = fold.index_maps[largest].results
    if not results:
        return False
    return results[-1] == AffineDimExpr(rank - 1) or fold.folded[-1] == 1


def _is_chained(op: Operation, sizes: tuple[int, ...], space: tuple[int, ...]) -> bool:
    """Whether an op reads the folds it is computed from for its own row alone."""
    if isinstance(op, GatherOp | AssembleOp):
        return not folds_below([op])
    if not isinstance(op, MapOp | FoldOp):
        return True
    rows = tuple(AffineDimExpr(d) for d in range(len(sizes)))
    everything = tuple(AffineDimExpr(d) for d in range(len(space)))
    is_chain_space = op.space in (sizes, space)
    for value, map_ in zip(op.inputs, op.index_maps, strict=True):
        owner = value.owner
        if not isinstance(owner, Operation) or not folds_below([owner]):
            continue
        if not is_chain_space or map_.results not in (rows, everything):
            return False
    return True


def shape_of_rows(
    folds: Sequence[FoldOp], rows: int, length: int, device: GpuDevice, *, alone: bool
) -> Schedule:
    """How many threads fold a row, and how many elements each reads at once."""
    bits = max(
        (shape_of(v.type).element_type.bits for f in folds for v in f.inputs if sizes_of(v)),  # type: ignore[union-attr]
        default=32,
    )
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
    held = _HELD if rows * parts >= wanted else max(vector, 4)
    threads = 1
    while threads < 1024 and threads * max(held, vector) < own and 2 * threads * vector <= own:
        threads *= 2
    block = max(threads, min(_BLOCK, _power_above(threads * rows * parts)), 32)
    if parts > 1:
        block = threads = max(threads, 32)
    return Schedule(0, "rows", threads=block, vector=vector, row_threads=threads, parts=parts)


def _power_above(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
