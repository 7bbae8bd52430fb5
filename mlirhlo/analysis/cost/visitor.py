"""The walk: defaults, the rule of the opcode, the time, the sum; fusions and calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from mlirhlo.analysis.cost.counts import (
    BYTES,
    FLOPS,
    SECONDS,
    TRANSCENDENTALS,
    UTILIZATION,
    Counts,
    f32,
    operand_bytes,
    operand_utilization,
    result_bytes,
)
from mlirhlo.analysis.trip_count import known_trip_count
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, TupleShape, leaves
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, Calls, opcodes

Rule: TypeAlias = "Callable[[Visitor, Instruction, Counts], None]"

RULES: dict[str, Rule] = {}
"""By opcode; no rule: the defaults. `rules` and `fusion` fill it when they are imported."""

NO_TIME = CONTROL_FLOW | opcodes(
    lambda row: (row.free and row.name not in ("opt-barrier", "tuple")) or row.calls is Calls.TARGET
)
"""Opcodes whose time is not that of their slowest need: none, unknown, or the sum of what they call."""

POINTER_BYTES = 8


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Decorator: the function changes the defaults of these opcodes."""

    def register(function: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = function
        return function

    return register


@dataclass(frozen=True, slots=True)
class Options:
    """How to count."""

    per_second: Mapping[str, float] = field(default_factory=dict[str, float])
    """Rates by key: `{"flops": 1e11, "bytes accessed": 2e10}`; what is not there takes no time."""
    trip_counts: bool = False
    """Counts loops as often as they run, where `known_trip_count` says so; XLA counts one round."""
    count_multiple_input_accesses: bool = False
    """Counts what broadcast and reduce-window read as often as they read it."""
    gathers_read_what_they_take: bool = False
    """Counts of what a gather in a fusion reads as much as it gives, as outside of one; XLA counts all of it."""
    immediate_constant_elements: int = 1
    """Greatest constant in a fusion that takes no memory access."""
    custom_call: Callable[[Instruction, Counts], bool] | None = None
    """Counts a custom call it knows and returns True; else it is -1, as in XLA."""


def elements_of(shape: ArrayShape) -> int:
    """Elements of an array; none where a size is not bounded."""
    return 0 if UNBOUNDED in shape.dimensions else shape.element_count


def size_bytes(shape: Shape) -> int:
    """Bytes of an array, the sizes of a dynamic one included; of a tuple those of its table of
    pointers; of others none."""
    if isinstance(shape, ArrayShape):
        bits = shape.layout.element_size_bits if shape.layout is not None else 0
        elements = elements_of(shape)
        size = -(-elements * bits // 8) if bits else elements * shape.element_type.byte_size
        return size + 4 * shape.rank if shape.is_dynamic else size
    if isinstance(shape, TupleShape):
        return POINTER_BYTES * len(shape.elements)
    return 0


@dataclass(slots=True)
class Visitor:
    """Counts computations."""

    computations: Mapping[str, ComputationOp]
    options: Options
    instructions: dict[Instruction, Counts] = field(default_factory=dict[Instruction, Counts])
    _without_rule: dict[tuple[object, ...], Counts] = field(
        default_factory=dict[tuple[object, ...], Counts]
    )
    """Counts that follow from the opcode and the types, by these."""
    _sums: dict[str, Counts] = field(default_factory=dict[str, Counts])
    _counted: set[str] = field(default_factory=set[str])

    def entry(self, computation: ComputationOp) -> Counts:
        """The sum over the entry computation."""
        self.prepare(computation)
        return self.computation(computation)

    def prepare(self, computation: ComputationOp) -> None:
        """Counts what a computation calls."""
        for callee in self._callees(computation):
            self.called(callee)

    def computation(self, computation: ComputationOp) -> Counts:
        """The sum over a computation whose callees are counted."""
        root = computation.root
        instructions = [op for op in instruction_list(computation) if op is not root]
        total = Counts()
        # XLA's order, which the rounding of sums shows: what leads nowhere, then the root's.
        for op in post_order([*instructions, root]):
            total.add_all(self.instruction(op))
        return total

    def called(self, name: str) -> Counts:
        """The sum over a computation that is called; found once.

        What it calls is counted before it, on a stack of our own: calls nest as deep as a program likes.
        """
        stack = [] if name in self._sums else [name]
        while stack:
            computation = self.computations[stack[-1]]
            if stack[-1] not in self._sums:
                # Guards against a computation that calls itself, which the verifier reports.
                self._sums[stack[-1]] = Counts()
                stack += self._callees(computation)
                continue
            done = stack.pop()
            if done not in self._counted:
                self._counted.add(done)
                self._sums[done] = self.computation(computation)
        return self._sums[name]

    def _callees(self, computation: ComputationOp) -> list[str]:
        """Computations it calls that are not counted yet."""
        return [
            callee
            for op in computation.instructions
            if op.calling_keys
            for callee in op.called_computations
            if callee not in self._sums and callee in self.computations
        ]

    def instruction(self, op: Instruction) -> Counts:
        """One instruction, with what it calls."""
        name = op.opcode.name
        found = RULES.get(name)
        # Types live as long as the module.
        key = (name, id(op.output.type), *[id(value.type) for value in op.inputs])
        if found is None and (known := self._without_rule.get(key)) is not None:
            counts = self.instructions[op] = known.copy()
            return counts
        values: dict[str, float] = {}
        shape = op.shape
        if type(shape) is ArrayShape:
            size = size_bytes(shape)
        else:
            size = sum(size_bytes(leaf) for _, leaf in leaves(shape))
        total = values[result_bytes()] = f32(size)
        for number, operand in enumerate(op.input_shapes):
            size = size_bytes(operand)
            total = f32(total + size)
            values[operand_bytes(number)] = f32(size)
            values[operand_utilization(number)] = 1.0
        values[BYTES] = total
        counts = Counts(values)
        if found is not None:
            found(self, op, counts)
        elif op.opcode.flops or op.opcode.transcendental:
            _elementwise(op, counts)
        if name not in NO_TIME:
            self._time(counts)
        if found is None:
            self._without_rule[key] = counts.copy()
        self.instructions[op] = counts
        return counts

    def _time(self, counts: Counts) -> None:
        seconds = 0.0
        for key, value in counts.values.items() if self.options.per_second else ():
            if key != SECONDS:
                seconds = max(seconds, value / self.options.per_second.get(key, inf))
        counts.values[SECONDS] = f32(seconds) if seconds else 0.0

    def rounds(self, op: Instruction) -> int:
        """How often a loop is counted."""
        rounds = known_trip_count(op) if self.options.trip_counts else None
        return 1 if rounds is None else rounds


def _elementwise(op: Instruction, counts: Counts) -> None:
    shape = op.shape
    elements = elements_of(shape) if isinstance(shape, ArrayShape) else 0
    if op.opcode.transcendental:
        counts.set(TRANSCENDENTALS, elements)
    elif op.opcode.flops:
        counts.set(FLOPS, elements * op.opcode.flops)


def per_application(called: Counts, times: float, counts: Counts) -> None:
    """Adds a function of elements, applied so many times: operations and time, no bytes."""
    for key, value in called.values.items():
        if not key.startswith((BYTES, UTILIZATION)):
            counts.add(key, f32(value * f32(times)))


def log2_ceiling(value: int) -> int:
    """Least k with 2**k >= value."""
    return (value - 1).bit_length() if value > 1 else 0


def half(size: int) -> float:
    """Half of a matrix; the part that is a triangle."""
    return f32(size / 2)
