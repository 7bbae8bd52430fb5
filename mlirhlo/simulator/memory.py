"""Memory of the simulated device: one arena for all state spaces, with a state for each byte.

Generic addresses fall into windows: global memory (with constants, kernel parameters and everything that
the host allocates), shared memory of the thread's block and of its cluster, and local memory of the thread.
Addresses of `.shared` are offsets into their window, so that 32 bits are enough; addresses of all other
spaces are generic ones. Every window is stored in the arena: `index` of a byte is its position there.
"""

from __future__ import annotations

import gc
from bisect import insort
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import HloError, error
from mlirhlo.simulator.lanes import Array

GLOBAL_BASE = 0x7F00_0000_0000
SHARED_BASE = 0x7E00_0000_0000
LOCAL_BASE = 0x7D00_0000_0000
CODE_BASE = 0x7C00_0000_0000
WINDOW_SHIFT = 40
"""`address >> WINDOW_SHIFT` tells the windows apart."""

CLUSTER_SHIFT = 24
"""Bits of an address within one block's shared memory; above them stands the rank in the cluster plus one."""

ALIGNMENT = 256
"""Alignment of allocations, and the least gap between two of them."""

WRITABLE, READABLE = 1, 2
UNALLOCATED, UNINITIALISED, READ_ONLY, INITIALISED = 0, WRITABLE, READABLE, WRITABLE | READABLE
"""States of a byte: whether it may be written, and whether it has a value."""


def _addresses(size: int) -> NDArray[np.uint8]:
    """Zeros that take memory where they are written. Machines that are no longer used give theirs back first."""
    try:
        return np.zeros(size, np.uint8)
    except MemoryError:
        gc.collect()
        return np.zeros(size, np.uint8)


class Arena:
    """Bytes, their states, and the allocations among them."""

    def __init__(self, capacity: int) -> None:
        capacity = -(-capacity // ALIGNMENT) * ALIGNMENT
        self.capacity = capacity
        self.bytes = _addresses(capacity)
        self.states = _addresses(capacity)
        self.views: dict[Any, Array] = {}
        self.state_views: dict[int, Array] = {
            width: self.states.view(f"u{width}") for width in (1, 2, 4, 8)
        }
        self.allocations: dict[int, tuple[int, str]] = {}
        self._free: list[tuple[int, int]] = []
        self._top = ALIGNMENT

    @property
    def used(self) -> int:
        """The end of the highest allocation that was ever made, as an index."""
        return self._top

    def view(self, dtype: Any, group: int = 1) -> Array:
        """The arena as elements of `dtype`, in rows of `group` elements when there is more than one."""
        key = (dtype, group)
        if key not in self.views:
            whole = self.bytes.view(dtype)
            self.views[key] = whole.reshape(-1, group) if group > 1 else whole
        return self.views[key]

    def allocate(self, size: int, name: str, state: int = UNINITIALISED) -> int:
        """Reserves `size` bytes and returns their index. Raises `HloError` HLO0770 when the arena is full."""
        extent = -(-size // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        index = self._reserve(extent, name)
        self.allocations[index] = (size, name)
        self.states[index : index + size] = state
        return index

    def _reserve(self, extent: int, name: str) -> int:
        for position, (start, length) in enumerate(self._free):
            if length >= extent:
                del self._free[position]
                if length > extent:
                    insort(self._free, (start + extent, length - extent))
                return start
        if self._top + extent > self.capacity:
            raise error(
                "HLO0770",
                f"no memory for {name}: {extent} bytes wanted, {self.capacity - self._top} of {self.capacity} are free",
                help="give the machine more memory_bytes, or make the arrays smaller",
            )
        self._top += extent
        return self._top - extent

    def free(self, index: int) -> None:
        """Gives an allocation back. Raises `HloError` HLO0771 when there is none at `index`."""
        if index not in self.allocations:
            raise error("HLO0771", f"no allocation begins at {index + GLOBAL_BASE:#x}")
        size, _ = self.allocations.pop(index)
        self.states[index : index + size] = UNALLOCATED
        extent = -(-size // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        insort(self._free, (index, extent))
        merged: list[tuple[int, int]] = []
        for start, length in self._free:
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        if merged and sum(merged[-1]) == self._top:
            self._top = merged.pop()[0]
        self._free = merged

    def bounds(self, address: int, size: int) -> int:
        """The index of `size` bytes that the host names by address. Raises `HloError` HLO0771."""
        index = address - GLOBAL_BASE
        if not 0 <= index <= self.capacity - size or not self.states[index : index + size].all():
            raise _outside(self, address, size)
        return index

    def describe(self, index: int) -> str:
        """Where a byte lies: `12 bytes after x (4096 bytes)`."""
        near = [start for start in self.allocations if start <= index]
        if not near:
            return "before every allocation"
        start = max(near)
        size, name = self.allocations[start]
        offset = index - start
        if offset < size:
            return f"byte {offset} of {name} ({size} bytes)"
        return f"{offset - size} bytes after the end of {name} ({size} bytes)"


def _outside(arena: Arena, address: int, size: int) -> HloError:
    where = arena.describe(address - GLOBAL_BASE) if address >= GLOBAL_BASE else "no device address"
    return error("HLO0771", f"the host reads or writes {size} bytes at {address:#x}: {where}")
