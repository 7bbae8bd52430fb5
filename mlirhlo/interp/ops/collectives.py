"""Collectives: all devices of a group meet, exchange their operands, and each works out its result.

Which ids a group holds depends on the instruction's mode, which follows from `channel_id` and
`use_global_device_ids` (source: operation semantics of each collective; HloVerifier, "Collectives"):

  no channel                          ids are replicas; each partition on its own
  channel, op has no global-ids flag  ids are partitions; each replica on its own
  channel, flag false                 ids are replicas; all their partitions join
  channel, flag true                  ids are replica * partitions + partition

No group at all means one group of everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.groups import Groups
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, without_layout
from mlirhlo.interp.ops.async_ops import started
from mlirhlo.interp.registry import Array, Frame, Program, Run, Value, evaluates, prepares

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.collectives import (
        AllGatherOp,
        AllReduceOp,
        AllToAllOp,
        CollectiveBroadcastOp,
        CollectiveReduceOp,
        RaggedAllToAllOp,
        ReduceScatterOp,
    )


class GroupMode(Enum):
    """What the ids in replica groups are."""

    CROSS_REPLICA = "replica"
    CROSS_PARTITION = "partition"
    CROSS_REPLICA_AND_PARTITION = "replica and all its partitions"
    FLATTENED_ID = "device"


def group_mode(op: Instruction) -> GroupMode:
    """Mode of a collective, from its attributes. Raises `HloError` HLO0354."""
    channel = getattr(op, "channel_id", None)
    has_channel = channel is not None and channel > 0
    has_flag = op.opcode.attribute("use_global_device_ids") is not None
    is_global = has_flag and bool(getattr(op, "use_global_device_ids", False))
    if not has_channel:
        if is_global:
            raise error(
                "HLO0354", f"{op.opcode.name}: use_global_device_ids=true needs a channel_id"
            )
        return GroupMode.CROSS_REPLICA
    if is_global:
        return GroupMode.FLATTENED_ID
    return GroupMode.CROSS_REPLICA_AND_PARTITION if has_flag else GroupMode.CROSS_PARTITION


def _ids(mode: GroupMode, frame: Frame) -> tuple[int, int]:
    """This device's id in `mode`, and how many there are."""
    machine = frame.machine
    match mode:
        case GroupMode.CROSS_PARTITION:
            return frame.partition, machine.partitions
        case GroupMode.FLATTENED_ID:
            return machine.device(frame.replica, frame.partition), machine.device_count
        case _:
            return frame.replica, machine.replicas


def _devices(mode: GroupMode, ids: Sequence[int], frame: Frame) -> tuple[int, ...]:
    """Global numbers of the devices that `ids` mean, seen from this device."""
    machine = frame.machine
    match mode:
        case GroupMode.CROSS_REPLICA:
            return tuple(machine.device(replica, frame.partition) for replica in ids)
        case GroupMode.CROSS_PARTITION:
            return tuple(machine.device(frame.replica, partition) for partition in ids)
        case GroupMode.CROSS_REPLICA_AND_PARTITION:
            partitions = range(machine.partitions)
            return tuple(machine.device(replica, p) for replica in ids for p in partitions)
        case GroupMode.FLATTENED_ID:
            return tuple(ids)


