"""Collective-permute: operands travel from sources to targets.

A device that is no target gets zeros. In the in-place form a slice of the source's input goes into
the target's output, both at starts the device itself gives; without a source the output stays. Which
slice goes where, when a device is a source or a target of several, only a TPU knows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.interp.ops.async_ops import started
from mlirhlo.interp.ops.collectives import GroupMode, group_mode, outside
from mlirhlo.interp.registry import Array, Frame, Program, Run, Value, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.collectives import CollectivePermuteOp


def permute_members(op: Instruction, frame: Frame) -> tuple[tuple[int, ...], dict[int, int]]:
    """The devices that run a permute with this one, and by device whose operands it gets. Raises `HloError` HLO0353 and
    HLO0354."""
    permute = cast("CollectivePermuteOp", op)
    machine, mode, pairs = frame.machine, group_mode(op), _pairs_of(permute)
    across_partitions = mode is GroupMode.CROSS_PARTITION
    count = machine.partitions if across_partitions else machine.replicas
    _check_ids(permute, mode, pairs, count)

    def device(number: int) -> int:
        replica, partition = frame.replica, frame.partition
        place = (replica, number) if across_partitions else (number, partition)
        return machine.device(*place)

    return tuple(map(device, range(count))), {device(t): device(s) for s, t in pairs}


def _pairs_of(op: CollectivePermuteOp) -> tuple[tuple[int, int], ...]:
    pairs = tuple((source, target) for source, target in op.source_target_pairs)
    if any(len({*devices}) != len(pairs) for devices in zip(*pairs, strict=True)):
        raise error(
            "HLO0354",
            f"{_name(op)}: a device is a source or a target of several pairs, for which there is no meaning"
            " here",
        )
    return pairs


def _check_ids(
    op: CollectivePermuteOp, mode: GroupMode, pairs: Sequence[tuple[int, int]], count: int
) -> None:
    highest = max((max(pair) for pair in pairs), default=0)
    if highest >= count:
        raise outside(_name(op), mode, highest, count)


def _name(op: CollectivePermuteOp) -> str:
    return f"{op.opcode.name} %{op.instruction_name}"


Permute = Callable[[Sequence[Any], Frame], Value]


def _permuting(op: CollectivePermuteOp) -> Permute:
    channel, mode = op.channel_id, group_mode(op)
    key: Hashable = channel if channel and channel > 0 else op
    pairs, name = _pairs_of(op), _name(op)
    in_place = bool(op.slice_sizes)

    def permute(inputs: Sequence[Any], frame: Frame) -> Value:
        machine = frame.machine
        across_partitions = mode is GroupMode.CROSS_PARTITION
        me = frame.partition if across_partitions else frame.replica
        count = machine.partitions if across_partitions else machine.replicas
        _check_ids(op, mode, pairs, count)

        def box(source: int, target: int) -> Hashable:
            fixed = frame.replica if across_partitions else frame.partition
            return ("collective-permute", key, fixed, source, target)

        outgoing = _slices(op, inputs) if in_place else tuple(inputs)
        for source, target in pairs:
            if source == me:
                machine.post(box(source, target), outgoing)
        incoming: Any = None
        for source, target in pairs:
            if target == me:
                device = machine.device(frame.replica, frame.partition)
                other = (frame.replica, source) if across_partitions else (source, frame.partition)
                sender = machine.describe(machine.device(*other))
                incoming = machine.collect(device, box(source, target), name, sender)
        if in_place:
            return inputs[1] if incoming is None else _updated(op, inputs, incoming)
        if incoming is None:
            incoming = tuple(map(_zeros_like, inputs))
        return incoming if len(inputs) > 1 else incoming[0]

    return permute


def _zeros_like(value: Any) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_zeros_like, cast("tuple[Any, ...]", value)))
    return np.zeros_like(value)


@prepares("collective-permute")
def collective_permute(op: CollectivePermuteOp, program: Program) -> Run:
    """What this device's source has as operands."""
    return _permuting(op)


@prepares("collective-permute-start")
def collective_permute_start(op: CollectivePermuteOp, program: Program) -> Run:
    """`(operands, results, contexts…)` of a collective-permute."""
    permute = _permuting(op)
    if op.slice_sizes:
        # The offsets are no part of the start's value.
        return lambda inputs, frame: started(op, inputs[:1], permute(inputs, frame))
    return lambda inputs, frame: started(op, inputs, permute(inputs, frame))


# ---------------------------------------------------------------- in place


def _buffers(value: Any) -> tuple[Array, ...]:
    return cast("tuple[Array, ...]", value) if isinstance(value, tuple) else (value,)


def _starts(value: Any, buffers: int) -> list[list[tuple[int, ...]]]:
    """Start indices of every slice of every buffer, from (nested) tuples of scalars."""

    def depth(part: Any) -> int:
        return 1 + depth(part[0]) if isinstance(part, tuple) and part else 0

    if not isinstance(value, tuple):
        value = tuple(np.asarray(value).reshape(-1))
    nested = cast("tuple[Any, ...]", value)
    levels = depth(nested)
    per_buffer: tuple[Any, ...] = nested if buffers > 1 and levels > 1 else (nested,) * buffers
    result: list[list[tuple[int, ...]]] = []
    for part in per_buffer:
        slices = part if depth(part) > 1 else (part,)
        result.append([tuple(int(start) for start in starts) for starts in slices])
    return result


def _regions(
    op: CollectivePermuteOp, buffers: Sequence[Array], starts: Any
) -> list[tuple[Array, tuple[slice, ...]]]:
    """Each slice: its buffer, and where it lies in it, clamped as dynamic-slice does."""
    per_buffer = _starts(starts, len(buffers))
    wanted = [(b, s) for b, slices in zip(buffers, per_buffer, strict=True) for s in slices]
    sizes = op.slice_sizes
    if len(sizes) != len(wanted):
        raise error(
            "HLO0354",
            f"{op.opcode.name}: {len(sizes)} slice sizes for {len(wanted)} start indices",
        )
    regions: list[tuple[Array, tuple[slice, ...]]] = []
    for (buffer, start), size in zip(wanted, sizes, strict=True):
        if not len(start) == len(size) == buffer.ndim:
            raise error(
                "HLO0354",
                f"{op.opcode.name}: start indices {start} and slice sizes {tuple(size)} do not fit "
                f"a buffer of rank {buffer.ndim}",
            )
        begins = (min(max(s, 0), b - n) for s, n, b in zip(start, size, buffer.shape, strict=True))
        regions.append((buffer, tuple(slice(s, s + n) for s, n in zip(begins, size, strict=True))))
    return regions


def _slices(op: CollectivePermuteOp, inputs: Sequence[Any]) -> tuple[Array, ...]:
    regions = _regions(op, _buffers(inputs[0]), inputs[2])
    return tuple(buffer[region] for buffer, region in regions)


def _updated(op: CollectivePermuteOp, inputs: Sequence[Any], incoming: Sequence[Array]) -> Value:
    outputs = tuple(np.array(buffer) for buffer in _buffers(inputs[1]))
    regions = _regions(op, outputs, inputs[3])
    for (buffer, region), part in zip(regions, incoming, strict=True):
        buffer[region] = part
    return outputs if isinstance(op.input_shapes[1], TupleShape) else outputs[0]
