"""Copies between memories and devices, and the semaphores that tell of them."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.mosaic.language.choices import with_chosen
from mlirhlo.mosaic.language.control import run_scoped
from mlirhlo.mosaic.language.elements import I32
from mlirhlo.mosaic.language.faults import bad_memory, bad_shape, bad_type, misuse
from mlirhlo.mosaic.language.functions.arithmetic import div, rem
from mlirhlo.mosaic.language.indexing import scalar
from mlirhlo.mosaic.language.refs import Ref, squeezed
from mlirhlo.mosaic.language.scratch import SemaphoreType
from mlirhlo.mosaic.language.trace import (
    SEGMENTS,
    attribute,
    current,
    emit,
    emit_one,
    int_attr,
    ints,
    memref_type,
    vector_type,
)
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import ArrayLike, Value

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


class DeviceIdType(Enum):
    """How `device_id` names a device."""

    MESH = "mesh"
    """By coordinates: one number for each axis of the mesh, or a dictionary by names."""
    LOGICAL = "logical"
    """By one number."""


def logical_device(device_id: Any, kind: DeviceIdType) -> Value:
    """One number for a device."""
    trace = current()
    trace.has_communication = True
    if kind is DeviceIdType.LOGICAL:
        if isinstance(device_id, tuple | list):
            (device_id,) = device_id
        return scalar(device_id, "a device")
    mesh: Mapping[str, int] = trace.mesh or {}
    if isinstance(device_id, Mapping):
        ids: Any = device_id
        given = [ids.get(axis, axis_index(axis)) for axis in mesh]
    else:
        given = list(device_id) if isinstance(device_id, Sequence) else [device_id]
    if len(given) != len(mesh):
        raise misuse(
            f"{len(given)} coordinates for a mesh of {len(mesh)} axes",
            "give the call mesh={'x': 4}, and device_id a number for each axis",
        )
    total: Any = 0
    for at, size in zip(given, mesh.values(), strict=True):
        total = total * size + at if not _is_zero(total) else at
    return scalar(total, "a device")


def _is_zero(value: Any) -> bool:
    return not isinstance(value, Value) and value == 0


def axis_size(axis_name: Any) -> int:
    """The size of an axis of the device mesh, or of the mesh of cores that a kernel runs on; of several axes
    together.
    """
    if isinstance(axis_name, tuple | list):
        return prod(axis_size(one) for one in axis_name)
    axis = axis_name
    trace = current("axis_size")
    cores = trace.grid[trace.names[axis]] if axis in trace.names else None
    if cores is not None:
        return cores
    mesh: Mapping[str, int] = current("axis_size").mesh or {}
    if axis not in mesh:
        raise misuse(f"there is no mesh axis {axis!r}", f"the mesh has {', '.join(mesh) or 'none'}")
    return mesh[axis]


def axis_index(axis_name: Any) -> Value:
    """Where this device is along an axis of the mesh, or this core along one of cores; along several axes
    together, the last one fastest.
    """
    if isinstance(axis_name, tuple | list):
        found: Any = 0
        for one in axis_name:
            found = axis_index(one) if _is_zero(found) else found * axis_size(one) + axis_index(one)
        return scalar(found)
    axis = axis_name
    trace = current("axis_index")
    if axis in trace.names:
        return cast("Value", trace.grid_indices[trace.names[axis]])
    mesh: Mapping[str, int] = current("axis_index").mesh or {}
    size, after = axis_size(axis), 1
    for name in reversed(list(mesh)):
        if name == axis:
            break
        after *= mesh[name]

    device = device_index()
    at = device if after == 1 else div(device, after)
    return rem(at, size)


def device_index() -> Value:
    """The logical number of this device."""
    return Value(emit_one("tpu.device_id", [], vector_type((), I32)), (), I32)


class AsyncCopy:
    """A copy that `start` begins and `wait` sees done."""

    def __init__(
        self,
        source: Ref,
        target: Ref,
        arrived: Ref,
        sent: Ref | None = None,
        device: Value | None = None,
    ) -> None:
        self._source, self._target = source, target
        self._arrived, self._sent, self._device = arrived, sent, device

    def start(self, priority: int = 0) -> None:
        """Begins; until the wait, the source must not change nor the target be used."""

        def begin(source: Ref, sending: Ref | None, target: Ref, arrived: Ref) -> None:
            sent = [_semaphore(sending)] if sending is not None else []
            device = [self._device.ssa] if self._device is not None else []
            operands = [squeezed(source), *sent, squeezed(target), _semaphore(arrived), *device]
            sizes = [1, len(sent), 1, 1, len(device), 0, 0]
            more = {SEGMENTS: ints(sizes, 32), "priority": int_attr(priority)}
            emit("tpu.enqueue_dma", operands, (), more)

        with_chosen(begin, self._source, self._sent, self._target, self._arrived)

    def wait(self) -> None:
        """Until the copy is done: of a remote one, both what is sent and what is received."""
        if self._sent is not None:
            self.wait_send()
        self.wait_recv()

    def wait_send(self) -> None:
        """Until all is read from the source of a remote copy."""
        if self._sent is None:
            raise misuse("a local copy has nothing to send", "wait for it with wait()")
        # What is taken from a semaphore are the bytes of the second reference.
        _wait(self._sent, self._target, self._source, self._device)

    def wait_recv(self) -> None:
        """Until what another device sends in this copy is here."""
        _wait(self._arrived, self._source, self._target, self._device)


def _wait(semaphore: Ref, source: Ref, target: Ref, device: Value | None) -> None:
    def wait(semaphore: Ref, source: Ref, target: Ref) -> None:
        devices = [device.ssa] if device is not None else []
        operands = [_semaphore(semaphore), squeezed(source), squeezed(target), *devices]
        sizes = [1, 1, 1, len(devices), 0]
        emit("tpu.wait_dma2", operands, (), {SEGMENTS: ints(sizes, 32)})

    with_chosen(wait, semaphore, source, target)


def _semaphore(ref: Ref) -> SSAValue:
    if not ref.semaphore:
        raise bad_memory(f"{ref!r} is no semaphore", "allocate SemaphoreType.DMA among the scratch")
    if ref.shape:
        raise bad_shape(
            f"an array of semaphores of shape {list(ref.shape)}", "choose one with sem.at[i]"
        )
    return squeezed(ref)


def _check_copy(source: Any, target: Any) -> None:
    for ref in (source, target):
        if not isinstance(ref, Ref):
            raise bad_memory(
                f"a copy is between references, not {type(ref).__name__}",
                "write ref.at[index] for a part: ref[index] loads it",
            )
        if ref.semaphore:
            raise bad_memory("semaphores are not copied")
    if source.shape != target.shape:
        raise bad_shape(
            f"a copy from shape {list(source.shape)} to {list(target.shape)}",
            "slice both with at[...]",
        )
    if source.dtype != target.dtype:
        raise bad_type(f"a copy from {source.dtype.name} to {target.dtype.name}")


def make_async_copy(src_ref: Ref, dst_ref: Ref, sem: Ref) -> AsyncCopy:
    """A copy within this device; `sem`, a DMA semaphore, counts its bytes."""
    _check_copy(src_ref, dst_ref)
    return AsyncCopy(src_ref, dst_ref, sem)


def make_async_remote_copy(
    src_ref: Ref,
    dst_ref: Ref,
    send_sem: Ref,
    recv_sem: Ref,
    device_id: Any,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
) -> AsyncCopy:
    """A copy to `dst_ref` of another device; its `recv_sem` tells that device."""
    _check_copy(src_ref, dst_ref)
    device = logical_device(device_id, device_id_type)
    return AsyncCopy(src_ref, dst_ref, recv_sem, send_sem, device)


def async_copy(
    src_ref: Ref, dst_ref: Ref, sem: Ref, *, priority: int = 0, add: bool = False
) -> AsyncCopy:
    """`make_async_copy`, begun. Raises `HloError` HLO0725 for one that adds: SparseCores alone do."""
    _replaces(add)
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority)
    return copy


def async_remote_copy(
    src_ref: Ref,
    dst_ref: Ref,
    send_sem: Ref,
    recv_sem: Ref,
    device_id: Any,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
) -> AsyncCopy:
    """`make_async_remote_copy`, begun."""
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy


def _replaces(add: bool) -> None:
    if add:
        raise bad_memory(
            "a copy that adds to its target", "copy to VMEM, and add to the target there"
        )


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """A copy, with its own semaphore, and the wait for it; of all references in tuples, lists and
    dictionaries at once. Raises `HloError` HLO0725 for one that adds.
    """
    _replaces(add)
    pairs = list(zip(flatten(src_ref)[0], flatten(dst_ref)[0], strict=True))

    def body(sem: Ref) -> None:
        for copy in [async_copy(source, target, sem) for source, target in pairs]:
            copy.wait()

    if pairs:
        run_scoped(body, SemaphoreType.DMA)


def semaphore_signal(
    sem: Ref,
    inc: ArrayLike = 1,
    *,
    device_id: Any = None,
    device_id_type: DeviceIdType = DeviceIdType.MESH,
    core_index: Any = None,
) -> None:
    """Adds to a semaphore, of this core or of another one, on this device or on another."""
    operands = [scalar(inc, "a semaphore's increment").ssa]
    sizes = [1, 1, 0, 0, 0]
    if device_id is not None:
        operands.append(logical_device(device_id, device_id_type).ssa)
        sizes[2] = 1
    if core_index is not None:
        operands.append(scalar(core_index, "a core").ssa)
        sizes[3] = 1

    def signal(sem: Ref) -> None:
        emit("tpu.sem_signal", [_semaphore(sem), *operands], (), {SEGMENTS: ints(sizes, 32)})

    with_chosen(signal, sem)


def semaphore_wait(sem: Ref, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Waits until the semaphore holds `value`, and takes it; without `decrement`, gives it back at once.

    Between both nobody else takes of it: a semaphore is waited for by its own core alone.
    """
    count = scalar(value, "a semaphore's value").ssa
    with_chosen(lambda sem: emit("tpu.sem_wait", [_semaphore(sem), count]), sem)
    if not decrement:
        semaphore_signal(sem, value)


def semaphore_read(sem: Ref) -> Value:
    """What the semaphore holds."""
    return Value(emit_one("tpu.sem_read", [_semaphore(sem)], vector_type((), I32)), (), I32)


def get_barrier_semaphore() -> Ref:
    """The semaphore that the calls of one `collective_id` share across devices."""
    trace = current("get_barrier_semaphore")
    if trace.collective_id is None:
        raise misuse(
            "the barrier semaphore belongs to a collective_id, which the call has not",
            "give it compiler_params=pltpu.CompilerParams(collective_id=0)",
        )
    trace.has_communication = True
    type_ = memref_type((), attribute("!tpu.semaphore"), "semaphore_mem")
    ssa = emit_one("tpu.sem_barrier", [], type_)
    return Ref(ssa, (), I32, "semaphore_mem", semaphore="tpu.semaphore")


__all__ = [
    "AsyncCopy",
    "DeviceIdType",
    "async_copy",
    "async_remote_copy",
    "axis_index",
    "axis_size",
    "device_index",
    "get_barrier_semaphore",
    "make_async_copy",
    "make_async_remote_copy",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "sync_copy",
]
