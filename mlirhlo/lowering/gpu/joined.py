"""Kernels as one: the fusion that computes what several instructions compute, loose or in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import append, close, create, make
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import detach, erase, new_block
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.fusion.building import properties_of_fusion
from mlirhlo.rewrites.rules import inherit

_KINDS = {"convolution": "kOutput", "dot": "kOutput", "reduce": "kInput"}
"""As HLO text says it, by opcode; `kLoop` where none of them is."""
_DISTANCE = 2000
"""Instructions between two kernels that may become one with several outputs."""


def arrays_of(op: Instruction) -> list[SSAValue]:
    """The arrays that a kernel gives: its result, of several the parts that are read."""
    if not isinstance(op.shape, TupleShape):
        return [op.output]
    parts: dict[int, SSAValue] = {}
    for use in op.output.uses:
        if isinstance(part := use.operation, GetTupleElementOp):
            parts.setdefault(part.index, part.output)
    return [parts[index] for index in sorted(parts)]


def is_in_parts(op: Instruction) -> bool:
    """Whether its result is one array, or a tuple that is read part by part, each by one instruction."""
    if not isinstance(op.shape, TupleShape):
        return True
    users = [use.operation for use in op.output.uses]
    return len(arrays_of(op)) == len(users)


@dataclass(slots=True, eq=False)
class Joined:
    """A fusion of several kernels that is in no module yet."""

    body: ComputationOp
    operands: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    """What its results, or the parts of its result, stand for."""
    shape: Shape
    kind: str
    main: Instruction
    """The last of the kernels."""

    def fusion(self, operands: Sequence[SSAValue], name: str | None = None) -> FusionOp:
        """The instruction that calls the body."""
        name_of_body = self.body.computation_name
        properties = properties_of_fusion(self.main, self.outputs, self.kind, name_of_body)
        return create(FusionOp, operands, type_of(self.shape), properties, name)


def join(
    bodies: Mapping[str, ComputationOp],
    members: Sequence[Instruction],
    outputs: Sequence[SSAValue],
) -> Joined:
    """The fusion of `members`, in their order, that gives `outputs`. Nothing is inserted."""
    body = _Body(bodies)
    for op in members:
        body.take(op)
    shapes = [shape_of(v.type) for v in outputs]
    root, shape = body.inner[outputs[0]], shapes[0]
    if len(outputs) > 1:
        shape = TupleShape(tuple(shapes))
        root = body.add(make("tuple", [body.inner[v] for v in outputs], shape, name="tuple"))
    body.drop_unread(root)
    opcodes = [cast(Instruction, op).opcode.name for op in body.block.ops]
    kind = next((_KINDS[name] for name in opcodes if name in _KINDS), "kLoop")
    computation = close("joined", body.block, root)
    return Joined(computation, body.operands, outputs, shape, kind, members[-1])


class _Body:
    """The instructions of a fusion as they are put together."""

    def __init__(self, bodies: Mapping[str, ComputationOp]) -> None:
        self.bodies, self.block = bodies, new_block()
        self.inner: dict[SSAValue, SSAValue] = {}
        """What stands for the values outside."""
        self.operands: list[SSAValue] = []
        self.names = NameUniquer(())

    def add(self, op: Instruction) -> SSAValue:
        """Puts an instruction to the end, under a name of its own."""
        if (name := op.instruction_name) is not None:
            op.instruction_name = self.names.unique(name)
        append(self.block, op)
        return op.output

    def take(self, op: Instruction) -> None:
        """Copies an instruction, or what is in a fusion."""
        for value in op.inputs:
            self._operand(value)
        if isinstance(op, FusionOp):
            results = self._inlined(op, self.bodies[op.calls])
        else:
            results = [self.add(_copy(op, self.inner))]
        if isinstance(op.shape, TupleShape) and isinstance(results[0].type, TupleType):
            results = [self._part(results[0], n, s) for n, s in enumerate(op.shape.elements)]
        if not isinstance(op.shape, TupleShape):
            (self.inner[op.output],) = results
            return
        for use in op.output.uses:
            part = cast(GetTupleElementOp, use.operation)
            self.inner[part.output] = results[part.index]

    def drop_unread(self, root: SSAValue) -> None:
        """Takes out what the root does not need: parts of a fusion's result that nothing reads, and their operands."""
        operands = dict(enumerate(self.operands))
        parameters: list[ParameterOp] = []
        op = self.block.last_op
        while op is not None:
            before = op.prev_op
            is_read = op.results[0] is root or op.results[0].first_use is not None
            if isinstance(op, ParameterOp):
                parameters.append(op)
                if not is_read:
                    del operands[op.parameter_number]
            if not is_read:
                erase(op)
            op = before
        numbers = {old: new for new, old in enumerate(operands)}
        for op in parameters:
            if op.parent is not None:
                op.properties["parameter_number"] = integer(numbers[op.parameter_number])
        self.operands = list(operands.values())

    def _operand(self, value: SSAValue) -> None:
        """Lets the body read a value, by a parameter where it is not computed in it."""
        if value in self.inner:
            return
        owner = value.owner
        if isinstance(owner, ConstantOp) and is_number(owner):
            self.inner[value] = self.add(_copy(owner, {}))
            return
        number = len(self.operands)
        properties = {"parameter_number": integer(number)}
        shape = shape_of(value.type)
        self.operands.append(value)
        self.inner[value] = self.add(
            make("parameter", [], shape, properties, name=f"param_{number}")
        )

    def _part(self, value: SSAValue, number: int, shape: Shape) -> SSAValue:
        return self.add(make("get-tuple-element", [value], shape, {"index": integer(number)}))

    def _inlined(self, op: FusionOp, body: ComputationOp) -> list[SSAValue]:
        values: dict[SSAValue, SSAValue] = {}
        root = body.root
        for old in body.instructions:
            if isinstance(old, ParameterOp):
                values[old.output] = self.inner[op.inputs[old.parameter_number]]
            elif old is root and isinstance(old, TupleOp):
                return [values[v] for v in old.inputs]
            else:
                values[old.output] = self.add(_copy(old, values))
        return [values[root.output]]


