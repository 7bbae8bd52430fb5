"""Threads on which the devices of this process run machine code, and the worlds in which they meet.

`device_threads_ir.py` has the runs themselves, which take no lock of Python's. Here workers and worlds are made, and
watched: when every running device of a world waits for one that will not come, the run ends with HLO0351.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.interp.machine import Machine
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.call_layout import DONE, NO_MEMORY
from mlirhlo.runtime.calls import pool_functions
from mlirhlo.runtime.generated import device_threads_ir as code
from mlirhlo.runtime.jit import Library, lock_for_forks
from mlirhlo.runtime.meetings import World, processors, system_functions
from mlirhlo.runtime.threads import FUTEX

if TYPE_CHECKING:
    from mlirhlo.diagnostics import HloError
    from mlirhlo.interp.registry import Array
    from mlirhlo.lowering.plan.steps import Site

_LOOK_S = 0.25
"""Seconds between two looks at the devices that run."""


class Worlds:
    """The worlds of a module's collectives, for runs without Python; `address` is that of their list."""

    def __init__(self, sites: Sequence[Site], replicas: int, partitions: int) -> None:
        self._deadlock: HloError | None = None
        self._sites = sites
        self._sizes = replicas, partitions
        self._list = ctypes.c_int64(0)
        self.address = ctypes.addressof(self._list)
        self._kept: list[tuple[World, Any]] = []
        """Every world with its item in the list."""

    def add(self) -> None:
        """Makes a world. Raises `HloError` HLO0353 and HLO0354 for groups that do not fit the devices."""
        world = World(self._sites, Machine(*self._sizes))
        item = (ctypes.c_int64 * (code.WORLD_CONTEXTS + world.machine.device_count))()
        item[code.WORLD_START] = world.memory.ctypes.data
        for device in range(world.machine.device_count):
            item[code.WORLD_CONTEXTS + device] = world.context(device).ctypes.data
        self._kept.append((world, item))
        threads().put(self.address, ctypes.addressof(item))
        _watch(self)

    @property
    def problem(self) -> HloError | None:
        """Why devices could not go on, the last time."""
        faults = (world.take_fault() for world, _ in list(self._kept))
        return next((fault for fault in faults if fault is not None), self._deadlock)

    def look(self) -> None:
        """Ends the runs that cannot go on, and warns of those that wait for long."""
        for world, _ in list(self._kept):
            running, waits = world.active(), world.waits()
            if world.is_ended or not waits:
                continue
            if running <= waits.keys():
                stuck = {device: waits[device] for device in running}
                self._deadlock = world.machine.stuck(stuck).at(world.place(min(running)))
                world.end()
            else:
                world.tell()


class _Threads:
    """The functions outside, and the workers."""

    def __init__(self) -> None:
        number, pause = FUTEX.get(platform.machine(), (0, ""))
        names = ["run_devices", "device_worker", "list_put", "idle", "lists", "spins"]
        outside = {**system_functions(), "run": pool_functions()["run"]}
        self.library = Library([builder_code("device_threads_ir", number, pause)], names, outside)
        self.library.keep()  # workers are in it when the process ends
        self.address = self.library.address("run_devices")
        self.put: Callable[[int, int], None] = self._function(
            "list_put", None, ctypes.c_void_p, ctypes.c_void_p
        )
        self.run: Callable[..., int] = ctypes.CFUNCTYPE(
            ctypes.c_int32,
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        )(self.address)
        self._work = self._function("device_worker", None, ctypes.c_void_p)
        self._idle, self._lists, self._spins = (
            ctypes.c_int64.from_address(self.library.address(n)) for n in names[3:]
        )
        self._workers: list[Any] = []
        os.register_at_fork(after_in_child=self._forget)

    def _function(self, name: str, result: Any, *parameters: Any) -> Any:
        return ctypes.CFUNCTYPE(result, *parameters)(self.library.address(name))

    def _forget(self) -> None:
        """In a forked child, which has no workers."""
        self._idle.value = self._lists.value = 0

    def add(self, devices: int) -> None:
        """Makes workers for the other devices of one run; on systems where they could not wait there are none."""
        if not are_there():
            return
        self._spins.value = code.SPINS if devices <= processors() else 0
        for _ in range(devices - 1):
            worker = (ctypes.c_int64 * code.WORKER)()
            self._workers.append(worker)
            at = ctypes.addressof(worker)
            work = threading.Thread(target=self._work, args=(at,), daemon=True)
            work.start()
            self.put(ctypes.addressof(self._idle), at)


def are_there() -> bool:
    """Whether threads can wait here for runs without Python."""
    return sys.platform == "linux" and platform.machine() in FUTEX


_lock = lock_for_forks()


def threads() -> _Threads:
    """The threads of this process."""
    with _lock:
        return _only_threads()


def run_function() -> int:
    """The address of `run_devices`."""
    return threads().address


@functools.cache
def _only_threads() -> _Threads:
    return _Threads()


def run_devices(
    descriptor: bytes,
    worlds: Worlds | None,
    inputs: Sequence[Sequence[Array]],
    outputs: Sequence[Sequence[Array]],
) -> None:
    """Runs a module on as many devices as there are inputs, by device, and arrays for results.

    Raises `HloError` HLO0351 where devices cannot go on, MemoryError, KeyboardInterrupt.
    """
    pool = threads()
    rows = [[_addresses(arrays) for arrays in each] for each in (inputs, outputs)]
    lists = [(ctypes.c_void_p * len(each))(*map(ctypes.addressof, each)) for each in rows]
    at = None if worlds is None else worlds.address
    while (status := pool.run(descriptor, len(inputs), *lists, at)) == code.MISSING:
        pool.add(len(inputs))
        if worlds is not None:
            worlds.add()
    if status == NO_MEMORY:
        raise MemoryError
    problem = worlds.problem if status == code.ENDED and worlds is not None else None
    if problem is not None:
        raise problem
    if status != DONE:
        raise KeyboardInterrupt


def _addresses(arrays: Sequence[Array]) -> Any:
    """Addresses of arrays, and one more: that of a device's context."""
    return (ctypes.c_void_p * (len(arrays) + 1))(*[a.ctypes.data for a in arrays])


# ---------------------------------------------------------------- watching

_watched: weakref.WeakSet[Worlds] = weakref.WeakSet()
_watchers: dict[int, threading.Thread] = {}
"""By process, since a forked child has no threads."""


def _watch(worlds: Worlds) -> None:
    with _lock:
        _watched.add(worlds)
        if os.getpid() not in _watchers:
            watcher = threading.Thread(target=_look, name="mlirhlo watch", daemon=True)
            _watchers[os.getpid()] = watcher
            watcher.start()


def _look() -> None:
    while True:
        time.sleep(_LOOK_S)
        for worlds in list(_watched):
            worlds.look()
