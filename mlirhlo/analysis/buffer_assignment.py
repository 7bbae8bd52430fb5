"""Where the values of a scheduled module are in memory: allocations, and the values in them by offset.

Entry parameters and constants have an allocation each, and so has every part of the result; what is no larger
and not alive at the same time goes into one of the latter. Scalars of functions of elements are thread-local.
All the rest is packed into one block. A module without a schedule is taken in the order as it stands.
Source: reference of the passes, "BufferAssignment", and XLA's dumps of it, whose text this prints.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mlirhlo.analysis.alias import Aliases, aliases
from mlirhlo.analysis.call_graph import Context, call_graph
from mlirhlo.analysis.dataflow import Position, Readers, Value, indices
from mlirhlo.analysis.heap import pack
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp, FusionOp, ParameterOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW

_POINTER_BYTES = 8
_ALIGNMENT = 16
_MOST_OUTPUTS = 256
"""Allocations of results that are tried for a value: of all that follow, none is likelier to be free."""

_MAX_SHAPE_TEXT, _SHORT_SHAPE_TEXT = 20_000, 200
"""Characters from which on a shape is shortened, and what then stands of it."""


def value_shape(value: Value) -> Shape:
    """Shape at the position that defines a value."""
    op, index = value
    shape = op.shape
    for at in index:
        assert isinstance(shape, TupleShape)
        shape = shape.elements[at]
    return shape


def value_bytes(value: Value) -> int:
    """Bytes of an array, or of a tuple's table of pointers."""
    shape = value_shape(value)
    if isinstance(shape, TupleShape):
        return _POINTER_BYTES * len(shape.elements)
    if not isinstance(shape, ArrayShape):
        return 0
    return shape.element_count * shape.element_type.byte_size


@dataclass(slots=True)
class Placed:
    """A buffer in an allocation."""

    values: tuple[Value, ...]
    bytes: int
    first: int
    """Moment of its first definition."""
    last: int
    """Moment of its last reader."""
    offset: int = 0


@dataclass(slots=True)
class Allocation:
    """One block of memory."""

    kind: str
    """As XLA says it: `constant`, `parameter 0, …`, `…maybe-live-out`, `thread-local`, `preallocated-temp`."""
    buffers: list[Placed] = field(default_factory=list[Placed])
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class BufferAssignment:
    """Allocations of one module."""

    allocations: Sequence[Allocation]
    aliases: Aliases
    order: Sequence[Instruction]
    """Instructions as they run; moments are indices of it."""

    @property
    def total_bytes(self) -> int:
        """Of all allocations."""
        return sum(a.bytes for a in self.allocations)

    @property
    def temporary_bytes(self) -> int:
        """Of the block for what is neither given nor a result."""
        return sum(a.bytes for a in self.allocations if a.kind == "preallocated-temp")

    def __str__(self) -> str:
        """As in XLA's `*-buffer-assignment.txt`."""
        lines = ["BufferAssignment:"]
        number = {
            value: k
            for k, value in enumerate(
                value for a in self.allocations for b in a.buffers for value in b.values
            )
        }
        for k, allocation in enumerate(self.allocations):
            lines.append(f"allocation {k}: size {allocation.bytes}, {allocation.kind}:")
            for placed in allocation.buffers:
                for value in placed.values:
                    op, index = value
                    at = "".join(f"{i}," for i in index).rstrip(",")
                    name = f"{op.instruction_name}{f'{{{at}}}' if index else ''}"
                    lines.append(
                        f" value: <{number[value]} {name} @0> (size={value_bytes(value)},"
                        f"offset={placed.offset}): {value_shape(value)}"
                    )
        lines += ["", f"Total bytes used: {self.total_bytes}"]
        return "\n".join(lines)


def assign_buffers(module: HloModule) -> BufferAssignment:
    """Allocations of `module` as it is now."""
    found = aliases(module)
    graph = call_graph(module.op)
    moments = dict(_moments(module.entry, found.sources.computations))
    end = len(moments)
    fused = {op.calls for op in module.instructions if isinstance(op, FusionOp)}
    entry = module.entry
    results = {found.at(entry.root, index) for index in indices(entry.root.shape)}
    readers = Readers()
    constants: list[Allocation] = []
    outputs: list[Allocation] = []
    parameters: list[Allocation] = []
    local: list[Allocation] = []
    rest: list[Placed] = []
    output_kind = f"output shape is |{_shortened(_plain(entry.root.shape))}|, maybe-live-out"
    for number, values in enumerate(found.buffers):
        size = max(map(value_bytes, values))
        if values[0][0] not in moments:
            computation = values[0][0].parent_op()
            assert isinstance(computation, ComputationOp)
            name = computation.computation_name
            if name not in fused and graph.context(name) in (Context.EMBEDDED, Context.BOTH):
                local.append(Allocation("thread-local", [Placed(values, size, 0, end)], size))
            continue
        placed = _placed(values, found.positions[number], size, moments, readers)
        given = [v for v in values if _is_entry_parameter(v, entry)]
        is_result = number in results
        if given:
            op, index = given[0]
            assert isinstance(op, ParameterOp)
            place = "{" + ",".join(map(str, index)) + "}"
            kind = f"parameter {op.parameter_number}, shape |{_plain(value_shape(given[0]))}| at ShapeIndex {place}"
            kind += ", maybe-live-out" if is_result else ""
            parameters.append(Allocation(kind, [placed], size))
        elif any(isinstance(op, ConstantOp) for op, _ in values):
            constants.append(Allocation("constant", [placed], size))
        elif is_result:
            placed.last = end
            outputs.append(Allocation(output_kind, [placed], size))
        elif size:
            rest.append(placed)
    temporary = _share(outputs, rest, found.sources.computations)
    found_allocations = [*constants, *outputs, *parameters, *local]
    if temporary:
        offsets, total = pack([(p.bytes, p.first, p.last) for p in temporary], _ALIGNMENT)
        for placed, offset in zip(temporary, offsets, strict=True):
            placed.offset = offset
        found_allocations.append(Allocation("preallocated-temp", temporary, total))
    return BufferAssignment(found_allocations, found, list(moments))


