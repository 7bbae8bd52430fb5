"""Constraints of views, copies and semaphores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.tpu.op_classes import KernelOp
from mlirhlo.dialects.tpu.types import DmaSemaphoreType, SemaphoreType
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    integer_of,
    name_of,
)
from mlirhlo.mosaic.target.tiling import element_name, is_tiled_vmem, shape_in, space_of
from mlirhlo.mosaic.verifier.constraint import Constraint, demand

if TYPE_CHECKING:
    pass


def _squeeze(op: KernelOp) -> str | None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    at = len(after) - 1
    for size in reversed(before):
        if at >= 0 and size == after[at]:
            at -= 1
        elif size != 1:
            return f"{list(before)} is not {list(after)} with dimensions of one dropped"
    return None if at < 0 else f"{list(after)} has more than {list(before)}"


def _slice(op: KernelOp) -> str | None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    if len(before) != len(after):
        return f"rank {len(before)} becomes {len(after)}"
    if is_tiled_vmem(op.operands[0].type):
        return None  # Registers take whole tiles, with what follows the elements.
    bad = [dim for dim, (a, b) in enumerate(zip(before, after, strict=True)) if 0 <= a < b]
    return f"dimension {bad[0]} grows from {before[bad[0]]} to {after[bad[0]]}" if bad else None


def _same_memory(op: KernelOp) -> str | None:
    before, after = space_of(op.operands[0].type), space_of(op.results[0].type)
    return None if before == after else f"{before.upper()} becomes {after.upper()}"


def _dma_types(op: KernelOp) -> str | None:
    source, target = op.source.type, op.target.type
    if element_name(source) != element_name(target):
        return f"{element_name(source)} is copied to {element_name(target)}"
    a, b = shape_in(source), shape_in(target)
    return None if a == b else f"{list(a)} is copied to {list(b)}"


def _dma_target_semaphore(op: KernelOp) -> str | None:
    return "it has no target semaphore" if op.target_semaphore is None else None


def _dma_source_semaphore(op: KernelOp) -> str | None:
    is_remote = op.device_id is not None or op.core_id is not None
    if is_remote == (op.source_semaphore is not None):
        return None
    return "it is remote, without a source semaphore" if is_remote else "it is local, with one"


def _priority(op: KernelOp) -> str | None:
    priority = integer_of(op, "priority")
    if priority not in (0, 1):
        return f"priority {priority}"
    return "priority 1 of a remote copy" if priority and op.device_id is not None else None


def _is_semaphore(op: KernelOp) -> str | None:
    type_ = op.semaphore.type
    element = getattr(type_, "element_type", None)
    if not isinstance(element, SemaphoreType | DmaSemaphoreType):
        return f"{type_} is no semaphore"
    return None if not shape_in(type_) else f"{list(shape_in(type_))} semaphores"


def _core_type(op: KernelOp) -> str | None:
    function = op.parent_op()
    while function is not None and name_of(function) != "func.func":
        function = function.parent_op()
    core = "" if function is None else case_of(attribute_of(function, "tpu.core_type"))
    return "it runs on a TensorCore" if core in ("", "tc") else None


_VIEWS = "tpu.memref_slice tpu.memref_squeeze tpu.memref_reshape tpu.memref_bitcast"
ROWS: tuple[Constraint, ...] = (
    *demand("tpu.memref_squeeze", 1, "only dimensions of one are dropped", _squeeze),
    *demand("tpu.memref_slice", 1, "the slice is inside its source", _slice),
    *demand(
        _VIEWS,
        2,
        "a view stays in its memory",
        _same_memory,
    ),
    *demand("tpu.enqueue_dma", 1, "both ends have one type", _dma_types),
    *demand("tpu.enqueue_dma", 2, "completion is counted at the target", _dma_target_semaphore),
    *demand(
        "tpu.enqueue_dma",
        3,
        "a remote copy, and no other, counts at the source",
        _dma_source_semaphore,
    ),
    *demand("tpu.enqueue_dma", 4, "priority is 0 or 1, of remote copies 0", _priority),
    *demand("tpu.sem_signal tpu.sem_wait", 1, "it is of one semaphore", _is_semaphore),
    *demand("tpu.core_id tpu.subcore_id", 1, "it is of SparseCores", _core_type),
)
