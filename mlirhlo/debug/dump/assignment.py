"""Which value lies where in memory, as XLA's reports tell it: values, allocations, live ranges.

Made from the plan of a compiled module. A value is what an instruction defines at one place of its
shape; instructions that only pass it on are further positions of it. Numbers of values count in the
order in which instructions run.
Source: dumps reference, "Buffer assignment", "Live range".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import HANDS_ON, Calls, Memory, opcodes
from mlirhlo.formats.hlo_text import PrintOptions
from mlirhlo.formats.hlo_text.printer import ModulePrinter
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.planner import Values
from mlirhlo.lowering.plan.steps import Buffer, Tree

Index: TypeAlias = tuple[int, ...]

_TRANSPARENT = HANDS_ON - {"opt-barrier", "add-dependency"}
"""Instructions that hand values on and count as no use of them."""

_PASSING = opcodes(
    lambda row: row.free or row.calls is Calls.FUSED or row.memory is Memory.PASSED
) | {"copy", "reshape"}
"""Instructions whose result may be a buffer that held a value before."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place that holds a value."""

    computation: str
    name: str
    index: Index

    def __str__(self) -> str:
        return self.name + (f" {braces(self.index)}" if self.index else "")


@dataclass(eq=False, slots=True)
class HloValue:
    """What an instruction defines."""

    number: int
    op: Instruction
    name: str
    """Of the instruction, as it is printed."""
    computation: str
    index: Index
    shape: ArrayShape
    size: int
    buffer: Buffer
    is_phi: bool = False
    positions: list[tuple[str, str, Index]] = field(default_factory=list[tuple[str, str, Index]])
    uses: list[tuple[str, int, Index]] = field(default_factory=list[tuple[str, int, Index]])
    start: int = 0
    end: int = 0
    """Positions of the schedule between which it is alive, both included."""
    is_parameter: bool = False
    is_output: bool = False

    @property
    def position(self) -> Position:
        """Where it is defined."""
        return Position(self.computation, self.name, self.index)

    def __str__(self) -> str:
        index = braces(self.index) if self.index else ""
        phi = " (phi)" if self.is_phi else ""
        return f"<{self.number} {self.name}{index}{phi} @0>"


@dataclass(frozen=True, slots=True)
class Placed:
    """A value in an allocation."""

    value: HloValue
    offset: int


@dataclass(slots=True)
class Allocation:
    """A block of memory."""

    index: int
    size: int
    parameter: tuple[int, Index] | None = None
    """Number of the parameter, and where in its shape."""
    parameter_shape: str = ""
    output_shape: str = ""
    is_constant: bool = False
    is_output: bool = False
    is_temporary: bool = False
    placed: list[Placed] = field(default_factory=list[Placed])


@dataclass(frozen=True, slots=True)
class Assignment:
    """Everything the reports tell."""

    values: Sequence[HloValue]
    allocations: Sequence[Allocation]
    sequence: Sequence[Instruction]
    """Instructions in the order they run, those of loops in front of the loop."""
    printer: ModulePrinter

    def name_of(self, op: Instruction) -> str:
        """The name that an instruction is printed under."""
        return printed_name(self.printer, op)

    @property
    def entry(self) -> str:
        """Name of the entry computation."""
        return self.printer.module.entry.computation_name

    @property
    def total_bytes(self) -> int:
        """Bytes of all allocations."""
        return sum(a.size for a in self.allocations)


def braces(index: Index) -> str:
    """`{1,0}`."""
    return "{" + ",".join(map(str, index)) + "}"


def assign(module: ModuleOp, plan: Plan, values: Values) -> Assignment:
    """The assignment of a planned module."""
    return _Maker(HloModule(module), plan, values).make()


def instruction_names(module: ModuleOp) -> Callable[[Instruction], str]:
    """The names that instructions of a module are printed under."""
    return partial(printed_name, ModulePrinter(HloModule(module), PrintOptions()))


def printed_name(printer: ModulePrinter, op: Instruction) -> str:
    """The name of an instruction; passes leave some without one."""
    if printer.names is not None and (given := printer.names.get(id(op.results[0]))) is not None:
        return given
    return op.instruction_name or op.opcode.name


