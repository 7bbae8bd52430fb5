"""Memory that several processes of one machine share, at the same address in all of them."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import sys
import weakref
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.int64]]

_FIRST, _STEP = 0x6000_0000_0000, 1 << 36
"""Addresses that systems leave free, and the distance from one to the next."""
_TRIES = 4
_FIXED_NOREPLACE = 0x100000
_FAILED = ctypes.c_void_p(-1).value
_addresses = itertools.count(_FIRST, _STEP)


def share(group: Any, count: int) -> Words | None:
    """So many words of zeros that the ranks of a communicator share; None where they cannot.

    All ranks call it. The memory is a file without a name, which the other processes open through the first one's.
    """
    is_first, size = not group.Get_rank(), 8 * count
    file = _new_file(size) if is_first else -1
    try:
        for _ in range(_TRIES):
            address = next(_addresses)
            key = os.urandom(16)
            offer = group.bcast((os.getpid(), file, size, address, key), 0)
            words = _map(offer, file, key if is_first else None)
            group.Barrier()  # the first rank has written its key
            fits = words is not None and words[: len(key) // 8].tobytes() == offer[4]
            if group.allreduce(int(fits)) == group.Get_size():
                group.Barrier()
                if is_first and words is not None:
                    words[: len(key) // 8] = 0
                group.Barrier()
                return words
        return None
    finally:
        if file >= 0:
            os.close(file)


def _new_file(size: int) -> int:
    if sys.platform != "linux":
        return -1
    file = os.memfd_create("mlirhlo")
    os.ftruncate(file, size)
    return file


def _map(offer: tuple[int, int, int, int, bytes], file: int, key: bytes | None) -> Words | None:
    """The first rank's file in this process's memory; the first rank writes its key there."""
    process, number, size, address, _ = offer
    if number < 0:
        return None
    if key is not None:
        return _mapped(file, size, address, key)
    try:
        opened = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR)
    except OSError:
        return None
    try:
        return _mapped(opened, size, address, None)
    finally:
        os.close(opened)


def _mapped(file: int, size: int, address: int, key: bytes | None) -> Words | None:
    system = ctypes.CDLL(None)
    map_, unmap = system.mmap, system.munmap
    map_.restype = ctypes.c_void_p
    map_.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _FIXED_NOREPLACE
    mapped = map_(address, size, access, flags, file, 0)
    if mapped in (None, _FAILED):
        return None
    if mapped != address:  # an old system takes the address for a wish
        unmap(mapped, size)
        return None
    memory: Any = (ctypes.c_int64 * (size // 8)).from_address(address)
    weakref.finalize(memory, unmap, address, size).atexit = False
    words: Words = np.frombuffer(memory, np.int64)
    if key is not None:
        words[: len(key) // 8] = np.frombuffer(key, np.int64)
    return words
