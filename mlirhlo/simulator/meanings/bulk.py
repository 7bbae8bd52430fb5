"""Bulk copies: `cp.async.bulk`, with and without a tensor map, and reductions (`cp.reduce.async.bulk`).

Single threads start them. They move their bytes when somebody waits for their completion, through an mbarrier
or by the bulk groups of the thread, as late as the program allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.dialects.ptx import Address, Immediate, Operand, Vector
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.access import TRANSLATIONS, Index, addresses, check_states, place_at
from mlirhlo.simulator.assembler import Assembler, Run
from mlirhlo.simulator.lanes import Lanes
from mlirhlo.simulator.meanings.mbarriers import objects_of
from mlirhlo.simulator.meanings.proxies import check_async_read
from mlirhlo.simulator.meanings.registry import nothing
from mlirhlo.simulator.meanings.transfers import REDUCTIONS, Transfer, transfers_of
from mlirhlo.simulator.memory import GLOBAL_BASE
from mlirhlo.simulator.tensor_map import SIZE_BYTES, TensorMap
from mlirhlo.simulator.types import DTYPES

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


def copy(assembler: Assembler) -> Run:
    """`cp.async.bulk…` and `cp.reduce.async.bulk…`."""
    if assembler.has("prefetch"):
        return nothing
    if assembler.has("commit_group"):

        def commit(cohort: Cohort, lanes: Lanes) -> None:
            committed = transfers_of(cohort).committed
            for lane in sets.indices(lanes).tolist():
                committed[lane] = committed.get(lane, 0) + 1

        return commit
    if assembler.has("wait_group"):
        return _wait(assembler)
    if assembler.has("im2col", "im2col::w", "tile::gather4", "tile::scatter4"):
        raise assembler.no_meaning()
    return _tensor(assembler) if assembler.has("tensor") else _plain(assembler)


def _wait(assembler: Assembler) -> Run:
    operand = assembler.operands[0]
    left = operand.value if isinstance(operand, Immediate) else 0
    only_reads = assembler.has("read")

    def wait(cohort: Cohort, lanes: Lanes) -> None:
        transfers = transfers_of(cohort)
        waiting = set(sets.indices(lanes).tolist())

        def is_awaited(one: Transfer) -> bool:
            committed = transfers.committed.get(one.lane, 0)
            return one.barrier is None and one.lane in waiting and one.group < committed - left

        if only_reads:
            for one in filter(is_awaited, transfers.pending):
                transfers.read(one)
        else:
            transfers.take(is_awaited)

    return wait


def _wrong(cohort: Cohort, message: str) -> HloError:
    return HloError(Diagnostic("HLO0785", f"cp.async.bulk: {message}", place_at(cohort)))


def _spaces(assembler: Assembler) -> tuple[str, str]:
    """State spaces of destination and source."""
    found = [
        "shared" if one.startswith("shared") else "global"
        for one in assembler.modifiers
        if one in ("global", "shared::cta", "shared::cluster")
    ]
    return found[0], found[1]


def _reduction(assembler: Assembler) -> tuple[str, Any] | None:
    if "reduce" not in assembler.modifiers:
        return None

    name = assembler.one_of(*REDUCTIONS)
    types = assembler.types
    if not name or (types and types[-1] == "bf16"):
        raise assembler.no_meaning()
    return name, DTYPES[types[-1]] if types else None


def targets(cohort: Cohort, lane: int, mask: int | None, index: int) -> list[int]:
    """Where a copy writes: one block's shared memory, or that of each block of a mask."""
    if mask is None:
        return [index]
    launch = cohort.launch
    size = int(np.prod(launch.cluster))
    offset = (index - launch.shared_region) % launch.shared_stride
    first = int(cohort.block_of[lane]) // size * size
    return [
        launch.shared_region + (first + rank) * launch.shared_stride + offset
        for rank in range(size)
        if mask >> rank & 1
    ]


@dataclass(slots=True)
class _Completion:
    """How a copy says that it is done."""

    barrier: Callable[[Cohort, Lanes], Index] | None
    mask: int | None
    """Slot of the mask of a multicast."""


