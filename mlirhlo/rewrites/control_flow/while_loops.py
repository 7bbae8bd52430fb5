"""What the passes over loops share: a loop's parts, and a loop of another state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    GetTupleElementOp,
    Instruction,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import put_operand, read_instead, replace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.tuple_parts import insert_before, keep_origin


@dataclass(slots=True)
class Loop:
    """A loop whose state is a tuple, made by a `tuple` in its body, and read by `get-tuple-element`
    only in body and condition."""

    op: WhileOp
    body: ComputationOp
    condition: ComputationOp
    root: TupleOp
    """Of the body."""

    @property
    def shape(self) -> TupleShape:
        """Of the state."""
        shape = self.op.shape
        assert isinstance(shape, TupleShape)
        return shape

    def reads(self, computation: ComputationOp) -> list[GetTupleElementOp]:
        """What a computation reads of its parameter."""
        (parameter,) = computation.parameters
        users = [use.operation for use in parameter.output.uses]
        return [user for user in users if isinstance(user, GetTupleElementOp)]

    def is_invariant(self, index: int) -> bool:
        """Whether the body hands the element on as it is."""
        owner = self.root.inputs[index].owner
        return (
            isinstance(owner, GetTupleElementOp)
            and owner.index == index
            and isinstance(owner.operand.owner, ParameterOp)
        )


def understood(
    op: Instruction, computations: Mapping[str, ComputationOp], calls: Mapping[str, int]
) -> Loop | None:
    """The loop, if passes may change its state: one caller, plain reads, no control dependencies."""
    if not isinstance(op, WhileOp) or CONTROL_PREDECESSORS in op.properties:
        return None
    body, condition = computations[op.body], computations[op.condition]
    root = body.root
    if not isinstance(root, TupleOp) or not isinstance(op.shape, TupleShape):
        return None
    if calls.get(op.body, 0) != 1 or calls.get(op.condition, 0) != 1:
        return None
    loop = Loop(op, body, condition, root)
    for computation in (body, condition):
        (parameter,) = computation.parameters
        users = [use.operation for use in parameter.output.uses]
        if len(loop.reads(computation)) != len(users):
            return None
        if any(CONTROL_PREDECESSORS in user.properties for user in users):
            return None
    if any("sharding" in o.properties for o in (op, root, *body.parameters)):
        return None
    return loop


def count_calls(module: HloModule) -> dict[str, int]:
    """How many references there are to each computation."""
    counts: dict[str, int] = {}
    for op in module.calling():
        for name in op.called_computations:
            counts[name] = counts.get(name, 0) + 1
    return counts


def part(value: SSAValue, index: int, shape: Shape) -> Instruction:
    """A detached `get-tuple-element`."""
    return make("get-tuple-element", [value], shape, {"index": integer(index)})


def retype_parameter(computation: ComputationOp, shape: Shape) -> ParameterOp:
    """Gives the one parameter of a computation another shape; its users are left as they are.

    It stands first from then on: what reads the new one may be put in front of any instruction.
    """
    (old,) = computation.parameters
    properties = {k: v for k, v in old.properties.items() if k in ("metadata", "parameter_number")}
    new = make("parameter", (), shape, properties, name=old.instruction_name)
    assert isinstance(new, ParameterOp)
    block = old.parent
    assert block is not None
    assert block.first_op is not None
    block.insert_op_before(new, block.first_op)
    replace(old.output, new.output)
    old.detach()
    old.erase()
    return new


def keep_elements(loop: Loop, kept: Sequence[int]) -> None:
    """Drops the other elements of the state. Nobody may read what goes, but to hand it on.

    What read the loop's result reads a smaller one; a use of the whole gets a tuple in which what
    went is the element of the initial value, which it always was.
    """
    op = loop.op
    shape = TupleShape(tuple(loop.shape.elements[k] for k in kept))
    place = {old: new for new, old in enumerate(kept)}
    block = op.parent
    assert block is not None
    parts: list[Instruction] = []
    for k in range(len(loop.shape.elements)):
        element = part(op.inputs[0], k, loop.shape.elements[k])
        block.insert_op_before(element, op)
        parts.append(element)
    start = make("tuple", [parts[k] for k in kept], shape)
    inherit(start, op)
    block.insert_op_before(start, op)
    for computation in (loop.body, loop.condition):
        reads = loop.reads(computation)
        retype_parameter(computation, shape)
        for read in reads:
            if read.index in place:
                read.properties["index"] = integer(place[read.index])
    body_block = loop.root.parent
    assert body_block is not None
    root = make(
        "tuple",
        [loop.root.inputs[k] for k in kept],
        shape,
        {k: v for k, v in loop.root.properties.items() if k == "metadata"},
        name=loop.root.instruction_name,
    )
    body_block.insert_op_before(root, loop.root)
    read_instead(loop.root.output, root.output)
    loop.root.detach()
    loop.root.erase()
    for read in list(loop.reads(loop.body)):
        if read.output.first_use is None:
            read.detach()
            read.erase()
    # Its backend configuration may name elements by their places.
    properties = {k: v for k, v in op.properties.items() if k != "backend_config"}
    keep_origin(properties, kept)
    new = make("while", [start], shape, properties, name=op.instruction_name)
    block.insert_op_before(new, op)
    results: list[SSAValue] = []
    for k, element in enumerate(parts):
        if k in place:
            found = part(new.output, place[k], loop.shape.elements[k])
            block.insert_op_before(found, op)
            results.append(found.output)
        else:
            results.append(element.output)
    whole = make("tuple", results, loop.shape)
    block.insert_op_before(whole, op)
    read_instead(op.output, whole.output)
    new.instruction_name = op.instruction_name
    op.detach()
    op.erase()


def has_nested_state(op: Instruction) -> bool:
    """Whether the state is a tuple that has tuples among its elements."""
    shape = op.shape
    return isinstance(shape, TupleShape) and any(isinstance(e, TupleShape) for e in shape.elements)


def flatten_state(op: WhileOp, body: ComputationOp, condition: ComputationOp) -> None:
    """Makes the state one tuple of all arrays and tokens; nobody else may call body and condition.

    What read the state, a parameter or the result, reads tuples that are built of its parts.
    """
    block = op.parent
    assert block is not None
    start = _flat(op.inputs[0], op)
    for computation in (body, condition):
        (old,) = computation.parameters
        readers = [(use.operation, use.index) for use in old.output.uses]
        state = retype_parameter(computation, start.shape)
        place = state.next_op
        assert place is not None
        whole = _nested(op.shape, _parts(state.output, place), place)
        for reader, index in readers:
            put_operand(reader, index, whole)
    end = body.terminator
    end.operands[0] = _flat(end.root, end).output
    # Its backend configuration may name elements by their places.
    properties = {k: v for k, v in op.properties.items() if k not in ("backend_config", "origin")}
    new = make("while", [start], start.shape, properties)
    block.insert_op_before(new, op)
    whole = _nested(op.shape, _parts(new.output, op), op)
    read_instead(op.output, whole)
    new.instruction_name = op.instruction_name
    op.detach()
    op.erase()


def _flat(value: SSAValue, place: Operation) -> Instruction:
    """A tuple of all arrays and tokens in a tuple, before `place`."""
    leaves: list[SSAValue] = []

    def collect(value: SSAValue) -> None:
        for element in _parts(value, place):
            if isinstance(shape_of(element.type), TupleShape):
                collect(element)
            else:
                leaves.append(element)

    collect(value)
    shape = TupleShape(tuple(shape_of(leaf.type) for leaf in leaves))
    return insert_before(place, make("tuple", leaves, shape))


def _parts(value: SSAValue, place: Operation) -> list[SSAValue]:
    """The elements of a tuple, read before `place`."""
    shape = shape_of(value.type)
    assert isinstance(shape, TupleShape)
    reads = [part(value, k, element) for k, element in enumerate(shape.elements)]
    return [insert_before(place, read).output for read in reads]


def _nested(shape: Shape, leaves: list[SSAValue], place: Operation) -> SSAValue:
    """A value of this shape, built before `place` of the first of `leaves`, which it takes away."""
    if not isinstance(shape, TupleShape):
        return leaves.pop(0)
    elements = [_nested(element, leaves, place) for element in shape.elements]
    return insert_before(place, make("tuple", elements, shape)).output