@dataclass(frozen=True, slots=True)
class Meeting:
    """How an instruction's devices find each other; everything that does not depend on values."""

    op: Instruction
    key: Hashable
    mode: GroupMode
    groups: Groups
    group_of: Mapping[int, tuple[int, ...]]

    @staticmethod
    def of(op: Instruction, *, kind: str) -> Meeting:
        """For a collective; starts and whole forms of one `kind` may meet."""
        listed = getattr(op, "replica_groups", None)
        groups = () if listed is None else tuple(g for g in listed.groups() if g)
        channel = getattr(op, "channel_id", None)
        key: Hashable = (kind, channel) if channel and channel > 0 else (kind, op)
        group_of = {member: group for group in groups for member in group}
        return Meeting(op, key, group_mode(op), groups, group_of)

    @property
    def name(self) -> str:
        """The instruction in messages."""
        return f"{self.op.opcode.name} %{self.op.instruction_name}"

    def members(self, frame: Frame, *, leaves_out: bool = False) -> tuple[int, ...]:
        """Devices of this device's group, in order; none of a device that the groups `leaves_out`.

        Raises `HloError` HLO0353.
        """
        me, count = _ids(self.mode, frame)
        ids = self.group_of.get(me) if self.groups else tuple(range(count))
        if ids is None and leaves_out:
            return ()
        if ids is None:
            raise error("HLO0353", f"{self.name}: {self.mode.value} {me} is in no group")
        if max(ids) >= count:
            raise outside(self.name, self.mode, max(ids), count)
        return _devices(self.mode, ids, frame)

    def exchange(self, frame: Frame, value: Value) -> tuple[list[Any], int]:
        """Every member's value, and this device's position among them."""
        members = self.members(frame)
        device = frame.machine.device(frame.replica, frame.partition)
        values = frame.machine.exchange(device, self.key, members, value, self.name)
        return values, members.index(device)


def outside(name: str, mode: GroupMode, found: int, count: int) -> Exception:
    """The error for a device that the machine does not have."""
    noun = mode.value.split(" ", maxsplit=1)[0]
    return error(
        "HLO0353",
        f"{name}: its groups name {noun} {found}, but the machine has {count} {noun}s",
        help="run the module on as many replicas and partitions as it was made for",
    )


def as_declared(op: Instruction, results: Sequence[Value], declared: Shape) -> Value:
    """A collective's results as a value of `declared`: an array, or a tuple where that is one.

    Raises `HloError` HLO0354 when they are of other sizes: the devices are not those that the shapes say.
    """
    shapes = declared.elements if isinstance(declared, TupleShape) else (declared,)
    for result, shape in zip(results, shapes, strict=False):
        if not isinstance(shape, ArrayShape) or shape.is_dynamic:
            continue
        sizes = np.shape(cast(Array, result))
        if sizes != shape.dimensions:
            raise _unlike(f"{op.opcode.name} %{op.instruction_name}", sizes, shape)
    return tuple(results) if isinstance(declared, TupleShape) else results[0]


def misfit_of(op: Instruction, count: int) -> Exception | None:
    """The error where groups of `count` devices do not fit the shapes of a collective."""
    base = op.opcode.name.removesuffix("-start")
    shape = op.shape
    if op.opcode.name == "all-gather-start":
        shape = cast(TupleShape, shape).elements[1]
    shapes = shape.elements if isinstance(shape, TupleShape) else (shape,)
    name = f"{op.opcode.name} %{op.instruction_name}"
    dims = cast("Sequence[int]", getattr(op, "dimensions", ()))
    if base == "all-to-all" and (isinstance(shape, TupleShape) or not dims):
        if len(op.inputs) == count:
            return None
        return error("HLO0354", f"{name}: {len(op.inputs)} operands for a group of {count} devices")
    if base == "ragged-all-to-all":
        return _uneven(name, cast(ArrayShape, op.input_shapes[3]).element_count, count)
    for have, want in zip(op.input_shapes, shapes, strict=False):
        if not isinstance(have, ArrayShape) or not isinstance(want, ArrayShape):
            continue
        sizes = list(have.dimensions)
        if base in ("reduce-scatter", "all-to-all"):
            size, rest = divmod(sizes[dims[0]], count)
            if rest:
                return error(
                    "HLO0354",
                    f"{name}: dimension {dims[0]} of size {sizes[dims[0]]} cannot be split {count} ways",
                )
            sizes[dims[0]] = size if base == "reduce-scatter" else sizes[dims[0]]
        elif base == "all-gather":
            sizes[dims[0]] *= count
        if tuple(sizes) != want.dimensions:
            return _unlike(name, sizes, want)
    return None


