"""Tuples with some of their parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.annotations import OriginAttr
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.ops import TupleOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import put_operand

ShapeIndex: TypeAlias = tuple[int, ...]
InstructionT = TypeVar("InstructionT", bound=Instruction)


def insert_before(place: Operation, op: InstructionT) -> InstructionT:
    """Puts a detached instruction before `place`."""
    block = place.parent
    assert block is not None
    block.insert_op_before(op, place)
    return op


def inherit_from(op: Instruction, value: SSAValue) -> None:
    """Gives a new instruction the metadata and sharding of the one that it stands for."""
    owner = value.owner
    for key in ("metadata", "sharding"):
        found = owner.properties.get(key) if isinstance(owner, Instruction) else None
        if found is not None:
            op.properties[key] = found


def keep_origin(properties: MutableMapping[str, Attribute], kept: Sequence[int] | int) -> None:
    """Lets properties tell where some elements of a tuple come from that told it of the tuple; or one element.

    An origin that has no part for each element goes.
    """
    attribute = properties.get("origin")
    if not isinstance(attribute, OriginAttr) or attribute.data.synthetic_call:
        return
    tree = attribute.data.tree
    places = [kept] if isinstance(kept, int) else kept
    if not isinstance(tree, tuple) or max(places, default=0) >= len(tree):
        del properties["origin"]
        return
    left = tree[kept] if isinstance(kept, int) else tuple(tree[k] for k in kept)
    properties["origin"] = OriginAttr(replace(attribute.data, tree=left))


def replace_parts(
    value: SSAValue,
    wanted: Collection[ShapeIndex],
    place: Operation,
    part: Callable[[ShapeIndex, SSAValue], SSAValue],
    index: ShapeIndex = (),
) -> SSAValue:
    """`value` with `part(index, old)` at every index of `wanted`; what that needs stands before `place`."""
    if index in wanted:
        return part(index, value)
    shape = shape_of(value.type)
    if not isinstance(shape, TupleShape) or not any(w[: len(index)] == index for w in wanted):
        return value
    owner = value.owner
    parts: list[SSAValue] = []
    shapes: list[Shape] = []
    for number, element in enumerate(shape.elements):
        if isinstance(owner, TupleOp):
            found = owner.inputs[number]
        else:
            properties = {"index": integer(number)}
            got = insert_before(place, make("get-tuple-element", [value], element, properties))
            found = got.output
        replaced = replace_parts(found, wanted, place, part, (*index, number))
        parts.append(replaced)
        shapes.append(shape_of(replaced.type))
    made = insert_before(place, make("tuple", parts, TupleShape(tuple(shapes))))
    inherit_from(made, value)
    if isinstance(owner, TupleOp) and value.has_one_use():
        made.instruction_name, owner.instruction_name = owner.instruction_name, None
        if waits := owner.control_predecessors:
            made.operands = [*parts, *waits]
            made.properties[CONTROL_PREDECESSORS] = owner.properties.pop(CONTROL_PREDECESSORS)
            owner.operands = owner.operands[: -len(waits)]
    return made.output


def set_operand(user: Operation, number: int, value: SSAValue) -> None:
    """Lets `user` read `value`; a tuple that nobody reads any more goes."""
    old = user.operands[number].owner
    put_operand(user, number, value)
    work = [old]
    while work:
        op = work.pop()
        if not isinstance(op, TupleOp) or op.output.first_use is not None or op.parent is None:
            continue
        if not op.control_predecessors:
            work += [part.owner for part in op.inputs]
            op.detach()
            op.erase()