def _completion(assembler: Assembler, rest: tuple[Operand, ...]) -> _Completion:
    barrier = None
    if "mbarrier::complete_tx::bytes" in assembler.modifiers:
        barrier, rest = addresses(assembler, rest[0]), rest[1:]
    mask = assembler.value(rest[0], "u16") if assembler.has("multicast::cluster") else None
    return _Completion(barrier, mask)


def _start(
    cohort: Cohort,
    lane: int,
    to: Index,
    source: Index,
    unit: int,
    size: int,
    done: _Completion,
    **more: Any,
) -> None:
    """Puts one copy under way."""
    transfers = transfers_of(cohort)
    one = np.array([lane])
    group = transfers.committed.get(lane, 0)
    if done.barrier is None:
        transfers.start(Transfer(cohort.pc, lane, to, source, unit, size, None, group, **more))
        return
    address = done.barrier(cohort, one)
    object_index = int(TRANSLATIONS["shared"](cohort, one, address, 8)[0])
    objects_of(cohort).at(object_index, lane)
    mask = None if done.mask is None else int(cohort.slots[done.mask][lane])
    written = to[to >= 0]
    base = int(written[0]) if len(written) else 0
    for target, barrier in zip(
        targets(cohort, lane, mask, base), targets(cohort, lane, mask, object_index), strict=True
    ):
        moved = np.where(to >= 0, to + (target - base), -1)
        transfers.start(
            Transfer(cohort.pc, lane, moved, source, unit, size, barrier, group, **more)
        )


