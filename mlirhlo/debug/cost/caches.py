"""Which cache holds what kernels read: by the bytes that others moved since it was touched last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from mlirhlo.analysis.cost.counts import BYTES, Counts, operand_bytes
from mlirhlo.analysis.cost.visitor import size_bytes
from mlirhlo.dialects.hlo.ops import ConstantOp, DynamicUpdateSliceOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import leaves

_LEVELS = ((32 << 10, "byte-l1"), (1 << 20, "byte-l2"), (16 << 20, "byte-l3"))
"""Bytes of each cache of a core."""


def moved_bytes(
    order: Sequence[Instruction],
    counts: Mapping[Instruction, Counts],
    inside: Callable[[Instruction], Sequence[Instruction]],
) -> dict[Instruction, dict[str, float]]:
    """For each kernel of a schedule, the bytes that it moves, by the cache that they are in.

    The schedule is taken as one that runs again and again: what is read first was touched in the round before.
    `inside`: the instructions of a kernel.
    """
    kernels = [op for op in order if not op.opcode.free and op in counts]
    copied = _copied_for_updates(order, kernels, inside)
    whole = sum(max(counts[op].get(BYTES), 0.0) + copied[op] for op in kernels)
    position, touched = 0.0, dict[SSAValue, float]()
    read_from: dict[Instruction, dict[str, float]] = {}
    for op in kernels:
        own = max(counts[op].get(BYTES), 0.0) + copied[op]
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


def _copied_for_updates(
    order: Sequence[Instruction],
    kernels: Sequence[Instruction],
    inside: Callable[[Instruction], Sequence[Instruction]],
) -> dict[Instruction, float]:
    """Bytes that each kernel reads and writes besides XLA's count, which takes every update as one that copies nothing.

    An array is copied when it is an argument or a constant of the program, or something reads it later.
    """
    position: dict[Operation, int] = {op: number for number, op in enumerate(order)}
    copied = dict.fromkeys(kernels, 0.0)
    for op in kernels:
        for update in inside(op):
            if not isinstance(update, DynamicUpdateSliceOp):
                continue
            array = update.inputs[0]
            if update is not op:
                if not isinstance(array.owner, ParameterOp):
                    continue  # it is computed in this kernel
                array = op.inputs[array.owner.parameter_number]
            later = any(position.get(u.operation, -1) > position[op] for u in array.uses)
            if later or _belongs_to_caller(_source(array)):
                copied[op] += 2.0 * sum(size_bytes(leaf) for _, leaf in leaves(update.shape))
    return copied


def _belongs_to_caller(value: SSAValue) -> bool:
    """Whether a value is an argument or a constant of the program."""
    owner = value.owner
    if isinstance(owner, ParameterOp):
        computation = owner.parent_op()
        return isinstance(computation, ComputationOp) and computation.is_entry is not None
    return isinstance(owner, ConstantOp)


def _level(distance: float) -> str:
    return next((name for size, name in _LEVELS if distance <= size), "byte-memory")


def _source(value: SSAValue) -> SSAValue:
    """The value whose memory this one is."""
    while isinstance(owner := value.owner, Instruction) and owner.opcode.free and owner.inputs:
        value = owner.inputs[0]
    return value
