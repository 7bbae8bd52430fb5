"""What one kernel does, by kind of work, and how long a chip takes for it.

A kernel is an instruction of a computation that runs, with all that is fused in it. Bytes, operations and elementary
functions are XLA's counts. Where a chip's description has measured costs, those of the kinds of work are summed; else
the kernel takes as long as the slower of memory and arithmetic (the roofline), beside the time of its launch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlirhlo.analysis.cost.counts import BYTES, FLOPS, TRANSCENDENTALS, Counts
from mlirhlo.debug.cost.chip import Chip
from mlirhlo.debug.cost.kinds import part_of, work_kinds
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves


@dataclass(slots=True)
class Work:
    """What a kernel does."""

    bytes: float = 0.0
    flops: float = 0.0
    transcendentals: float = 0.0
    matrix: dict[str, float] = field(default_factory=dict[str, float])
    """Operations of products, by the element type of the operands."""
    vector: dict[str, float] = field(default_factory=dict[str, float])
    """Other operations, by element type."""
    kinds: dict[str, float] = field(default_factory=dict[str, float])
    """Units of the kinds of work that costs are measured for."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Time of a kernel and what it is bound by."""

    nanoseconds: float
    bound: str
    """`memory`, `compute`, `launch` or `link`."""


def kernel_work(
    op: Instruction,
    inside: Sequence[Instruction],
    counts: Mapping[Instruction, Counts],
    moved: Mapping[str, float],
) -> Work:
    """Work of a kernel. `inside`: the fused instructions, or the instruction itself; `moved`: its bytes, by cache."""
    own = counts.get(op, Counts())
    work = Work(max(own.get(BYTES), 0.0), max(own.get(FLOPS), 0.0), own.get(TRANSCENDENTALS))
    work.transcendentals = max(work.transcendentals, 0.0)
    vector, matrix = defaultdict[str, float](float), defaultdict[str, float](float)
    for inner in inside:
        if inner.opcode.free or inner.opcode.is_trivial:
            continue
        known = counts.get(inner, Counts())
        flops = max(known.get(FLOPS), 0.0)
        element = _element(inner)
        if inner.opcode.contracts:
            matrix[element] += flops
        else:
            vector[element] += flops
    work.matrix, work.vector = dict(matrix), dict(vector)
    work.kinds = work_kinds(inside, counts, moved)
    return work


def _element(op: Instruction) -> str:
    """Element type that an instruction computes in: that of its first operand."""
    shapes = [leaf for s in (*op.input_shapes[:1], op.shape) for _, leaf in leaves(s)]
    return next((s.element_type.name for s in shapes if isinstance(s, ArrayShape)), "f32")


def duration(work: Work, chip: Chip) -> Duration:
    """How long a chip takes for a kernel."""
    if chip.nanoseconds:
        parts = {"launch": 0.0, "memory": 0.0, "compute": 0.0}
        for kind, units in work.kinds.items():
            parts[part_of(kind)] += chip.nanoseconds.get(kind, 0.0) * units
        longest = max(parts["memory"], parts["compute"])
        return Duration(parts["launch"] + longest, max(parts, key=parts.__getitem__))
    moving = 1e9 * work.bytes / chip.memory_bandwidth
    computing = sum(flops / chip.matrix_rate(t) for t, flops in work.matrix.items())
    computing += sum(flops / chip.vector_rate(t) for t, flops in work.vector.items())
    functions = work.transcendentals * chip.transcendental_operations
    computing = 1e9 * (computing + functions / chip.vector_rate("f32"))
    longest = max(moving, computing)
    if longest < chip.launch_ns:
        return Duration(longest + chip.launch_ns, "launch")
    return Duration(longest + chip.launch_ns, "memory" if moving >= computing else "compute")