def _uneven(name: str, slices: int, count: int) -> Exception | None:
    """The error where a ragged all-to-all has not as many slices for each device as for the others."""
    if not slices % count:
        return None
    return error("HLO0354", f"{name}: {slices} slices for a group of {count} devices")


def _unlike(name: str, sizes: Sequence[int], shape: ArrayShape) -> Exception:
    return error(
        "HLO0354",
        f"{name}: its devices give an array of sizes {list(sizes)}, its shape is {without_layout(shape)}",
        help="the replica groups or the numbers of replicas and partitions do not fit the shapes",
    )


def _whole(op: Instruction, results: Sequence[Value]) -> Value:
    """A collective's results as its value."""
    return as_declared(op, results, op.shape)


def _start_result(op: Instruction, results: Sequence[Value]) -> Value:
    """The results as the second part of a start's value."""
    return as_declared(op, results, cast(TupleShape, op.shape).elements[1])


def _reduced(op: Instruction, frame: Frame, computation: str, parts: Sequence[Array]) -> Array:
    """`parts` folded by a scalar computation, first to last."""
    total = parts[0]
    for part in parts[1:]:
        total = frame.call_elementwise(computation, [total, part])[0]
    return np.asarray(total, dtype=parts[0].dtype)


# ---------------------------------------------------------------- gather and reduce


def _gathering(op: AllGatherOp) -> Callable[[Sequence[Any], Frame], list[Value]]:
    meeting, dim = Meeting.of(op, kind="all-gather"), op.dimensions[0]

    def gather(inputs: Sequence[Any], frame: Frame) -> list[Value]:
        values, _ = meeting.exchange(frame, tuple(inputs))
        return [
            np.concatenate([value[k] for value in values], axis=dim) for k in range(len(inputs))
        ]

    return gather


@prepares("all-gather")
def all_gather(op: AllGatherOp, program: Program) -> Run:
    """The group's operands one after the other along a dimension."""
    gather = _gathering(op)
    return lambda inputs, frame: _whole(op, gather(inputs, frame))


@prepares("all-gather-start")
def all_gather_start(op: AllGatherOp, program: Program) -> Run:
    """`(operands, results)` of an all-gather."""
    gather = _gathering(op)
    return lambda inputs, frame: started(op, inputs, _start_result(op, gather(inputs, frame)))


@prepares("all-reduce", "all-reduce-start")
def all_reduce(op: AllReduceOp, program: Program) -> Run:
    """The group's operands folded element by element, in the order of the group."""
    meeting, computation = Meeting.of(op, kind="all-reduce"), op.to_apply

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        values, _ = meeting.exchange(frame, tuple(inputs))
        return _whole(
            op,
            [
                _reduced(op, frame, computation, [value[k] for value in values])
                for k in range(len(inputs))
            ],
        )

    return run


@prepares("reduce-scatter")
def reduce_scatter(op: ReduceScatterOp, program: Program) -> Run:
    """An all-reduce of which each member keeps its part along a dimension."""
    meeting, computation = Meeting.of(op, kind="reduce-scatter"), op.to_apply
    dim = op.dimensions[0]

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        values, position = meeting.exchange(frame, tuple(inputs))
        results: list[Value] = []
        for k in range(len(inputs)):
            parts = [
                part_of(value[k], dim, position, len(values), meeting.name) for value in values
            ]
            results.append(_reduced(op, frame, computation, parts))
        return _whole(op, results)

    return run


def part_of(array: Array, dim: int, position: int, count: int, name: str) -> Array:
    """Part `position` of `count` equal parts along `dim`. Raises `HloError` HLO0354."""
    size, rest = divmod(array.shape[dim], count)
    if rest:
        raise error(
            "HLO0354",
            f"{name}: dimension {dim} of size {array.shape[dim]} cannot be split {count} ways",
        )
    index: list[slice] = [slice(None)] * array.ndim
    index[dim] = slice(position * size, (position + 1) * size)
    return array[tuple(index)]


