"""Devices around kernels: `shard_map` runs a function once for each device of a mesh, on its shards.

Every device has a thread. Where all of them call one kernel or one collective, they meet: the kernel runs once, on
the simulator, for all of them.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from mlirhlo.mosaic.language.faults import bad_spec, misuse
from mlirhlo.mosaic.language.tree import flatten


class PartitionSpec(tuple[Any, ...]):
    """For each dimension of an array the axis, or axes, of the mesh that it is split along; None for none."""

    __slots__ = ()

    def __new__(cls, *axes: Any) -> PartitionSpec:
        return super().__new__(cls, axes)


class Mesh:
    """Devices, which stand for themselves or for their numbers, in an array with named dimensions."""

    def __init__(self, devices: Any, axis_names: Sequence[str] | str) -> None:
        self.devices = np.asarray(devices, object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.ndim != len(self.axis_names):
            raise bad_spec(
                f"devices of shape {list(self.devices.shape)} have {len(self.axis_names)} names of axes",
                "give a name for each dimension",
            )

    @property
    def shape(self) -> Mapping[str, int]:
        """Sizes by names of axes."""
        return dict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def size(self) -> int:
        """How many devices there are."""
        return int(self.devices.size)


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """How an array is split on a mesh."""

    mesh: Mesh
    spec: PartitionSpec

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape that each device has. Raises `ValueError` where a dimension is not split evenly."""
        sizes = list(global_shape)
        for dim, count in enumerate(_splits(self.mesh, self.spec)):
            if sizes[dim] % count:
                raise ValueError(f"dimension {dim}, of size {sizes[dim]}, is split {count} times")
            sizes[dim] //= count
        return tuple(sizes)


@dataclass(frozen=True, slots=True)
class Device:
    """What `jax.devices` tells of one: here it is the CPU that simulates."""

    id: int
    device_kind: str = "cpu"
    platform: str = "cpu"


@dataclass(slots=True, eq=False)
class _Meeting:
    """Where the threads of all devices exchange what they have."""

    mesh: Mesh
    barrier: threading.Barrier
    held: list[Any]
    found: Any = None
    failure: BaseException | None = None

    def exchange(self, device: int, mine: Any, act: Callable[[list[Any]], Any]) -> Any:
        """What `act` gives for what all devices hold; one of them runs it."""
        self.held[device] = mine
        if self.barrier.wait() == 0:
            try:
                self.found = act(list(self.held))
            except BaseException as problem:  # noqa: BLE001  (raised again by every thread)
                self.failure = problem
        self.barrier.wait()
        if self.failure is not None:
            raise self.failure
        found = self.found
        self.barrier.wait()
        return found


@dataclass(frozen=True, slots=True)
class _Shard:
    """The device that a thread is for."""

    meeting: _Meeting
    device: int
    index: Mapping[str, int] = field(default_factory=dict[str, int])


_SHARD: ContextVar[_Shard | None] = ContextVar("shard", default=None)


def _here(what: str) -> _Shard:
    shard = _SHARD.get()
    if shard is None:
        raise misuse(
            f"{what} stands outside of a kernel and of shard_map",
            "call it in a kernel on a mesh, or in the function given to shard_map",
        )
    return shard


def _axes(axis_name: Any) -> tuple[str, ...]:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def axis_size(axis_name: Any) -> int:
    """The size of an axis, or of several together, of the mesh of `shard_map`."""
    mesh = _here("axis_size").meeting.mesh
    for axis in _axes(axis_name):
        if axis not in mesh.shape:
            raise misuse(
                f"there is no mesh axis {axis!r}", f"the mesh has {', '.join(mesh.axis_names)}"
            )
    return prod(mesh.shape[axis] for axis in _axes(axis_name))


def axis_index(axis_name: Any) -> Any:
    """Where this device is along an axis of the mesh of `shard_map`, or along several, the last one fastest."""
    shard = _here("axis_index")
    found = 0
    for axis in _axes(axis_name):
        found = found * axis_size(axis) + shard.index[axis]
    return np.int32(found)


def collective(x: Any, axis_name: Any, join: Callable[[list[Any]], Any]) -> Any:
    """For each array of a tree, what `join` gives for those of the devices along an axis, in their order."""
    shard = _here("a collective")
    axes = _axes(axis_name)
    axis_size(axis_name)
    everyone = shard.meeting.exchange(shard.device, (shard.index, flatten(x)[0]), list)
    others = [axis for axis in shard.index if axis not in axes]
    peers = [
        leaves
        for index, leaves in sorted(everyone, key=lambda one: [one[0][axis] for axis in axes])
        if all(index[axis] == shard.index[axis] for axis in others)
    ]
    return flatten(x)[1]([join(list(column)) for column in zip(*peers, strict=True)])


