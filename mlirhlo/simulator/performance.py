"""What a launch would cost on a GPU: resident blocks, and a modelled time.

The model takes the longest of four times, and adds `START_NS` for the launch itself:

* instructions: the busiest multiprocessor issues four instructions of warps a cycle, and each of its units takes so
  many threads a cycle (`_rates`); extra passes for bank conflicts are instructions of the memory unit.
* latency: a warp issues an instruction every `ISSUE_CYCLES` cycles, and waits `GLOBAL_CYCLES` for `OVERLAPPING`
  requests to global memory. This is the time of one warp, once for each wave of blocks that are resident together.
* cache: a multiprocessor moves two sectors of 32 bytes a cycle from and to the second-level cache.
* memory: each byte that is touched passes once at the device's bandwidth: sectors, but no more than buffers have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mlirhlo.analysis.ptx.liveness import pressure
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.ptx import VariableOp
from mlirhlo.formats.ptx import flat, parse_ptx
from mlirhlo.lowering.gpu.ptx import ptxas
from mlirhlo.simulator.lanes import WARP
from mlirhlo.simulator.report import Figures

if TYPE_CHECKING:
    from mlirhlo.analysis.ptx.flat import FlatFunction, FlatInstruction
    from mlirhlo.lowering.gpu.devices import GpuDevice

START_NS = 2000.0
SCHEDULERS = 4
ISSUE_CYCLES = 4
GLOBAL_CYCLES = 600
OVERLAPPING = 4
CACHE_BYTES = 64
"""Bytes a cycle between a multiprocessor and the second-level cache."""

REGISTERS_A_WARP = 256
"""Registers are given to warps in pieces of so many."""
SHARED_PIECE, SYSTEM_SHARED = 128, 1024
"""Shared memory is given to blocks in such pieces; the system has so many bytes of each block's."""

_MAX_BLOCKS = {(8, 6): 16, (8, 9): 24, (12, 0): 24}
"""Blocks that a multiprocessor holds, by compute capability; 32 where it is not listed."""


_SPECIAL = frozenset({"ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt", "div"})
_UNITS = {
    **dict.fromkeys(("float", "half"), "float"),
    **dict.fromkeys(("integer", "compare", "logic", "convert", "video"), "integer"),
    **dict.fromkeys(("memory", "atomic", "warp", "async", "texture", "matrix"), "memory"),
}
"""Units by the class of the instruction table; other classes take only their issue."""
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
DIVISION = 20
"""Instructions of a division of integers."""


def unit_of(instruction: FlatInstruction, category: str) -> tuple[str, float]:
    """The unit that executes an instruction, and how much of its rate a thread takes."""
    return _unit(instruction.opcode, instruction.modifiers, category)


@lru_cache(maxsize=1024)
def _unit(opcode: str, words: tuple[str, ...], category: str) -> tuple[str, float]:
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    if category == "matrix" and shape is not None and not {"load", "store"} & set(words):
        m, n, k = map(int, shape.groups())
        size = 16.0 if "f64" in words else 2.0 if "tf32" in words else 1.0 if k <= 16 else 0.5
        return "matrix", m * n * k * size / (WARP * 4 if opcode == "wgmma" else WARP)
    if category in ("float", "compare", "convert") and "f64" in words:
        return "double", 1
    if category in ("float", "half") and opcode in _SPECIAL:
        return "special", 1
    return _UNITS.get(category, ""), DIVISION if opcode in ("div", "rem") else 1


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes of a multiprocessor."""

    registers: int
    """Of a thread."""
    shared_bytes: int
    """Of a block, static and dynamic."""
    spill_bytes: int | None = None
    """What ptxas spills, stores and loads; None where the registers are an estimate of ours."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks that are resident on a multiprocessor at once."""

    blocks: int
    """0 when one block alone takes more than there is."""
    warps: int
    share: float
    """Of the warps that a multiprocessor can hold."""
    limit: str
    """What allows no more: `registers`, `shared memory`, `threads` or `blocks`."""


def resources(ptx: str, device: GpuDevice, dynamic: Mapping[str, int]) -> dict[str, Resources]:
    """What the entry points of a PTX module take: as ptxas says, or estimated where there is none that takes the text.

    `dynamic` has the bytes of dynamic shared memory that entry points are launched with.
    """
    try:
        reports = ptxas(ptx, device)
    except HloError:  # one that is older than the PTX
        reports = None
    if reports is None:
        return _estimated(ptx, dynamic)
    return {
        one.entry: Resources(
            one.registers,
            one.shared_bytes + dynamic.get(one.entry, 0),
            one.spill_stores + one.spill_loads,
        )
        for one in reports
    }


