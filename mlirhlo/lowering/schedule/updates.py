"""Ops that write a part of an operand of their kernel, so that the result may be that operand's buffer."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.structured import (
    AssembleOp,
    GatherOp,
    KernelOp,
    MapOp,
    identity_map,
    sizes_of,
)
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.lowering.schedule.reads import is_read_in_place


def updates_of(kernel: KernelOp, launched: set[Operation]) -> set[AssembleOp]:
    """The ops that replace a slice of an operand of which nothing is read after it: launches of the slice alone.

    A slice that is computed of other elements than those it replaces comes to memory before: it is added to `launched`.
    """
    found: set[AssembleOp] = set()
    for op in kernel.block.ops:
        if not isinstance(op, AssembleOp) or op not in launched or not _is_slice(op, kernel):
            continue
        later = op.next_op
        while later is not None and (
            later not in launched or op.pieces[0] not in _reached([later], launched)
        ):
            later = later.next_op
        if later is None:
            found.add(op)
            launched.update(_to_memory(op, launched))
    return found


def is_result(value: SSAValue, kernel: KernelOp) -> bool:
    """Whether a value is a result of the kernel, with a buffer of its own."""
    return list(kernel.results_returned).count(value) == 1


def _is_slice(op: AssembleOp, kernel: KernelOp) -> bool:
    """Whether a smaller piece stands inside of an operand of the kernel, in a result of it."""
    if len(op.pieces) != 2 or op.fill is not None or not is_result(op.output, kernel):
        return False
    base, piece = op.pieces
    whole, sizes = sizes_of(base), sizes_of(piece)
    if not isinstance(base.owner, Block) or base in kernel.results_returned or sizes == whole:
        return False
    if whole != sizes_of(op.output) or any(op.piece_offsets[0]):
        return False
    rows = zip(op.piece_offsets[1], op.piece_strides[1], sizes, whole, strict=True)
    return all(
        start == DYNAMIC or 0 <= start <= most - (size - 1) * stride - 1
        for start, stride, size, most in rows
    )


def _reached(ops: list[Operation], launched: set[Operation]) -> Iterator[SSAValue]:
    """Values that ops read, themselves or through ops that are computed where they are read."""
    stack = list(ops)
    seen: set[Operation] = set()
    while stack:
        for value in stack.pop().operands:
            yield value
            owner = value.owner
            if isinstance(owner, Operation) and owner not in launched and owner not in seen:
                seen.add(owner)
                stack.append(owner)


def _to_memory(op: AssembleOp, launched: set[Operation]) -> Iterator[Operation]:
    """The ops whose results the launch of an update must not compute itself, as they read what it writes."""
    base, piece = op.pieces
    for value in (piece, *op.indices):
        owner = value.owner
        if isinstance(owner, Operation) and owner not in launched:
            if base in _reached([owner], launched) and not _is_read_where_replaced(
                op, value, launched
            ):
                yield owner


def _is_read_where_replaced(op: AssembleOp, value: SSAValue, launched: set[Operation]) -> bool:
    """Whether a piece is computed, element by element, of no other elements of the operand than it replaces."""
    base, piece = op.pieces
    stack: list[tuple[SSAValue, bool]] = [(value, value is piece)]
    seen: set[tuple[Operation, bool]] = set()
    while stack:
        value, is_here = stack.pop()
        owner = value.owner
        if value is base:
            return False
        if not isinstance(owner, Operation) or owner in launched or (owner, is_here) in seen:
            continue
        seen.add((owner, is_here))
        for number, operand in enumerate(owner.operands):
            if isinstance(owner, MapOp):
                stack.append((operand, is_here and is_read_in_place(owner, number)))
            elif not (operand is base and is_here and _is_slice_replaced(owner, op)):
                stack.append((operand, False))
    return True


def _is_slice_replaced(gather: Operation, op: AssembleOp) -> bool:
    """Whether a gather is the slice of the operand that an op replaces."""
    whole, piece = sizes_of(op.output), sizes_of(op.pieces[1])
    if not isinstance(gather, GatherOp) or sizes_of(gather.output) != piece:
        return False
    if gather.offset_map != identity_map(len(piece)) or any(n != 1 for n in op.piece_strides[1]):
        return False
    indices = iter(op.indices)
    starts = {
        dim: next(indices) if offset == DYNAMIC else None
        for dim, offset in enumerate(op.piece_offsets[1])
        if offset
    }
    limits = {dim: whole[dim] - piece[dim] for dim in starts}
    dims = gather.indexed
    return dict(zip(dims, gather.indices, strict=True)) == starts and limits == dict(
        zip(dims, gather.largest, strict=True)
    )
