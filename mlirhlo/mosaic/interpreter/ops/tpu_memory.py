"""`tpu`: loads and stores of vectors, and views of references."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import flag_of, integers_of
from mlirhlo.mosaic.interpreter.bits import rows_as
from mlirhlo.mosaic.interpreter.memory import (
    MemRef,
    box,
    dtype_in,
    read_at,
    reshaped,
    shape_of,
    unwritten,
    write_at,
)
from mlirhlo.mosaic.interpreter.ops.vector import masked_read, masked_write
from mlirhlo.mosaic.interpreter.problems import fault, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means
from mlirhlo.mosaic.target.tiling import is_tiled_vmem

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue


def _has_mask(op: Operation, segment: int) -> bool:
    """Whether the last segment of operands, a mask, is there."""
    sizes = integers_of(op, "operandSegmentSizes")
    return sizes is not None and len(sizes) > segment and sizes[segment] == 1


def _added(frame: Activation, op: Operation, ref: MemRef, index: Any, value: Any) -> Any:
    old = read_at(frame, op, ref, index)
    return (old.reshape(value.shape) + value).astype(value.dtype)


@means("tpu.vector_load")
def vector_load(op: Operation, scope: Scope) -> Run:
    """The box of the result's shape at the indices; masked off elements are unwritten ones."""
    shape, is_masked = shape_of(op.results[0].type), _has_mask(op, 2)
    dtype = dtype_in(op.results[0].type)

    def run(frame: Activation, ref: MemRef, *rest: Any) -> Any:
        if is_masked:
            return masked_read(frame, op, ref, rest[:-1], rest[-1], unwritten(shape, dtype))
        sizes = (1,) * (len(rest) - len(shape)) + shape
        return read_at(frame, op, ref, box(ref, rest, sizes)).reshape(shape).copy()

    return run


@means("tpu.vector_store")
def vector_store(op: Operation, scope: Scope) -> Run:
    """Writes, or with `add` adds, the vector at the indices, where the mask holds."""
    shape, is_masked = shape_of(op.operands[0].type), _has_mask(op, 3)
    adds = flag_of(op, "add")

    def run(frame: Activation, value: Any, ref: MemRef, *rest: Any) -> Any:
        at, mask = (rest[:-1], rest[-1]) if is_masked else (rest, None)
        sizes = (1,) * (len(at) - len(shape)) + shape
        if mask is not None:
            if adds:
                value = masked_read(frame, op, ref, at, mask, np.zeros(shape, value.dtype)) + value
            masked_write(frame, op, ref, at, mask, value)
            return ()
        index = box(ref, at, sizes)
        if adds:
            value = _added(frame, op, ref, index, value)
        write_at(frame, op, ref, index, value.reshape(sizes))
        return ()

    return run


def _strided(
    ref: MemRef, at: tuple[Any, ...], shape: tuple[int, ...], strides: tuple[int, ...]
) -> Any:
    """The numpy index of every stride-th element; a stride of zero repeats one."""
    lists: list[Any] = []
    for dim, (start, size, stride) in enumerate(zip(at, shape, strides, strict=True)):
        last = int(start) + (size - 1) * stride
        if int(start) < 0 or last >= ref.shape[dim]:
            raise fault(
                f"elements {int(start)} to {last} by {stride} of dimension {dim} are asked for, "
                f"which has {ref.shape[dim]}"
            )
        lists.append(int(start) + stride * np.arange(size))
    return np.ix_(*lists)


@means("tpu.strided_load")
def strided_load(op: Operation, scope: Scope) -> Run:
    """Element k of dimension d from `index[d] + k * strides[d]`."""
    shape, strides = shape_of(op.results[0].type), integers_of(op, "strides") or ()
    return lambda frame, ref, *at: read_at(frame, op, ref, _strided(ref, at, shape, strides))


@means("tpu.strided_store")
def strided_store(op: Operation, scope: Scope) -> Run:
    """Element k of dimension d to `index[d] + k * strides[d]`."""
    shape, strides = shape_of(op.operands[0].type), integers_of(op, "strides") or ()

    def run(frame: Activation, value: Any, ref: MemRef, *at: Any) -> Any:
        write_at(frame, op, ref, _strided(ref, at, shape, strides), value)
        return ()

    return run


def _lanes(ref: MemRef, places: tuple[Any, ...], mask: Any) -> tuple[Any, ...]:
    """The places of the lanes where the mask holds. Raises `HloError` HLO0702 outside."""
    keep = np.broadcast_to(True if mask is None else mask, places[0].shape)
    for dim, place in enumerate(places):
        if np.any(keep & ((place < 0) | (place >= ref.shape[dim]))):
            raise fault(f"an index of dimension {dim} lies outside of its {ref.shape[dim]}")
    return keep, tuple(place[keep] for place in places)


@means("tpu.vector_load_idx")
def load_at_indices(op: Operation, scope: Scope) -> Run:
    """One element a lane; masked off lanes are unwritten."""
    is_masked, type_ = _has_mask(op, 2), op.results[0].type
    shape, dtype = shape_of(type_), dtype_in(type_)

    def run(frame: Activation, ref: MemRef, *rest: Any) -> Any:
        places, mask = (rest[:-1], rest[-1]) if is_masked else (rest, None)
        keep, chosen = _lanes(ref, places, mask)
        result = unwritten(shape, dtype)
        result[keep] = read_at(frame, op, ref, chosen)
        return result

    return run


