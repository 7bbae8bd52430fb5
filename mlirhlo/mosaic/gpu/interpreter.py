"""The judge of kernels for GPUs: modules of the language run on numpy arrays, warp group by warp group.

The warp groups of a cluster run in turns, each until it waits for a barrier. Copies and products are done at once; a
barrier's phase ends when all have arrived. Values are whole arrays, as the language has them.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.mosaic_gpu.attributes import BarrierType
from mlirhlo.dialects.tpu.op_classes import groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.mosaic.attributes import integer_of, integers_of, string_of
from mlirhlo.mosaic.interpreter import arith, math, vector, vector_shape
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.interpreter.registry import MEANINGS
from mlirhlo.mosaic.target.places import source_place

_REGISTERED = (arith, math, vector, vector_shape)
"""Modules whose operations have their meanings from here on."""
Steps = Generator[None, None, Any]
_ATOMICS: Sequence[Callable[..., Any]] = (
    np.add,
    np.minimum,
    np.maximum,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
)


@dataclass(eq=False)
class _BarrierState:
    count: int = 0
    pending: int = 0
    phase: int = 0

    def arrive(self) -> None:
        self.pending -= 1
        if self.pending == 0:
            self.phase += 1
            self.pending = self.count


@dataclass(eq=False)
class _Meeting:
    """Where a number of warp groups meet."""

    members: int
    here: int = 0
    round: int = 0

    def arrive(self) -> int:
        before = self.round
        self.here += 1
        if self.here == self.members:
            self.here, self.round = 0, self.round + 1
        return before


@dataclass(eq=False)
class _Block:
    """One block: its shared memory and barriers, by their offsets."""

    number: int
    rank: int
    meeting: _Meeting
    memory: dict[int, Any] = field(default_factory=dict[int, Any])
    barriers: dict[int, Any] = field(default_factory=dict[int, Any])


@dataclass(eq=False)
class _View:
    """A part of some memory: an array, and for shared memory where it stands."""

    array: Any
    offset: int = -1
    index: Any = ()

    def at(self, index: Any) -> _View:
        return _View(self.array[index], self.offset, (*self.index, index))


class _WarpGroup:
    """One warp group running."""

    def __init__(self, run: _Run, block: _Block, number: int) -> None:
        self.run, self.block, self.number = run, block, number
        self.env: dict[SSAValue, Any] = {}
        self.waits_at: Operation | None = None

    def go(self, block: Block) -> Steps:
        """Runs a block of the module; what its terminator has."""
        env = self.env
        for op in block.ops:
            name = op.name
            if name in ("scf.yield", "func.return", "scf.condition"):
                return tuple(env[v] for v in op.operands)
            inside = _CONTROL.get(name)
            if inside is not None:
                results = yield from inside(self, op)
            else:
                found = _OPS.get(name)
                operands = [env[v] for v in op.operands]
                if found is not None:
                    results = found(self, op, operands)
                else:
                    results = self.run.meaning(op)(None, *operands)
                    results = results if isinstance(results, tuple) else (results,)
            for result, value in zip(op.results, results or (), strict=False):
                env[result] = value
        return ()


class _Run:
    """One launch."""

    def __init__(self, kernel: Any, arrays: Sequence[Any]) -> None:
        self.kernel = kernel
        (self.function,) = kernel.module.ops
        self.meanings: dict[Operation, Any] = {}
        self.arrays = [np.ascontiguousarray(a).copy() for a in arrays]
        self.arrays += [np.zeros(one.shape, one.dtype) for one in kernel.results]
        self.blocks: list[_Block] = []

    def meaning(self, op: Operation) -> Any:
        """What an operation of arithmetic does."""
        found = self.meanings.get(op)
        if found is None:
            prepare = MEANINGS.get(op.name)
            if prepare is None:
                raise error(
                    "HLO0757", f"{op.name} has no meaning in a kernel for GPUs", source_place(op)
                )
            found = self.meanings[op] = prepare(op, None)  # type: ignore[arg-type]
        return found

    def all(self) -> list[Any]:
        """Runs every cluster; the results."""
        launch = self.kernel.launch
        size = launch.cluster_size
        body = self.function.body.blocks[0]
        with np.errstate(all="ignore"):
            for first in range(0, launch.blocks, size):
                self._cluster(first, size, launch.num_threads, body)
        return self.arrays[len(self.kernel.inputs) :]

    def _cluster(self, first: int, size: int, groups_: int, body: Block) -> None:
        self.meeting = _Meeting(size * groups_)
        self.blocks = [_Block(first + i, i, _Meeting(groups_)) for i in range(size)]
        running: list[tuple[_WarpGroup, Steps]] = []
        for block in self.blocks:
            for number in range(groups_):
                group = _WarpGroup(self, block, number)
                for argument, array in zip(body.args, self.arrays, strict=True):
                    group.env[argument] = _View(array)
                running.append((group, group.go(body)))
        state: Any = None
        while running:
            still = []
            for group, steps in running:
                try:
                    next(steps)
                    still.append((group, steps))
                except StopIteration:
                    continue
            if len(still) == len(running):
                now = [(g.waits_at, self._progress()) for g, _ in still]
                if now == state:
                    raise self._deadlock(still[0][0])
                state = now
            running = still

    def _progress(self) -> Any:
        states = [b for block in self.blocks for row in block.barriers.values() for b in row]
        return [(b.pending, b.phase) for b in states], self.meeting.round

    def _deadlock(self, group: _WarpGroup) -> Exception:
        at = group.waits_at
        return error(
            "HLO0703",
            f"warp group {group.number} of block {group.block.number} waits for a barrier whose phase never ends",
            None if at is None else source_place(at),
            help="every phase needs as many arrivals as num_arrivals says, each copy is one",
        )


# ---------------------------------------------------------------- control


def _for(group: _WarpGroup, op: Operation) -> Steps:
    lower, upper, step, *carried = (group.env[v] for v in op.operands)
    block = op.regions[0].blocks[0]
    state: Sequence[Any] = carried
    for i in range(int(lower), int(upper), int(step)):
        for argument, value in zip(block.args, (np.int32(i), *state), strict=True):
            group.env[argument] = value
        state = yield from group.go(block)
    return tuple(state)


def _if(group: _WarpGroup, op: Operation) -> Steps:
    region = op.regions[0 if group.env[op.operands[0]] else 1]
    if not region.blocks:
        return ()
    return (yield from group.go(region.blocks[0]))


def _while(group: _WarpGroup, op: Operation) -> Steps:
    state: Sequence[Any] = [group.env[v] for v in op.operands]
    before, after = (region.blocks[0] for region in op.regions)
    while True:
        group.env.update(zip(before.args, state, strict=True))
        holds, *state = yield from group.go(before)
        if not holds:
            return tuple(state)
        group.env.update(zip(after.args, state, strict=True))
        state = yield from group.go(after)


def _until(group: _WarpGroup, op: Operation, ended: Callable[[], bool]) -> Steps:
    group.waits_at = op
    while not ended():
        yield
    group.waits_at = None


def _wait(group: _WarpGroup, op: Operation) -> Steps:
    barrier, parity = (group.env[v] for v in op.operands)
    state = barrier.array.item()
    yield from _until(group, op, lambda: state.phase % 2 != int(parity))
    return ()


def _block_barrier(group: _WarpGroup, op: Operation) -> Steps:
    meeting = group.block.meeting
    mine = meeting.arrive()
    yield from _until(group, op, lambda: meeting.round != mine)
    return ()


def _cluster_wait(group: _WarpGroup, op: Operation) -> Steps:
    mine = group.env.pop(_ARRIVED, 0)
    yield from _until(group, op, lambda: group.run.meeting.round != mine)
    return ()


_ARRIVED: Any = "arrived"
_CONTROL: Mapping[str, Callable[[_WarpGroup, Operation], Steps]] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "mosaic_gpu.wait": _wait,
    "gpu.barrier": _block_barrier,
    "nvvm.cluster.wait": _cluster_wait,
}


# ---------------------------------------------------------------- memory


def _parts(op: Operation, values: Sequence[Any]) -> dict[str, tuple[Any, ...]]:
    row = ROWS[op.name]
    return groups(op, row, row.operands, tuple(values))


def _slice_smem(group: _WarpGroup, op: Operation, _: Any) -> Any:
    type_: Any = op.results[0].type
    offset = integer_of(op, "offset")
    shape = tuple(type_.get_shape())
    if isinstance(type_.element_type, BarrierType):
        held = group.block.barriers
        if offset not in held:
            held[offset] = np.array([_BarrierState() for _ in range(prod(shape))], object)
        return (_View(held[offset], offset),)
    memory = group.block.memory
    found = memory.get(offset)
    if found is None or found.shape != shape:
        memory[offset] = _unwritten(shape, dtype_in(type_.element_type))
    return (_View(memory[offset], offset),)


def _unwritten(shape: Sequence[int], dtype: Any) -> Any:
    return np.full(shape, np.nan if np.dtype(dtype).kind not in "iub" else 0, dtype)


def _initialize(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    for state in operands[0].array:
        state.count = state.pending = integer_of(op, "arrival_count")
        state.phase = 0
    return ()


def _subview(group: _WarpGroup, op: Operation, operands: Any) -> Any:
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
        return (_View(source.array[one].reshape(()), source.offset, (*source.index, one)),)
    return (source.at(tuple(index)),)


def cast_shape(type_: Any) -> Sequence[int]:
    """The sizes of a memref."""
    found: Sequence[int] = type_.get_shape()
    return found


def _transpose(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    return (_View(operands[0].array.T, operands[0].offset),)


def _cluster_ref(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    parts = _parts(op, operands)
    (source,) = parts["source"]
    sizes = group.run.kernel.launch.cluster
    rank, own = 0, group.block.rank
    coordinates: list[int] = []
    for size in reversed(sizes):
        coordinates.append(own % size)
        own //= size
    coordinates.reverse()
    for dim, size in enumerate(sizes):
        given = parts["xyz"[dim]]
        rank = rank * size + (int(given[0]) if given else coordinates[dim])
    peer = group.run.blocks[rank]
    type_: Any = op.operands[0].type
    if isinstance(type_.element_type, BarrierType):
        return (_View(peer.barriers[source.offset], source.offset),)
    array = peer.memory[source.offset]
    return (_View(array, source.offset),)


def _alloca(group: _WarpGroup, op: Operation, _: Any) -> Any:
    type_: Any = op.results[0].type
    return (_View(_unwritten(tuple(type_.get_shape()), dtype_in(type_.element_type))),)


def _load(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    array = operands[0].array
    return (array[()] if not array.shape else array.copy(),)


def _store(group: _WarpGroup, op: Operation, operands: Any) -> Any:
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


def _async_load(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    parts = _parts(op, operands)
    (source,), (target,), (barrier,) = (parts[n] for n in ("source", "destination", "barrier"))
    lengths = integers_of(op, "slice_lengths") or ()
    values = source.array[_piece(source.array, parts["indices"], lengths)]
    collective: Any = op.properties.get("collective")
    if collective is None or not collective.data:
        target.array[...] = 0
        target.array[tuple(map(slice, values.shape))] = values
        return ()
    # Every block asks for the same part, and gets it.
    del barrier
    target.array[...] = values
    return ()


def _arrive(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    array = operands[0].array
    array.item().arrive()
    return ()


def _async_store(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    parts = _parts(op, operands)
    (source,), (target,) = parts["source"], parts["destination"]
    lengths = integers_of(op, "slice_lengths") or ()
    where = _piece(target.array, parts["indices"], lengths)
    place = target.array[where]
    place[...] = source.array[tuple(map(slice, place.shape))]
    return ()


# ---------------------------------------------------------------- values


def _identity(of: Callable[[_WarpGroup], int]) -> Callable[..., Any]:
    return lambda group, op, operands: (np.int64(of(group)),)


def _wgmma(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    total, a, b = (v.array if isinstance(v, _View) else v for v in operands)
    kind = np.int32 if np.dtype(total.dtype).kind in "iu" else np.float32
    return (total + np.matmul(np.asarray(a, kind), np.asarray(b, kind)).astype(total.dtype),)


def _iota(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    type_: Any = op.results[0].type
    shape = tuple(type_.get_shape())
    dims = integers_of(op, "dimensions") or (integer_of(op, "dimension"),)
    line = np.arange(shape[dims[0]], dtype=np.int32)
    return (
        np.broadcast_to(
            line.reshape([-1 if d == dims[0] else 1 for d in range(len(shape))]), shape
        ),
    )


def _index_cast(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    to_index = isinstance(op.results[0].type, IndexType)
    return ((np.int64 if to_index else np.int32)(operands[0]),)


def _cluster_arrive(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    group.env[_ARRIVED] = group.run.meeting.arrive()
    return ()


def _nothing(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    del group
    if op.name == "llvm.inline_asm" and not (string_of(op, "asm_string") or "").startswith(
        "bar.sync"
    ):
        raise error("HLO0757", "inline assembly has no meaning here", source_place(op))
    return (None,) * len(op.results)


def _same(group: _WarpGroup, op: Operation, operands: Any) -> Any:
    return (operands[0],)


_OPS: Mapping[str, Callable[..., Any]] = {
    "gpu.block_id": _identity(lambda group: group.block.number),
    "gpu.thread_id": _identity(lambda group: group.number * 128),
    "arith.index_cast": _index_cast,
    "memref.alloca": _alloca,
    "memref.load": _load,
    "memref.store": _store,
    "memref.subview": _subview,
    "memref.transpose": _transpose,
    "mosaic_gpu.arrive": _arrive,
    "mosaic_gpu.arrive_expect_tx": _nothing,
    "mosaic_gpu.async_load": lambda group, op, operands: (
        _async_load(group, op, operands),
        _arrive(group, op, operands[2:3]),
    )[1],
    "mosaic_gpu.async_prefetch": _nothing,
    "mosaic_gpu.async_store": _async_store,
    "mosaic_gpu.broadcasted_iota": _iota,
    "mosaic_gpu.get_cluster_ref": _cluster_ref,
    "mosaic_gpu.initialize_barrier": _initialize,
    "mosaic_gpu.layout_cast": _same,
    "mosaic_gpu.slice_smem": _slice_smem,
    "mosaic_gpu.vector_load": _load,
    "mosaic_gpu.vector_store": _store,
    "mosaic_gpu.wgmma": _wgmma,
    "mosaic_gpu.with_transforms": _same,
    "builtin.unrealized_conversion_cast": _same,
    "tpu.iota": _iota,
    "tpu.assume_multiple": _same,
    "nvvm.cluster.arrive": _cluster_arrive,
    **dict.fromkeys(
        (
            "llvm.inline_asm",
            "nvvm.cp.async.bulk.commit.group",
            "nvvm.cp.async.bulk.wait_group",
            "nvvm.fence.mbarrier.init",
            "nvvm.fence.proxy",
            "nvvm.setmaxregister",
            "nvvm.wgmma.commit.group.sync.aligned",
            "nvvm.wgmma.fence.aligned",
            "nvvm.wgmma.wait.group.sync.aligned",
        ),
        _nothing,
    ),
}


def run(kernel: Any, arrays: Sequence[Any]) -> list[Any]:
    """The results of a kernel. Raises `HloError` HLO0702, HLO0703, HLO0757."""
    return _Run(kernel, arrays).all()