class _Maker:
    def __init__(self, module: HloModule, plan: Plan, values: Values) -> None:
        self.plan, self.entry = plan, module.entry
        self.root = module.entry.root
        self.printer = ModulePrinter(module, PrintOptions())
        *self.records, _ = values
        self.result_tree = values[-1][1]
        self.values: list[HloValue] = []
        self.current: dict[Buffer, HloValue] = {}
        """The last value written to a buffer."""
        self.by_buffer: dict[Buffer, list[HloValue]] = {}
        self.sequence: list[Instruction] = []
        self.order: dict[Instruction, int] = {}
        self.held: dict[Instruction, dict[Index, HloValue]] = {}

    def make(self) -> Assignment:
        for op, tree in self.records:
            if op in self.order:
                continue  # of a computation that is called again
            self.order[op] = len(self.sequence)
            self.sequence.append(op)
            self._positions(op, tree)
        for op in self.sequence:
            self._uses(op)
        self._results()
        allocations = self._allocations()
        placed = {id(p.value) for allocation in allocations for p in allocation.placed}
        # What nothing reads has no memory, such as the context of an asynchronous copy.
        values = [value for value in self.values if id(value) in placed]
        return Assignment(values, allocations, self.sequence, self.printer)

    def _name(self, op: Instruction) -> str:
        return printed_name(self.printer, op)

    def _positions(self, op: Instruction, tree: Tree) -> None:
        places = self.held[op] = {}
        passes = op.opcode.name in _PASSING
        for index, buffer, shape in _leaves(tree, op.shape):
            value = self.current.get(buffer)
            if value is None or not passes:
                value = self._define(op, index, buffer, shape)
            places[index] = value
            value.positions.append((_computation(op), self._name(op), index))

    def _define(self, op: Instruction, index: Index, buffer: Buffer, shape: ArrayShape) -> HloValue:
        is_entry = op.parent_op() is self.entry
        is_parameter = isinstance(op, ParameterOp)
        at = self.order[op]
        value = HloValue(
            len(self.values),
            op,
            self._name(op),
            _computation(op),
            index,
            shape,
            buffer.size,
            buffer,
            is_phi=is_parameter and not is_entry,
            start=0 if is_parameter and is_entry else at,
            end=at,
            is_parameter=is_parameter and is_entry,
        )
        self.values.append(value)
        self.current[buffer] = value
        self.by_buffer.setdefault(buffer.home or buffer, []).append(value)
        return value

    def _uses(self, op: Instruction) -> None:
        name, at = op.opcode.name, self.order[op]
        for number, operand in enumerate(op.inputs):
            producer = operand.owner
            if not isinstance(producer, Instruction):
                continue
            for index, value in self.held.get(producer, {}).items():
                value.end = max(value.end, at)
                if name in _TRANSPARENT:
                    continue
                value.uses.append((self._name(op), number, index))
        for value in self.held[op].values():
            value.end = max(value.end, at)

    def _results(self) -> None:
        last = len(self.sequence)
        for value in self.held.get(self.root, {}).values():
            value.is_output = True
            value.end = last
        for index, buffer, shape in _leaves(self.result_tree, self.root.shape):
            if (buffer.home or buffer) not in self.by_buffer:
                # A parameter or constant that is returned is copied there.
                copy = self._define(self.root, index, buffer, shape)
                copy.positions.append((_computation(self.root), self._name(self.root), index))
                copy.is_output, copy.end = True, last
        for value in self.values:
            if value.is_parameter:
                value.end = last

    # -------------------------------------------------------------- allocations

    def _allocations(self) -> list[Allocation]:
        plan, made = self.plan, list[Allocation]()
        for buffer in plan.constants:
            made.append(self._allocation(buffer, is_constant=True))
        shapes = dict(zip(map(id, plan.results), _array_shapes(plan.result_shape), strict=False))
        for buffer in plan.results:
            shape = shapes.get(id(buffer))
            text = "" if shape is None else shape.to_string(layout=False)
            made.append(self._allocation(buffer, is_output=True, output_shape=text))
        for buffer, place, shape in self._parameters():
            made.append(
                self._allocation(
                    buffer, parameter=place, parameter_shape=shape.to_string(layout=False)
                )
            )
        made.sort(key=lambda a: -a.size)
        if plan.arena_size:
            arena = Allocation(0, plan.arena_size, is_temporary=True)
            for buffer in plan.buffers:
                arena.placed += [Placed(v, buffer.offset) for v in self.by_buffer.get(buffer, ())]
            arena.placed.sort(key=lambda p: p.value.number)
            made.append(arena)
        for number, allocation in enumerate(made):
            allocation.index = number
        return made

    def _parameters(self) -> Iterator[tuple[Buffer, tuple[int, Index], ArrayShape]]:
        for number, (tree, shape) in enumerate(
            zip(self.plan.parameter_trees, self.plan.shapes, strict=True)
        ):
            for index, buffer, leaf in _leaves(tree, shape):
                yield buffer, (number, index), leaf

    def _allocation(
        self,
        buffer: Buffer,
        *,
        parameter: tuple[int, Index] | None = None,
        parameter_shape: str = "",
        output_shape: str = "",
        is_constant: bool = False,
        is_output: bool = False,
    ) -> Allocation:
        values = [Placed(v, 0) for v in self.by_buffer.get(buffer, ())]
        return Allocation(
            0,
            buffer.size,
            parameter,
            parameter_shape,
            output_shape,
            is_constant,
            is_output,
            placed=values,
        )


def _computation(op: Instruction) -> str:
    """Name of an instruction's computation."""
    parent = op.parent_op()
    return parent.computation_name if isinstance(parent, ComputationOp) else ""


def _leaves(
    tree: Tree, shape: Shape, index: Index = ()
) -> Iterator[tuple[Index, Buffer, ArrayShape]]:
    """Buffers of a value with their places in its shape."""
    if isinstance(tree, tuple):
        parts = shape.elements if isinstance(shape, TupleShape) else ()
        for number, (part, inner) in enumerate(zip(tree, parts, strict=False)):
            yield from _leaves(part, inner, (*index, number))
    elif isinstance(tree, Buffer):
        yield index, tree, shape if isinstance(shape, ArrayShape) else tree.shape


def _array_shapes(shape: Shape) -> Iterator[ArrayShape]:
    if isinstance(shape, TupleShape):
        for part in shape.elements:
            yield from _array_shapes(part)
    elif isinstance(shape, ArrayShape):
        yield shape