@means("tpu.vector_store_idx")
def store_at_indices(op: Operation, scope: Scope) -> Run:
    """One element a lane, in the order of the lanes; with `add` each is added."""
    is_masked, adds = _has_mask(op, 3), flag_of(op, "add")

    def run(frame: Activation, value: Any, ref: MemRef, *rest: Any) -> Any:
        places, mask = (rest[:-1], rest[-1]) if is_masked else (rest, None)
        keep, chosen = _lanes(ref, places, mask)
        for number, lane in enumerate(value[keep]):
            index = tuple(int(place[number]) for place in chosen)
            old = read_at(frame, op, ref, index) if adds else 0
            write_at(frame, op, ref, index, old + lane if adds else lane)
        return ()

    return run


def _is_only_waited_for(reference: SSAValue) -> bool:
    """Whether nothing but waits uses a reference: they take its bytes and touch no element of it."""
    return all(
        use.operation.name in ("tpu.wait_dma2", "tpu.wait_dma")
        or (
            use.operation.name in ("tpu.memref_slice", "tpu.memref_squeeze")
            and _is_only_waited_for(use.operation.results[0])
        )
        for use in reference.uses
    )


@means("tpu.memref_slice")
def memref_slice(op: Operation, scope: Scope) -> Run:
    """The box at the offsets, of the result's sizes; dynamic ones are operands.

    Where registers go by tiles a box may have more than the source: it has what there is of it. One
    wait for several copies states a box of all their elements, which may be more than there are, too.
    """
    shape, is_tiled = shape_of(op.results[0].type), is_tiled_vmem(op.operands[0].type)
    rank = len(shape)
    is_amount = min(shape, default=0) < 0 and _is_only_waited_for(op.results[0])

    def run(frame: Activation, ref: MemRef, *rest: Any) -> Any:
        sizes, dynamic = [], iter(rest[rank:])
        for size, start, have in zip(shape, rest, ref.shape, strict=False):
            count = int(next(dynamic)) if size < 0 else size
            stays = is_amount and size < 0
            sizes.append(min(count, max(have - int(start), 0)) if is_tiled and not stays else count)
        if is_amount and any(size > have for size, have in zip(sizes, ref.shape, strict=True)):
            return ref.part(lambda a: np.broadcast_to(a.dtype.type(0), sizes))
        index = box(ref, rest[:rank], sizes)
        return ref.part(lambda a: a[index])

    return run


def squeezed_dims(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of size one that `target` lacks, matched from the minor end."""
    gone: list[int] = []
    at = len(target) - 1
    for dim in range(len(source) - 1, -1, -1):
        if at >= 0 and (source[dim] == target[at] or target[at] < 0):
            at -= 1
        elif source[dim] == 1:
            gone.append(dim)
        else:
            raise fault(f"a reference of shape {list(source)} cannot be squeezed to {list(target)}")
    return tuple(gone)


@means("tpu.memref_squeeze")
def memref_squeeze(op: Operation, scope: Scope) -> Run:
    """Drops dimensions of size one."""
    shape = shape_of(op.results[0].type)

    def run(frame: Activation, ref: MemRef) -> Any:
        gone = squeezed_dims(ref.shape, shape)
        return ref.part(lambda a: np.squeeze(a, gone))

    return run


@means("tpu.memref_reshape")
def memref_reshape(op: Operation, scope: Scope) -> Run:
    """The same elements, row-major."""
    shape = shape_of(op.results[0].type)
    return lambda frame, ref: reshaped(ref, shape)


@means("tpu.memref_bitcast")
def memref_bitcast(op: Operation, scope: Scope) -> Run:
    """The same bits as elements of another width; rows are packed, even ones in the low half."""
    dtype = dtype_in(op.results[0].type)

    def run(frame: Activation, ref: MemRef) -> Any:
        old = ref.dtype
        return ref.converted(lambda a: rows_as(a, dtype), lambda a: rows_as(a, old))

    return run


@means("tpu.reinterpret_cast", "memref.reinterpret_cast")
def reinterpret_cast(op: Operation, scope: Scope) -> Run:
    """The same memory under another type, `offset` elements of the result further on."""
    shape, dtype = shape_of(op.results[0].type), dtype_in(op.results[0].type)
    sizes = integers_of(op, "operandSegmentSizes") or (1, 0, 0)

    def run(frame: Activation, ref: MemRef, *rest: Any) -> Any:
        offset = int(rest[0]) if sizes[1] else 0
        wanted, dynamic = [], iter(rest[sizes[1] :])
        for size in shape:
            wanted.append(int(next(dynamic)) if size < 0 else size)
        if ref.shape == tuple(wanted) and ref.dtype == dtype and not offset:
            return ref
        whole = ref.array
        if ref.parent is not None or not whole.flags.c_contiguous:
            raise unfit(op, "of a reference whose elements do not lie one after another")
        flat = whole.reshape(-1).view(dtype)
        count = int(np.prod(wanted, dtype=int))
        if offset < 0 or offset + count > flat.size:
            raise fault(f"{count} elements at {offset} are more than the {flat.size} there are")
        return MemRef(flat[offset : offset + count].reshape(wanted), ref.space, ref.element)

    return run