def on_all_devices(
    call: Callable[[Mapping[str, int], list[Any]], list[Any]], arrays: list[Any]
) -> list[Any] | None:
    """In `shard_map`, the part of this device of what `call` gives for the mesh and for the arrays of all
    devices, stacked along its axes; None outside.
    """
    shard = _SHARD.get()
    if shard is None:
        return None
    mesh = shard.meeting.mesh
    lead = mesh.devices.shape

    def run(held: list[Any]) -> list[Any]:
        columns = zip(*held, strict=True)
        return call(mesh.shape, [np.stack(c).reshape(*lead, *c[0].shape) for c in columns])

    found = shard.meeting.exchange(shard.device, arrays, run)
    return [array[tuple(shard.index.values())] for array in found]


def _splits(mesh: Mesh, spec: Any) -> list[int]:
    """How often each dimension is split."""
    return [prod(mesh.shape[a] for a in _axes(e)) if e is not None else 1 for e in spec]


def _part(
    mesh: Mesh, spec: Any, index: Mapping[str, int], shape: Sequence[int]
) -> tuple[slice, ...]:
    """What of an array is a device's."""
    parts: list[slice] = []
    for dim, entry in enumerate(spec):
        at, count = 0, 1
        for axis in () if entry is None else _axes(entry):
            at, count = at * mesh.shape[axis] + index[axis], count * mesh.shape[axis]
        if shape[dim] % count:
            raise bad_spec(
                f"dimension {dim} of {list(shape)} is split {count} times by {spec}",
                "its size has to be a multiple of that",
            )
        size = shape[dim] // count
        parts.append(slice(at * size, (at + 1) * size))
    return tuple(parts)


def _specs(specs: Any, tree: Any) -> list[Any]:
    """The spec of each array of a tree: a spec that stands for a subtree is that of all its arrays."""
    if isinstance(specs, PartitionSpec):
        return [specs] * len(flatten(tree)[0])
    if isinstance(specs, Mapping):
        return [one for key in sorted(specs) for one in _specs(specs[key], tree[key])]
    if specs is None:
        return [PartitionSpec()] * len(flatten(tree)[0])
    return [one for spec, part in zip(specs, tree, strict=True) for one in _specs(spec, part)]


def shard_map(
    f: Callable[..., Any] | None = None,
    *,
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    **_: Any,
) -> Any:
    """A function of whole arrays that runs `f` on the shards of every device at once and joins what it gives.

    Kernels called by `f` run on the mesh: they meet their peers in remote copies and signals. Raises `HloError`
    HLO0726 for arrays that the specs do not split evenly.
    """
    if f is None:
        return partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    def run(*arrays: Any) -> Any:
        leaves, rebuild = flatten(arrays)
        leaves = [np.asarray(leaf) for leaf in leaves]
        stated = in_specs if not isinstance(in_specs, PartitionSpec) else (in_specs,) * len(arrays)
        specs = _specs(tuple(stated), arrays)
        indices = [
            dict(zip(mesh.axis_names, at, strict=True)) for at in np.ndindex(*mesh.devices.shape)
        ]
        shards = [
            rebuild(
                [
                    leaf[_part(mesh, s, at, leaf.shape)]
                    for leaf, s in zip(leaves, specs, strict=True)
                ]
            )
            for at in indices
        ]
        return _joined(mesh, out_specs, indices, _on_threads(f, mesh, indices, shards))

    return run


shard_map.shard_map = shard_map  # type: ignore[attr-defined]  # JAX has a module of this name, too


def _on_threads(
    f: Callable[..., Any], mesh: Mesh, indices: Sequence[Mapping[str, int]], shards: Sequence[Any]
) -> list[Any]:
    """What `f` gives on each device. Raises what it raises on the first one that fails."""
    meeting = _Meeting(mesh, threading.Barrier(mesh.size), [None] * mesh.size)
    results: list[Any] = [None] * mesh.size
    problems: list[BaseException] = []

    def body(device: int) -> None:
        _SHARD.set(_Shard(meeting, device, indices[device]))
        try:
            results[device] = f(*shards[device])
        except threading.BrokenBarrierError:
            pass  # another device failed
        except BaseException as problem:  # noqa: BLE001  (raised below)
            problems.append(problem)
            meeting.barrier.abort()

    threads = [
        threading.Thread(target=copy_context().run, args=(body, device))
        for device in range(mesh.size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results


def _joined(
    mesh: Mesh, out_specs: Any, indices: Sequence[Mapping[str, int]], results: Sequence[Any]
) -> Any:
    rows = [[np.asarray(leaf) for leaf in flatten(result)[0]] for result in results]
    whole: list[Any] = []
    for spec, *parts in zip(_specs(out_specs, results[0]), *rows, strict=True):
        sizes = list(parts[0].shape)
        for dim, count in enumerate(_splits(mesh, spec)):
            sizes[dim] *= count
        array = np.empty(sizes, parts[0].dtype)
        for index, part in zip(indices, parts, strict=True):
            array[_part(mesh, spec, index, sizes)] = part
        whole.append(array)
    return flatten(results[0])[1](whole)


__all__ = [
    "Device",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "axis_index",
    "axis_size",
    "collective",
    "on_all_devices",
    "shard_map",
]
