"""What generated code may count on: the facts of one processor.

`current()` is the processor of this machine unless `using(...)` says otherwise; code made for another
one is for reading and for machines that have what it names.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import platform
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

PAGE = 4096
"""Bytes of a page of memory: what is below it in an address is known before it is translated."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor, as far as kernels are shaped by it. Sizes are those of one core, in bytes."""

    vector_bytes: int
    """Width of its widest vectors."""
    registers: int
    """Vector registers."""
    features: frozenset[str] = frozenset()
    """LLVM's names of what it can do: `fma`, `avx512bf16`, `amx-bf16`, …"""
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 8 << 20
    parts: int = 16
    """The most parts that the work of a parallel loop is divided into."""

    has_slow_gathers: bool = False
    """Whether loading lanes one by one is faster than its instructions that gather."""

    @property
    def l1_ways(self) -> int:
        """Lines of L1 for addresses that are pages apart: it is looked up by what a page leaves alone."""
        return max(1, self.l1_bytes // PAGE)

    @property
    def has_many_threads(self) -> bool:
        """Whether rounds of a parallel loop are threads, so that loops outside of it should be part of it."""
        return self.parts >= 1 << 10

    def has(self, *features: str) -> bool:
        """Whether it has all of them."""
        return self.features.issuperset(features)

    @property
    def multiplies_bytes(self) -> bool:
        """Whether one instruction adds four products of an unsigned and a signed byte to each 32-bit lane."""
        return self._has_of_width("avx512vnni", "avxvnni")

    @property
    def multiplies_bytes_of_one_sign(self) -> bool:
        """Whether another one does that for two signed, or two unsigned, bytes."""
        return self._has_of_width("avx10.2", "avxvnniint8")

    @property
    def multiplies_words(self) -> bool:
        """Whether an instruction makes sums of two products of signed 16-bit numbers."""
        return self._has_of_width("avx512bw", "avx2")

    def _has_of_width(self, wide: str, narrow: str) -> bool:
        """Features that its vectors of 512, or of 256, bits need."""
        return self.has({64: wide, 32: narrow}.get(self.vector_bytes, "none"))


GENERIC = Target(16, 16)
"""The least: 128-bit vectors."""
AVX2 = Target(32, 16, frozenset({"avx", "avx2", "fma", "f16c"}))
AVX512 = Target(
    64, 32, AVX2.features | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, 48 << 10, 2 << 20
)

PTX = Target(16, 255, frozenset({"ptx80"}))
"""A thread of a GPU."""
GPU_THREADS = Target(8, 16, parts=1 << 14)
"""Threads of a GPU that share the rounds of parallel loops; the widest register of one holds an f64."""

_current: ContextVar[Target | None] = ContextVar("target", default=None)


def current() -> Target:
    """The processor that code is made for."""
    return _current.get() or host()


@contextmanager
def using(target: Target) -> Generator[Target]:
    """Makes code for another processor."""
    token = _current.set(target)
    try:
        yield target
    finally:
        _current.reset(token)


@functools.cache
def host() -> Target:
    """The processor of this machine. Tile registers count when the system lets this process use them."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    flat = cast(str, llvm.get_host_cpu_features().flatten())
    features = frozenset(f[1:] for f in flat.split(",") if f.startswith("+"))
    if "amx-tile" in features and not may_use_tiles():
        features = frozenset(f for f in features if not f.startswith("amx"))
    if "avx512f" in features:
        width, registers = 64, 32
    elif "avx2" in features:
        width, registers = 32, 16
    else:
        arm = platform.machine() in ("aarch64", "arm64")
        width, registers = 16, 32 if arm else 16
    is_zen = cast(str, llvm.get_host_cpu_name()).startswith("znver")
    return Target(width, registers, features, *_caches(), has_slow_gathers=is_zen)


@functools.cache
def may_use_tiles() -> bool:
    """Asks Linux for the tile registers, for all threads of this process that start later too."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    denied: int = ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data)
    return denied == 0


def _caches() -> tuple[int, int, int]:
    """Sizes of the data caches that Linux tells; of a shared one its whole size."""
    sizes = {1: GENERIC.l1_bytes, 2: GENERIC.l2_bytes, 3: GENERIC.l3_bytes}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if (folder / "type").read_text().strip() == "Instruction":
                continue
            level = int((folder / "level").read_text())
            sizes[level] = int((folder / "size").read_text().strip().removesuffix("K")) << 10
        except (OSError, ValueError):
            continue
    return sizes[1], sizes[2], sizes[3]