def is_number(op: ConstantOp) -> bool:
    """Whether a constant is one number that is known."""
    literal = op.literal
    shape = op.shape
    known = literal is not None and not literal.is_elided
    return known and isinstance(shape, ArrayShape) and shape.element_count == 1


def _copy(op: Instruction, values: Mapping[SSAValue, SSAValue]) -> Instruction:
    copy = clone_instruction(op, values, op.instruction_name)
    inherit(copy, op)
    return copy


def remove(op: Instruction) -> None:
    """Takes an instruction that nothing reads out of its computation."""
    detach(op)
    erase(op)


def is_before(a: Operation, b: Operation) -> bool:
    """Whether `a` runs before `b`, both in one computation."""
    return a.parent is b.parent and a.is_before_in_block(b)


def last_part(op: Operation) -> Operation:
    """The last get-tuple-element that directly follows an op and reads it; the op where there is none."""
    last = op
    while isinstance(last.next_op, GetTupleElementOp) and last.next_op.operand is op.results[0]:
        last = last.next_op
    return last


def between(first: Instruction, last: Instruction) -> list[Operation] | None:
    """Instructions from one to another that need the first; None where the other needs one of them."""
    own = {first, *(v.owner for v in arrays_of(first))}
    needing: dict[Operation, None] = {}
    op: Operation | None = first.next_op
    for _ in range(_DISTANCE):
        if op is None:
            return None
        if op not in own:
            needs = any(v.owner in needing for v in op.operands)
            if op is last:
                return None if needs else list(needing)
            if needs or any(v.owner in own for v in op.operands):
                needing[op] = None
        op = op.next_op
    return None
