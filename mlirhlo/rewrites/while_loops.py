"""What the passes over loops share: a loop's parts, and a loop of another state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

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
from mlirhlo.rewrites.rules import inherit


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
    name = old.instruction_name
    old.output.replace_all_uses_with(new.output)
    new.instruction_name = name
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
    loop.root.output.replace_all_uses_with(root.output)
    root.instruction_name = loop.root.instruction_name
    loop.root.detach()
    loop.root.erase()
    for read in list(loop.reads(loop.body)):
        if read.output.first_use is None:
            read.detach()
            read.erase()
    # Its backend configuration may name elements by their places.
    properties = {k: v for k, v in op.properties.items() if k != "backend_config"}
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
    name = op.instruction_name
    op.output.replace_all_uses_with(whole.output)
    whole.instruction_name = None
    new.instruction_name = name
    op.detach()
    op.erase()
