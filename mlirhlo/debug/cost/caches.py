"""Which cache holds what kernels read: by the bytes that others moved since it was touched last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from mlirhlo.analysis.cost.counts import BYTES, Counts, operand_bytes
from mlirhlo.dialects.hlo.ops.base import Instruction

_LEVELS = ((32 << 10, "byte-l1"), (1 << 20, "byte-l2"), (16 << 20, "byte-l3"))
"""Bytes of each cache of a core."""


def moved_bytes(
    order: Sequence[Instruction], counts: Mapping[Instruction, Counts]
) -> dict[Instruction, dict[str, float]]:
    """For each kernel of a schedule, the bytes that it moves, by the cache that they are in.

    The schedule is taken as one that runs again and again: what is read first was touched in the round before.
    """
    kernels = [op for op in order if not op.opcode.free and op in counts]
    whole = sum(max(counts[op].get(BYTES), 0.0) for op in kernels)
    position, touched = 0.0, dict[SSAValue, float]()
    read_from: dict[Instruction, dict[str, float]] = {}
    for op in kernels:
        own = max(counts[op].get(BYTES), 0.0)
        levels = defaultdict[str, float](float)
        written = own
        for number, operand in enumerate(op.inputs):
            source = _source(operand)
            read = min(max(counts[op].get(operand_bytes(number)), 0.0), written)
            between = position - touched[source] if source in touched else whole
            levels[_level(own + between)] += read
            written -= read
            touched[source] = position + own
        levels[_level(2 * own)] += written
        position += own
        touched.update(dict.fromkeys(op.results, position))
        read_from[op] = dict(levels)
    return read_from


def _level(distance: float) -> str:
    return next((name for size, name in _LEVELS if distance <= size), "byte-memory")


def _source(value: SSAValue) -> SSAValue:
    """The value whose memory this one is."""
    while isinstance(owner := value.owner, Instruction) and owner.opcode.free and owner.inputs:
        value = owner.inputs[0]
    return value