def _plain(assembler: Assembler) -> Run:
    """Consecutive bytes."""
    to_space, from_space = _spaces(assembler)
    operands = assembler.operands
    to, source = addresses(assembler, operands[0]), addresses(assembler, operands[1])
    amount = assembler.source(2, "u32")
    done = _completion(assembler, operands[3:])
    reduction = _reduction(assembler)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        for lane in sets.indices(lanes).tolist():
            one = np.array([lane])
            size = int(cohort.slots[amount][lane])
            if size % 16 or not size:
                raise _wrong(cohort, f"{size} bytes, which is no multiple of 16")
            ends = list[Index]()
            for space, address, write in ((to_space, to, True), (from_space, source, False)):
                value = address(cohort, one)
                if int(value[0]) % 16:
                    raise _wrong(cohort, f"address {int(value[0]):#x} is no multiple of 16")
                start = int(TRANSLATIONS[space](cohort, one, value, size)[0])
                index = start + 16 * np.arange(size // 16)
                _check(cohort, lane, index, 16, write=write)
                _count(cohort, lane, index, space, write=write)
                ends.append(index)
            check_async_read(cohort, ends[1], 16, "cp.async.bulk")
            _start(cohort, lane, ends[0], ends[1], 16, size, done, reduction=reduction)

    return run


def _check(cohort: Cohort, lane: int, index: Index, unit: int, *, write: bool) -> None:
    lanes = np.full(len(index), lane)
    if write:
        check_states(cohort, lanes, index, unit, write=True)
    elif not cohort.arena.states[index].all():
        check_states(cohort, lanes, index, unit, write=False)


def _count(cohort: Cohort, lane: int, index: Index, space: str, *, write: bool) -> None:
    if cohort.figures is not None and space == "global":
        cohort.figures.count_global(index, 16, np.full(len(index), lane), write=write)


def swizzled(index: Index, span: int) -> Index:
    """Positions in shared memory under a swizzle of 32, 64 or 128 bytes; the arena is aligned to 1024 for them."""
    if not span:
        return index
    bits = {32: 1, 64: 3, 128: 7}[span]
    return index ^ ((index >> 7 & bits) << 4)


def _tensor(assembler: Assembler) -> Run:
    """A box of a tensor."""
    loads = _spaces(assembler)[0] == "shared"
    operands = assembler.operands
    map_operand, shared_operand = (
        (operands[1], operands[0]) if loads else (operands[0], operands[1])
    )
    if (
        not isinstance(map_operand, Address)
        or not map_operand.more
        or not isinstance(map_operand.more[0], Vector)
    ):
        raise assembler.wrong("expects [map, {coordinates}]")
    coordinates = [assembler.value(one, "s32") for one in map_operand.more[0].parts]
    map_address = addresses(assembler, Address(map_operand.base, map_operand.offset))
    shared = addresses(assembler, shared_operand)
    done = _completion(assembler, operands[2:])
    reduction = _reduction(assembler)

    def run(cohort: Cohort, lanes: Lanes) -> None:
        for lane in sets.indices(lanes).tolist():
            one = np.array([lane])
            tensor = _map_at(cohort, one, map_address(cohort, one), len(coordinates))
            start = [int(cohort.slots[slot][lane]) for slot in coordinates]
            place = int(
                TRANSLATIONS["shared"](cohort, one, shared(cohort, one), tensor.box_bytes)[0]
            )
            offset = (place - cohort.launch.shared_region) % cohort.launch.shared_stride
            if offset % 128:
                raise _wrong(cohort, f"address {offset:#x} in shared memory is no multiple of 128")
            outer, inner = _box(tensor, start)
            unit = _unit(tensor)
            inside = place - offset + swizzled(offset + inner, tensor.swizzle_bytes)
            _check(cohort, lane, outer[outer >= 0], unit, write=not loads)
            if cohort.figures is not None:
                known = outer[outer >= 0]
                if len(known):
                    cohort.figures.count_global(
                        known, unit, np.full(len(known), lane), write=not loads
                    )
            more: dict[str, Any] = {
                "reduction": (reduction[0], _type_of(tensor, reduction)) if reduction else None
            }
            if loads:
                _check(cohort, lane, inside, unit, write=True)
                check_async_read(cohort, outer[outer >= 0], unit, "cp.async.bulk.tensor")
                _start(cohort, lane, inside, outer, unit, tensor.box_bytes, done, **more)
            else:
                check_async_read(cohort, inside, unit, "cp.async.bulk.tensor")
                kept = outer >= 0
                _start(
                    cohort, lane, outer[kept], inside[kept], unit, tensor.box_bytes, done, **more
                )

    return run


def _type_of(tensor: TensorMap, reduction: tuple[str, Any]) -> Any:
    if reduction[1] is not None:
        return reduction[1]
    return (
        np.dtype(np.float32)
        if tensor.element_bytes == 4
        else np.dtype(np.float16 if tensor.element_bytes == 2 else f"u{tensor.element_bytes}")
    )


def _map_at(cohort: Cohort, lane: NDArray[np.intp], address: Index, rank: int) -> TensorMap:
    if int(address[0]) % 64:
        raise _wrong(cohort, f"the tensor map at {int(address[0]):#x} is not aligned to 64 bytes")
    index = int(TRANSLATIONS["generic"](cohort, lane, address, SIZE_BYTES)[0])
    tensor = TensorMap.decode(cohort.arena.bytes[index : index + SIZE_BYTES].tobytes())
    if tensor is None:
        raise _wrong(cohort, f"there is no tensor map at {int(address[0]):#x}")
    if tensor.rank != rank:
        raise _wrong(cohort, f"{rank} coordinates for a tensor of {tensor.rank} dimensions")
    return tensor


def _unit(tensor: TensorMap) -> int:
    """Bytes that are moved at once: 16 where rows and bounds allow it, else one element."""
    whole = (
        tensor.steps == (1,) * tensor.rank and tensor.dimensions[0] * tensor.element_bytes % 16 == 0
    )
    return 16 if whole else tensor.element_bytes


def _box(tensor: TensorMap, start: list[int]) -> tuple[Index, Index]:
    """Positions in the arena of the units of a box (-1 out of bounds), and their offsets in the box."""
    unit = _unit(tensor)
    packed = unit // tensor.element_bytes
    if packed > 1 and start[0] % packed:
        unit, packed = tensor.element_bytes, 1
    counts = [-(-extent // step) for extent, step in zip(tensor.box, tensor.steps, strict=True)]
    counts[0] //= packed
    grid = np.indices(counts[::-1]).reshape(tensor.rank, -1)[::-1]
    address = np.full(grid.shape[1], tensor.address - GLOBAL_BASE, np.int64)
    inside = np.ones(grid.shape[1], np.bool_)
    for dim in range(tensor.rank):
        scale = packed if dim == 0 else 1
        position = start[dim] + grid[dim] * scale * tensor.steps[dim]
        inside &= (position >= 0) & (position < tensor.dimensions[dim])
        address += position * (tensor.element_bytes if dim == 0 else tensor.strides[dim - 1])
    offsets: Index = np.arange(int(grid.shape[1])) * unit
    return np.where(inside, address, -1), offsets