def _moments(
    computation: ComputationOp, by_name: Mapping[str, ComputationOp]
) -> Iterator[tuple[Instruction, int]]:
    """Instructions in the order they run, loops and calls before the instruction that has them."""
    seen: set[str] = set()
    counter = 0
    stack: list[tuple[ComputationOp, Iterator[Instruction]]] = [
        (computation, computation.instructions)
    ]
    pending: list[Instruction] = []
    while stack:
        _, instructions = stack[-1]
        op = next(instructions, None)
        if op is None:
            stack.pop()
            if pending:
                yield pending.pop(), counter
                counter += 1
            continue
        callees = [
            by_name[name]
            for name in (op.called_computations if op.calling_keys else ())
            if (op.opcode.name in CONTROL_FLOW or op.opcode.name == "async-start")
            and name in by_name
            and name not in seen
        ]
        if not callees:
            yield op, counter
            counter += 1
            continue
        seen.update(c.computation_name for c in callees)
        pending.append(op)
        stack.append((callees[0], (o for c in callees for o in c.instructions)))


def _placed(
    values: tuple[Value, ...],
    positions: tuple[Position, ...],
    size: int,
    moments: dict[Instruction, int],
    readers: Readers,
) -> Placed:
    first = min([moments[op] for op, _ in values if op in moments])
    reached = [op for op, _ in positions]
    for op, index in positions:
        reached += [user for user, _ in readers.of(op, index)]
    last = max([moments.get(op, 0) for op in reached])
    return Placed(values, size, first, max(first, last))


def _is_entry_parameter(value: Value, entry: ComputationOp) -> bool:
    return isinstance(value[0], ParameterOp) and value[0].parent_op() is entry


def _share(
    outputs: list[Allocation], rest: list[Placed], computations: Mapping[str, ComputationOp]
) -> list[Placed]:
    """Puts what fits into the results' allocations, the largest first; the others."""
    left: list[Placed] = []
    firsts = {id(a): [placed.first for placed in a.buffers] for a in outputs}
    for placed in sorted(rest, key=lambda p: (-p.bytes, p.first)):
        large_enough = (a for a in outputs if placed.bytes <= a.bytes)
        for allocation in islice(large_enough, _MOST_OUTPUTS):
            # Those that are there follow each other: only the neighbours can meet it.
            starts = firsts[id(allocation)]
            at = bisect_right(starts, placed.first)
            neighbours = allocation.buffers[max(at - 2, 0) : at + 2]
            met = [o for o in neighbours if placed.last >= o.first and o.last >= placed.first]
            if not met or all(writes_over(placed, other, computations) for other in met):
                allocation.buffers.insert(at, placed)
                starts.insert(at, placed.first)
                break
        else:
            left.append(placed)
    return sorted(left, key=lambda p: p.first)


def writes_over(one: Placed, other: Placed, computations: Mapping[str, ComputationOp]) -> bool:
    """Whether an instruction that reads one of them, element by element and as the last, makes the other."""
    early, late = (one, other) if one.first < other.first else (other, one)
    if early.last != late.first or early.bytes != late.bytes:
        return False
    op, index = late.values[0]
    read = set(early.values)
    if index or len(read) != 1:
        return False
    operands = [k for k, v in enumerate(op.inputs) if (v.owner, ()) in read]
    if not operands:
        return False
    if isinstance(op, FusionOp):
        fused = computations[op.calls]
        return all(is_read_in_place(fused, fused.parameters[k]) for k in operands)
    return bool(op.opcode.elementwise)


def is_read_in_place(fused: ComputationOp, parameter: Instruction) -> bool:
    """Whether a parameter reaches the results through element-wise instructions of its shape only.

    The kernel then reads no element of it after it wrote that element of any result.
    """
    work, seen = [parameter], {parameter}
    have = parameter.shape
    if not isinstance(have, ArrayShape):
        return False
    while work:
        op = work.pop()
        for use in op.output.uses:
            user = use.operation
            if not isinstance(user, Instruction) or user in seen:
                continue
            if isinstance(user, TupleOp) and user is fused.root:
                continue
            shape = user.shape
            if not user.opcode.elementwise or not isinstance(shape, ArrayShape):
                return False
            if shape.dimensions != have.dimensions:
                return False
            seen.add(user)
            work.append(user)
    return True


def _shortened(text: str) -> str:
    """A shape of thousands of elements by its first ones: each of its parts has an allocation that names it."""
    return text if len(text) <= _MAX_SHAPE_TEXT else f"{text[:_SHORT_SHAPE_TEXT]}..."


def _plain(shape: Shape) -> str:
    """A shape without its layout."""
    if isinstance(shape, TupleShape):
        return "(" + ", ".join(map(_plain, shape.elements)) + ")"
    return str(shape).split("{", 1)[0]
