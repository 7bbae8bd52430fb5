"""Memories: views, loads and stores, copies, barriers."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import Operation

from mlirhlo.diagnostics import error
from mlirhlo.dialects.mosaic_gpu.attributes import BarrierType
from mlirhlo.dialects.tpu.op_classes import groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.mosaic.attributes import integer_of, integers_of
from mlirhlo.mosaic.gpu.interpreter.groups import BlockState, Meaning, View, WarpGroup, unwritten
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.target.places import source_place

_ATOMICS: Sequence[Callable[..., Any]] = (
    np.add,
    np.minimum,
    np.maximum,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
)


def _parts(op: Operation, values: Sequence[Any]) -> dict[str, tuple[Any, ...]]:
    row = ROWS[op.name]
    return groups(op, row, row.operands, tuple(values))


def _slice_smem(group: WarpGroup, op: Operation, _: Any) -> Any:
    offset = integer_of(op, "offset")
    return (View(_shared(group.block, offset, op.results[0].type), offset),)


def _shared(block: BlockState, offset: int, type_: Any) -> Any:
    is_barrier = isinstance(type_.element_type, BarrierType)
    dtype = None if is_barrier else dtype_in(type_.element_type)
    return block.buffer(offset, tuple(type_.get_shape()), dtype)


def _initialize(group: WarpGroup, op: Operation, operands: Any) -> Any:
    for state in operands[0].array:
        state.count = state.pending = integer_of(op, "arrival_count")
        state.phase = 0
    return ()


def _subview(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    source, *dynamic = operands
    starts = iter(dynamic)
    index: list[Any] = []
    rest = list(cast_shape(op.results[0].type))
    offsets, sizes = (integers_of(op, f"static_{n}") or () for n in ("offsets", "sizes"))
    drops = len(sizes) - len(rest)
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        start = int(next(starts)) if offset == DYNAMIC_INDEX else offset
        if start < 0 or start + size > source.array.shape[dim]:
            raise error(
                "HLO0702",
                f"elements {start} to {start + size - 1} of dimension {dim}, which has {source.array.shape[dim]}",
                source_place(op),
            )
        is_dropped = (
            drops > 0 and size == 1 and (not rest or rest[0] != 1 or drops == len(sizes) - dim)
        )
        if is_dropped:
            index.append(start)
            drops -= 1
        else:
            index.append(slice(start, start + size))
            rest.pop(0)
    if not source.array.shape or all(isinstance(i, int) for i in index):
        # A view of one element stays one that can be written.
        one = tuple(slice(i, i + 1) for i in index)
        return (View(source.array[one].reshape(()), source.offset, (*source.index, one)),)
    return (source.at(tuple(index)),)


def cast_shape(type_: Any) -> Sequence[int]:
    """The sizes of a memref."""
    found: Sequence[int] = type_.get_shape()
    return found


def _transpose(group: WarpGroup, op: Operation, operands: Any) -> Any:
    return (View(operands[0].array.T, operands[0].offset),)


def _cluster_ref(group: WarpGroup, op: Operation, operands: Any) -> Any:
    parts = _parts(op, operands)
    (source,) = parts["source"]
    launch = group.run.kernel.launch
    rank = 0
    for dim, (size, stride) in enumerate(zip(launch.cluster, launch.cluster_strides, strict=True)):
        given = parts["xyz"[dim]]
        rank += stride * (int(given[0]) if given else group.block.rank // stride % size)
    peer = group.run.blocks[rank]
    return (View(_shared(peer, source.offset, op.operands[0].type), source.offset),)


def _alloca(group: WarpGroup, op: Operation, _: Any) -> Any:
    type_: Any = op.results[0].type
    return (View(unwritten(tuple(type_.get_shape()), dtype_in(type_.element_type))),)


def _load(group: WarpGroup, op: Operation, operands: Any) -> Any:
    array = operands[0].array
    return (array[()] if not array.shape else array.copy(),)


def _store(group: WarpGroup, op: Operation, operands: Any) -> Any:
    value, target = operands
    atomic = op.properties.get("atomic_type")
    if isinstance(atomic, IntegerAttr):
        combine = _ATOMICS[atomic.value.data]
        target.array[...] = combine(target.array, value)
    else:
        target.array[...] = value
    return ()


def _piece(array: Any, indices: Sequence[Any], lengths: Sequence[int]) -> tuple[Any, ...]:
    found: list[Any] = []
    for start, length in zip(indices, lengths, strict=True):
        found.append(int(start) if length == -1 else slice(int(start), int(start) + length))
    return tuple(found)


def _async_load(group: WarpGroup, op: Operation, operands: Any) -> Any:
    parts = _parts(op, operands)
    (source,), (target,), (barrier,) = (parts[n] for n in ("source", "destination", "barrier"))
    if not all(parts["predicate"]):
        return ()
    lengths = integers_of(op, "slice_lengths") or ()
    values = source.array[_piece(source.array, parts["indices"], lengths)]
    size = target.array.size * target.array.itemsize
    collective: Any = op.properties.get("collective")
    if collective is None or not collective.data:
        _fill(target.array, values)
        barrier.array.item(0).receive(size)
        return ()
    peers = _along(group, [integer.value.data for integer in collective.data])
    shape = target.array.shape
    axis = next((dim for dim, size in enumerate(shape) if size % len(peers) == 0), None)
    if axis is None:
        raise error(
            "HLO0757",
            f"a copy of {list(target.array.shape)} is shared by {len(peers)} blocks of a cluster",
            source_place(op),
        )
    each = shape[axis] // len(peers)
    mine = peers.index(group.block.rank) * each
    part = (*[slice(None)] * axis, slice(mine, mine + each))
    for rank in peers:
        peer = group.run.blocks[rank]
        _fill(_same_part(group.block, peer, target)[part], values[part])
        _same_part(group.block, peer, barrier).item(0).receive(size // len(peers))
    return ()


def _along(group: WarpGroup, axes: Sequence[int]) -> list[int]:
    """Ranks of the blocks of the cluster that differ from this one along axes alone."""
    launch = group.run.kernel.launch

    def others(rank: int) -> list[int]:
        places = enumerate(zip(launch.cluster, launch.cluster_strides, strict=True))
        return [rank // stride % size for dim, (size, stride) in places if dim not in axes]

    own = others(group.block.rank)
    return [rank for rank in range(launch.cluster_size) if others(rank) == own]


def _same_part(block: BlockState, peer: BlockState, view: View) -> Any:
    """The same part of a buffer of a block, as another one has it."""
    is_barrier = view.array.dtype == object
    root = (block.barriers if is_barrier else block.memory)[view.offset]
    array = peer.buffer(view.offset, root.shape, None if is_barrier else root.dtype)
    for index in view.index:
        array = array[index]
    return array


def _fill(target: Any, values: Any) -> None:
    """What is beyond the end of an array is zero."""
    target[...] = 0
    target[tuple(map(slice, values.shape))] = values


def _arrive(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    operands[0].array.item(0).arrive(integer_of(op, "expect_tx"))
    return ()


def _async_store(group: WarpGroup, op: Operation, operands: Any) -> Any:
    parts = _parts(op, operands)
    (source,), (target,) = parts["source"], parts["destination"]
    if not all(parts["predicate"]):
        return ()
    lengths = integers_of(op, "slice_lengths") or ()
    where = _piece(target.array, parts["indices"], lengths)
    place = target.array[where]
    place[...] = source.array[tuple(map(slice, place.shape))]
    return ()


def _same(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group, op
    return (operands[0],)


def _part(group: WarpGroup, op: Operation, operands: Any) -> Any:
    """Of a descriptor: the view itself as the pointer, and nothing behind it."""
    del group
    return (operands[0] if integers_of(op, "position") in ((0,), (1,)) else np.int64(0),)


def _moved(group: WarpGroup, op: Operation, operands: Any) -> Any:
    """A pointer to one barrier of several."""
    del group
    view, *dynamic = operands
    (at,) = integers_of(op, "rawConstantIndices") or (0,)
    at = int(dynamic[0]) if dynamic else at
    return (view.at(slice(at, at + 1)),)


def _integers(name: str) -> Meaning:
    def compute(group: WarpGroup, op: Operation, operands: Any) -> Any:
        del group, op
        view = next((v for v in operands if isinstance(v, View)), None)
        return (getattr(np, name)(*operands) if view is None else view,)

    return compute


def _tensor_memory(group: WarpGroup, op: Operation, operands: Any) -> Any:
    """Of the block: its warp groups share it. It is known by where its address is kept."""
    type_: Any = op.results[0].type
    shape = tuple(type_.get_shape())
    array = group.block.buffer(-1 - operands[0].offset, shape, dtype_in(type_.element_type))
    return (View(array),)


def _slice_columns(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    start, type_ = integer_of(op, "offset"), op.results[0].type
    columns = cast_shape(type_)[-1]
    return (operands[0].at((slice(None), slice(start, start + columns))),)


def _tensor_product(group: WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    parts = _parts(op, operands)
    (sums,), (a,), (b,), (adds,) = (parts[n] for n in ("accumulator", "a", "b", "accumulate"))
    product = np.matmul(np.asarray(a.array, np.float32), np.asarray(b.array, np.float32))
    sums.array[...] = (sums.array if adds else 0) + product
    return ()


OPERATIONS: Mapping[str, Meaning] = {
    "mosaic_gpu.async_load_tmem": _load,
    "mosaic_gpu.async_store_tmem": _store,
    "mosaic_gpu.slice_tmem": _slice_columns,
    "mosaic_gpu.tcgen05_commit_arrive": _arrive,
    "mosaic_gpu.tcgen05_mma": _tensor_product,
    "mosaic_gpu.tmem_alloc": _tensor_memory,
    "builtin.unrealized_conversion_cast": _same,
    "llvm.add": _integers("add"),
    "llvm.extractvalue": _part,
    "llvm.getelementptr": _moved,
    "llvm.inttoptr": _same,
    "llvm.mul": _integers("multiply"),
    "llvm.ptrtoint": _same,
    "memref.alloca": _alloca,
    "memref.cast": _same,
    "memref.load": _load,
    "memref.store": _store,
    "memref.subview": _subview,
    "memref.transpose": _transpose,
    "mosaic_gpu.arrive": _arrive,
    "mosaic_gpu.arrive_expect_tx": _arrive,
    "mosaic_gpu.async_load": _async_load,
    "mosaic_gpu.async_store": _async_store,
    "mosaic_gpu.get_cluster_ref": _cluster_ref,
    "mosaic_gpu.initialize_barrier": _initialize,
    "mosaic_gpu.slice_smem": _slice_smem,
    "mosaic_gpu.vector_load": _load,
    "mosaic_gpu.vector_store": _store,
    "mosaic_gpu.with_transforms": _same,
}
"""What each operation does."""