def _estimated(ptx: str, dynamic: Mapping[str, int]) -> dict[str, Resources]:
    module = parse_ptx(ptx)
    outer = [v for op in module.statements if isinstance(op, VariableOp) for v in op.variables]
    found = dict[str, Resources]()
    for function in module.functions:
        if function.is_entry and not function.is_declaration:
            code = flat(function)
            shared = sum(
                one.size_bytes or 0
                for one in (*outer, *code.variables.values())
                if one.space == "shared"
            )
            name = function.symbol
            found[name] = Resources(estimated_registers(code), shared + dynamic.get(name, 0))
    return found


def estimated_registers(function: FlatFunction) -> int:
    """Registers of 32 bits that are live at once, as an estimate of what the assembler takes."""
    sizes = {"16": 1, "32": 1, "64": 2, "128": 4}
    most = pressure(function)
    live = sum(most[kind].count * size for kind, size in sizes.items() if kind in most)
    return min(max(live, 16), 255)


def occupancy(device: GpuDevice, threads: int, resources: Resources) -> Occupancy:
    """Blocks of so many threads that fit on a multiprocessor of a device."""
    warps = -(-threads // WARP)
    pieces = -(-resources.registers * WARP // REGISTERS_A_WARP)
    # Each of the four schedulers has its own quarter of the registers.
    by_registers = device.registers_per_core_limit // SCHEDULERS // (pieces * REGISTERS_A_WARP)
    shared = -(-resources.shared_bytes // SHARED_PIECE) * SHARED_PIECE + SYSTEM_SHARED
    limits = {
        "threads": device.threads_per_core_limit // (warps * WARP),
        "blocks": _MAX_BLOCKS.get(device.capability, 32),
        "shared memory": device.shared_memory_per_core // shared,
        "registers": by_registers * SCHEDULERS // warps,
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    most = device.threads_per_core_limit // WARP
    return Occupancy(blocks, blocks * warps, blocks * warps / most, limit)


@dataclass(frozen=True, slots=True)
class Time:
    """The modelled time of a launch."""

    nanoseconds: float
    bound: str
    """What takes longest: `instructions`, `latency`, `cache`, `memory`, or `launch`."""


def modelled_time(device: GpuDevice, blocks: int, figures: Figures, resident: Occupancy) -> Time:
    """The time that a launch of so many blocks takes by the model."""
    cores = min(blocks, device.core_count)
    busiest = -(-blocks // device.core_count) / max(blocks, 1)
    """Share of the work that the busiest multiprocessor has."""
    waves = -(-blocks // (device.core_count * max(resident.blocks, 1)))
    memory = figures.global_memory
    warps = max(figures.warps, 1)
    rates = _rates(device)
    conflicts = figures.shared_memory.bank_conflicts * WARP
    work = {**figures.units, "memory": figures.units.get("memory", 0) + conflicts}
    issue = max(
        figures.warp_instructions / SCHEDULERS,
        *(count / rates[unit] for unit, count in work.items()),
    )
    chain = (
        figures.warp_instructions * ISSUE_CYCLES + memory.requests * GLOBAL_CYCLES / OVERLAPPING
    ) / warps
    moved = memory.sectors * 32
    cycles = {
        "instructions": issue * busiest,
        "latency": chain * waves,
        "cache": moved / (CACHE_BYTES * cores),
    }
    times = {name: count / device.clock_rate_ghz for name, count in cycles.items()}
    times["memory"] = min(moved, figures.buffer_bytes) / device.memory_bandwidth * 1e9
    bound = max(times, key=lambda name: times[name])
    longest = times[bound]
    return Time(START_NS + longest, bound if longest > START_NS else "launch")


def _rates(device: GpuDevice) -> Mapping[str, float]:
    """Threads (multiply-adds of 16 bits for matrices) that each unit of a multiprocessor takes in a cycle.

    Source: CUDA programming guide, "Arithmetic instructions"; peak rates of data sheets for matrices.
    """
    large = device.capability in ((8, 0), (9, 0), (10, 0))
    matrix = {(8, 0): 1024, (9, 0): 2048, (10, 0): 4096}.get(device.capability, 512)
    return {
        "float": device.fpus_per_core,
        "double": device.fpus_per_core / 2 if large else 2,
        "integer": 64,
        "special": 16,
        "memory": 32,
        "control": 64,
        "matrix": matrix,
    }