@prepares("collective-reduce")
def collective_reduce(op: CollectiveReduceOp, program: Program) -> Run:
    """The group's operands folded, for the root alone; zeros (no defined value) elsewhere.

    The root is the group's first member, or the one whose position the last operand gives.
    """
    meeting, computation = Meeting.of(op, kind="collective-reduce"), op.to_apply
    has_root = op.has_dynamic_root

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        values, position = meeting.exchange(frame, tuple(inputs))
        root = _root(inputs, len(values)) if has_root else 0
        results: list[Value] = []
        for k in range(len(inputs) - has_root):
            if position == root:
                parts = [value[k] for value in values]
                results.append(_reduced(op, frame, computation, parts))
            else:
                results.append(np.zeros_like(inputs[k]))
        return _whole(op, results)

    return run


def _root(inputs: Sequence[Any], count: int) -> int:
    return min(max(int(np.asarray(inputs[-1]).reshape(-1)[0]), 0), count - 1)


@prepares("collective-broadcast")
def collective_broadcast(op: CollectiveBroadcastOp, program: Program) -> Run:
    """The root's operands: the group's first member, or the one at the last operand's position.

    A device in no group gets zeros.
    """
    meeting, has_root = Meeting.of(op, kind="collective-broadcast"), op.has_dynamic_root

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        if not meeting.members(frame, leaves_out=True):
            return _whole(op, [np.zeros_like(x) for x in inputs[: len(inputs) - has_root]])
        values, _ = meeting.exchange(frame, tuple(inputs))
        root = _root(inputs, len(values)) if has_root else 0
        return _whole(op, values[root][: len(inputs) - has_root])

    return run


# ---------------------------------------------------------------- all to all


@prepares("all-to-all")
def all_to_all(op: AllToAllOp, program: Program) -> Run:
    """Part (array form) or operand (tuple form) i of every member goes to member i."""
    meeting = Meeting.of(op, kind="all-to-all")
    dim = op.dimensions[0] if op.dimensions else None
    is_tuple = isinstance(op.shape, TupleShape)

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        values, position = meeting.exchange(frame, tuple(inputs))
        count = len(values)
        if dim is not None and not is_tuple:
            parts = [part_of(value[0], dim, position, count, meeting.name) for value in values]
            return _whole(op, [np.concatenate(parts, axis=dim)])
        if any(len(value) != count for value in values):
            raise error(
                "HLO0354",
                f"{meeting.name}: {len(inputs)} operands for a group of {count} devices",
            )
        return _whole(op, [value[position] for value in values])

    return run


@prepares("ragged-all-to-all")
def ragged_all_to_all(op: RaggedAllToAllOp, program: Program) -> Run:
    """Rows of every member's input go where the sender says in the receiver's output.

    Operands: input, output, input_offsets, send_sizes, output_offsets, recv_sizes. The last four
    hold, member after member, the same number of slices for each.
    """
    meeting = Meeting.of(op, kind="ragged-all-to-all")

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        values, position = meeting.exchange(frame, tuple(inputs))
        result = np.array(inputs[1])
        for value in values:
            source: Array = value[0]
            input_offsets, send_sizes, output_offsets = (np.ravel(part) for part in value[2:5])
            problem = _uneven(meeting.name, len(send_sizes), len(values))
            if problem is not None:
                raise problem
            updates = len(send_sizes) // len(values)
            for k in range(position * updates, (position + 1) * updates):
                size, start, end = int(send_sizes[k]), int(input_offsets[k]), int(output_offsets[k])
                if (
                    min(size, start, end) < 0
                    or start + size > len(source)
                    or end + size > len(result)
                ):
                    raise error(
                        "HLO0354",
                        f"{meeting.name}: slice {k} ({size} rows from {start} to {end}) is out of bounds",
                    )
                result[end : end + size] = source[start : start + size]
        return result

    return run


# ---------------------------------------------------------------- this device


@evaluates("partition-id")
def partition_id(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """Number of this partition, u32[]."""
    return np.array(frame.partition, dtype=np.uint32)


@evaluates("replica-id")
def replica_id(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """Number of this replica, u32[]."""
    return np.array(frame.replica, dtype=np.uint32)
