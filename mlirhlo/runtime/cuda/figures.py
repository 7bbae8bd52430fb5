"""What simulated kernels did, entry point by entry point: instructions, traffic, conflicts, a modelled time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.kernel import Launch
from mlirhlo.simulator.performance import (
    Occupancy,
    Resources,
    modelled_time,
    occupancy,
    resources,
)
from mlirhlo.simulator.report import Figures


@dataclass(frozen=True, slots=True)
class KernelFigures:
    """All launches of one entry point."""

    entry: str
    launches: int
    grid: tuple[int, int, int]
    """Of the first launch."""
    block: tuple[int, int, int]
    figures: Figures


def by_kernel(launched: Sequence[tuple[Launch, Figures]]) -> list[KernelFigures]:
    """Launches of the same entry point added up, in the order of the first."""
    found: dict[str, KernelFigures] = {}
    for launch, figures in launched:
        old = found.get(launch.entry)
        found[launch.entry] = KernelFigures(
            launch.entry,
            1 if old is None else old.launches + 1,
            launch.grid if old is None else old.grid,
            launch.block if old is None else old.block,
            figures if old is None else old.figures + figures,
        )
    return list(found.values())


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What an entry point takes of a GPU, and how long by the model of `simulator.performance`."""

    kernel: KernelFigures
    resources: Resources
    resident: Occupancy
    """Blocks on a multiprocessor."""
    nanoseconds: float
    """Of all launches."""
    bound: str
    """What takes longest in the longest launch."""


def costs(
    launched: Sequence[tuple[Launch, Figures]], ptx: Mapping[str, str], device: GpuDevice
) -> list[KernelCost]:
    """The costs of what `by_kernel` adds up; `ptx` has the code of each kernel."""
    kernels = by_kernel(launched)
    names = {one.entry for one in kernels}
    dynamic = {launch.entry: launch.shared_bytes for launch, _ in launched}
    taken: dict[str, Resources] = {}
    for text in ptx.values():
        if names & set(re.findall(r"\.entry\s+([\w$]+)", text)):
            taken.update(resources(text, device, dynamic))
    found: list[KernelCost] = []
    for kernel in kernels:
        own = [(launch, figures) for launch, figures in launched if launch.entry == kernel.entry]
        need = taken[kernel.entry]
        resident = occupancy(device, math.prod(kernel.block), need)
        times = [modelled_time(device, math.prod(one.grid), f, resident) for one, f in own]
        longest = max(times, key=lambda time: time.nanoseconds)
        total = sum(time.nanoseconds for time in times)
        found.append(KernelCost(kernel, need, resident, total, longest.bound))
    return found


_HEAD = (
    *(
        "kernel",
        "launches",
        "grid",
        "block",
        "instructions",
        "sectors/request",
        "conflicts",
        "read",
    ),
    *("written", "registers", "occupancy", "time", "bound"),
)


def table(kernels: Sequence[KernelCost]) -> str:
    """A line a kernel; instructions are those of warps, traffic is of global memory.

    kernel    launches  grid  block  instructions  …  written  registers  occupancy    time  bound
    fusion_0         1     1   1024         1,894  …      4 B         22       100%  2.4 µs  launch

    Registers that ptxas did not count have a `~`, spilled bytes stand behind them.
    """
    rows = [_HEAD, *map(_row, kernels)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:-1], widths[1:], strict=False)),
                row[-1],
            ]
        )
        for row in rows
    ]
    return "\n".join(lines)


def _row(cost: KernelCost) -> tuple[str, ...]:
    kernel, need = cost.kernel, cost.resources
    memory = kernel.figures.global_memory
    spills = f"+{need.spill_bytes} B" if need.spill_bytes else ""
    return (
        kernel.entry,
        f"{kernel.launches}",
        _sizes(kernel.grid),
        _sizes(kernel.block),
        f"{kernel.figures.warp_instructions:,}",
        f"{memory.sectors / memory.requests:.1f}" if memory.requests else "-",
        f"{kernel.figures.shared_memory.bank_conflicts:,}",
        _bytes(memory.bytes_read),
        _bytes(memory.bytes_written),
        f"{'~' if need.spill_bytes is None else ''}{need.registers}{spills}",
        f"{cost.resident.share:.0%}",
        f"{cost.nanoseconds / 1000:.1f} µs",
        cost.bound,
    )


def _sizes(sizes: tuple[int, int, int]) -> str:
    used = sizes[:3] if sizes[2] > 1 else sizes[:2] if sizes[1] > 1 else sizes[:1]
    return "x".join(map(str, used))


def _bytes(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"


def as_json(kernels: Sequence[KernelCost]) -> str:
    """The same figures for other programs."""
    return json.dumps([asdict(kernel) for kernel in kernels], indent=1) + "\n"
