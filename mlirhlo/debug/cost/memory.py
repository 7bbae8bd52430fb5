"""Memory over time: what buffers hold while a module runs, and what the peak is made of.

Parameters and constants are in memory all the time, other buffers from their first definition to their last reader.
Source of the buffers: `mlirhlo.analysis.buffer_assignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlirhlo.analysis.buffer_assignment import Placed, assign_buffers, value_shape
from mlirhlo.debug.pprof import pprof_profile
from mlirhlo.debug.sources import source_line
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer that is in memory at the peak."""

    bytes: int
    kind: str
    """`parameter`, `constant`, `result` or `temporary`."""
    instruction: str
    """What it was defined by, with the shape index of a part of a tuple."""
    shape: str
    op_name: str
    source: str
    """`file:line`, where the module says it."""


@dataclass(frozen=True, slots=True)
class MemoryProfile:
    """Bytes in memory over the run of a module."""

    peak: int
    at: str
    """The instruction that runs at the peak."""
    resident: int
    """Bytes of parameters and constants."""
    curve: tuple[int, ...]
    """Bytes at each instruction, in the order they run."""
    buffers: tuple[Buffer, ...]
    """In memory at the peak, the largest first."""

    def by_source(self) -> Mapping[str, int]:
        """Bytes at the peak by source line, the most first; by instruction where there is none."""
        sums: dict[str, int] = {}
        for buffer in self.buffers:
            key = buffer.source or f"%{buffer.instruction}"
            sums[key] = sums.get(key, 0) + buffer.bytes
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def pprof(self) -> bytes:
        """The peak for `pprof`: bytes by instruction, the scopes of its `op_name`, and source line."""
        samples: dict[tuple[str, ...], int] = {}
        for buffer in self.buffers:
            scopes = [part for part in reversed(buffer.op_name.split("/")) if part]
            stack = [f"%{buffer.instruction}", *scopes, buffer.source]
            key = tuple(part for part in stack if part)
            samples[key] = samples.get(key, 0) + buffer.bytes
        return pprof_profile(samples, "space", "bytes")


def memory_profile(module: HloModule, name_of: Callable[[Instruction], str]) -> MemoryProfile:
    """Memory of a module in the order of its instructions."""
    assignment = assign_buffers(module)
    order = assignment.order
    changes = [0] * (len(order) + 2)
    resident, kept = 0, list[tuple[str, Placed]]()
    for allocation in assignment.allocations:
        kind = _kind(allocation.kind)
        if kind == "thread-local":
            continue
        if kind in ("parameter", "constant"):
            resident += allocation.bytes
        for placed in allocation.buffers:
            kept.append((kind, placed))
            if kind not in ("parameter", "constant"):
                changes[placed.first] += placed.bytes
                changes[placed.last + 1] -= placed.bytes
    curve, now = list[int](), resident
    for change in changes[: len(order)]:
        now += change
        curve.append(now)
    peak = max(curve, default=resident)
    at = curve.index(peak) if curve else 0
    alive = [
        _buffer(kind, placed, module, name_of)
        for kind, placed in kept
        if kind in ("parameter", "constant") or placed.first <= at <= placed.last
    ]
    alive = sorted((b for b in alive if b.bytes), key=lambda b: -b.bytes)
    where = name_of(order[at]) if order else ""
    return MemoryProfile(peak, where, resident, tuple(curve), tuple(alive))


def _kind(text: str) -> str:
    if text.startswith("parameter"):
        return "parameter"
    if text.startswith(("constant", "thread-local")):
        return text
    return "temporary" if text.startswith("preallocated") else "result"


def _buffer(
    kind: str, placed: Placed, module: HloModule, name_of: Callable[[Instruction], str]
) -> Buffer:
    op, index = placed.values[0]
    shape = value_shape(placed.values[0])
    name = name_of(op) + ("{" + ",".join(map(str, index)) + "}" if index else "")
    metadata = op.metadata
    scopes = metadata.op_name if metadata is not None else ""
    source = source_line(metadata, module.stack_frames)
    return Buffer(placed.bytes, kind, name, str(shape), scopes, source)


def sparkline(curve: Sequence[int], width: int = 60) -> str:
    """A curve as one line of text."""
    if not curve:
        return ""
    highest = max(curve) or 1
    count = min(width, len(curve))
    spans = [
        curve[len(curve) * k // count : max(len(curve) * (k + 1) // count, 1)] for k in range(count)
    ]
    return "".join("▁▂▃▄▅▆▇█"[min(7, 8 * max(span or (0,)) // (highest + 1))] for span in spans)
