"""What simulated kernels did, entry point by entry point: instructions, traffic, conflicts.

kernel    launches  grid  block  instructions  sectors/request  conflicts    read  written
fusion_0         1     1   1024         2,112              4.0          0  48 KiB      4 B
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mlirhlo.lowering.gpu.kernel import Launch
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


_HEAD = (
    "kernel",
    "launches",
    "grid",
    "block",
    "instructions",
    "sectors/request",
    "conflicts",
    "read",
    "written",
)


def table(kernels: Sequence[KernelFigures]) -> str:
    """A line a kernel; instructions are those of warps, traffic is of global memory."""
    rows = [_HEAD, *map(_row, kernels)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    return "\n".join(lines)


def _row(kernel: KernelFigures) -> tuple[str, ...]:
    memory = kernel.figures.global_memory
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
    )


def _sizes(sizes: tuple[int, int, int]) -> str:
    used = sizes[:3] if sizes[2] > 1 else sizes[:2] if sizes[1] > 1 else sizes[:1]
    return "x".join(map(str, used))


def _bytes(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count} B"


def as_json(kernels: Sequence[KernelFigures]) -> str:
    """The same figures for other programs."""
    return json.dumps([asdict(kernel) for kernel in kernels], indent=1) + "\n"
