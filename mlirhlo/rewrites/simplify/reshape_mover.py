"""`reshape-mover`: reshapes and transposes sink below element-wise instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    ComputationOp,
    ConstantOp,
    Instruction,
    ReshapeOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES
from mlirhlo.dialects.hlo.shapes import ArrayShape, default_layout
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import readers_of
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit

_MOVING = frozenset(
    cls for name, cls in OP_CLASSES.items() if cls.opcode.elementwise and name != "copy"
)
"""Classes of what rearrangements move behind."""


@dataclass(frozen=True)
class ReshapeMoverPass(HloPass):
    """Moves reshapes and transposes behind the element-wise instruction that reads them.

    Before and after:

        %a = f32[6] reshape(%x)   %b = f32[6] reshape(%y)   %s = f32[6] add(%a, %b)
          =>   %t = f32[2,3] add(%x, %y)   %s = f32[6] reshape(%t)

    All reshapes, or transposes, among the operands must be of the same kind; every other operand is a
    constant, or the broadcast of a scalar. A reshape that somebody else reads too stays where it is, unless
    all its users move. What moved moves on behind the next instruction, as XLA's does from run to run. Fused
    computations and control dependencies are left alone.
    Source: reference of the passes, "ReshapeMover".
    """

    name = "reshape-mover"

    fuel: int | None = None
    """At most so many instructions move."""
    single_step: bool = False
    """What moved stays where it is until the next run, as in XLA's pass."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Moves; whether anything was."""
        fused = module.known(HloModule.fused_computations)
        reading = _reading_rearrangements(module)
        moved = 0
        for computation in module.computations:
            if computation not in reading or computation.computation_name in fused:
                continue
            readers = reading[computation]
            made: set[Instruction] = set()  # each moves once, so that they come to an end
            while readers:
                candidates = _candidates([op for op in readers if op not in made])
                if self.fuel is not None:
                    candidates = candidates[: self.fuel - moved]
                moved += len(candidates)
                rearranged: list[SSAValue] = []
                for op in candidates:
                    new, last = _sink(op)
                    made.add(new)
                    rearranged.append(last.output)
                # Who was looked at in vain before may move together with those that read what moved.
                readers = [] if self.single_step else _readers_beside(rearranged)
        if moved:
            trace.rule_counts[self.name, "sink_below_elementwise"] += moved
        return moved > 0


def _reading_rearrangements(module: HloModule) -> dict[ComputationOp, list[Instruction]]:
    """Readers of reshapes and transposes that may move, by computation, in no order."""
    found: dict[ComputationOp, dict[Instruction, None]] = {}
    for op in module.candidates(ReshapeOp, TransposeOp):
        for user in readers_of(op.output):
            if type(user) in _MOVING:
                reader = cast(Instruction, user)
                found.setdefault(holder(reader), {})[reader] = None
    return {computation: list(ops) for computation, ops in found.items()}


def _readers_beside(values: list[SSAValue]) -> list[Instruction]:
    """Readers of these rearrangements, and of all others that they read."""
    found: dict[Instruction, None] = {}
    seen = set(values)
    for value in values:  # grows while it is walked
        for use in value.uses:
            if not isinstance(user := use.operation, Instruction) or user in found:
                continue
            found[user] = None
            new = [other for other in _rearranged(user) if other not in seen]
            seen.update(new)
            values += new
    return list(found)


def _candidates(instructions: list[Instruction]) -> list[Instruction]:
    """Instructions that move; none of their rearrangements has a user that does not."""
    found = {op: None for op in instructions if _is_candidate(op)}
    stay = [value for op in found for value in _rearranged(op) if _is_read_beside(value, found)]
    for value in stay:  # grows while it is walked
        for use in value.uses:
            user = use.operation
            if isinstance(user, Instruction) and user in found:
                del found[user]
                stay += _rearranged(user)
    return list(found)


def _rearranged(op: Instruction) -> list[SSAValue]:
    return [v for v in op.inputs if _is_rearranged(v) and not _is_scalar_beside(v, op)]


def _is_scalar_beside(value: SSAValue, op: Instruction) -> bool:
    """Whether it is a scalar for all elements, as select and clamp take them: it has no order to change."""
    return not _rank(value) and _rank(op.output) > 0


def _is_read_beside(value: SSAValue, found: dict[Instruction, None]) -> bool:
    """Whether others than these read it."""
    return any(reader not in found for reader in readers_of(value))


def _is_rearranged(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, (ReshapeOp, TransposeOp)) or owner.control_predecessors:
        return False
    before, after = shape_of(owner.operand.type), owner.shape
    if not isinstance(before, ArrayShape) or not isinstance(after, ArrayShape):
        return False
    return before.dimensions != after.dimensions or isinstance(owner, TransposeOp)


def _is_candidate(op: Instruction) -> bool:
    shape = op.shape
    if type(op) not in _MOVING or op.control_predecessors or not isinstance(shape, ArrayShape):
        return False
    if shape.is_dynamic or "sharding" in op.properties:
        return False
    rearranged_values = _rearranged(op)
    rearranged = [v.owner for v in rearranged_values]
    if not rearranged:
        return False
    first = rearranged[0]
    assert isinstance(first, ReshapeOp | TransposeOp)
    if not all(_same_kind(first, other) for other in rearranged):
        return False
    return all(v in rearranged_values or _is_trivial(v, shape) for v in op.inputs)


def _same_kind(one: Instruction, other: object) -> bool:
    if type(one) is not type(other):
        return False
    assert isinstance(other, Instruction)
    sizes = [
        s.dimensions for o in (one, other) for s in o.input_shapes if isinstance(s, ArrayShape)
    ]
    if sizes[0] != sizes[1]:
        return False
    return not isinstance(one, TransposeOp) or (
        isinstance(other, TransposeOp) and one.dimensions == other.dimensions
    )


def _is_trivial(value: SSAValue, shape: ArrayShape) -> bool:
    """A constant, the broadcast of a scalar, or a scalar beside arrays (of select and clamp)."""
    owner = value.owner
    here = shape_of(value.type)
    if not isinstance(here, ArrayShape):
        return False
    if not here.dimensions and shape.dimensions:
        return True
    if isinstance(owner, BroadcastOp):
        return not owner.dimensions
    return isinstance(owner, ConstantOp)


def _sink(op: Instruction) -> tuple[Instruction, Instruction]:
    """`op(rearrange(a), b) => rearrange(op(a, rearrange'(b)))`; the new `op` and its rearrangement."""
    first = _rearranged(op)[0].owner
    assert isinstance(first, ReshapeOp | TransposeOp)
    source = shape_of(first.operand.type)
    assert isinstance(source, ArrayShape)
    made: list[Instruction] = []
    operands: list[SSAValue] = []
    for value in op.inputs:
        owner = value.owner
        if _is_scalar_beside(value, op):
            operands.append(value)
        elif _is_rearranged(value):
            assert isinstance(owner, ReshapeOp | TransposeOp)
            operands.append(owner.operand)
        else:
            back = _back(value, first, source)
            made.append(back)
            operands.append(back.output)
    result = op.shape
    assert isinstance(result, ArrayShape)
    layout = source.layout or default_layout(source.rank)
    inner = ArrayShape(result.element_type, source.dimensions, (), layout)
    new = make(op.opcode.name, operands, inner, dict(op.properties))
    properties = {k: v for k, v in first.properties.items() if k == "dimensions"}
    last = make(first.opcode.name, [new], result, properties)
    for instruction in (*made, new, last):
        inherit(instruction, op)
    new.instruction_name = op.instruction_name
    before = [v.owner for v in op.inputs]
    rewriter = Rewriter(op)
    rewriter.replace(op, [*made, new, last])
    rewriter.erase_unread(*before)
    return new, last


def _rank(value: SSAValue) -> int:
    shape = shape_of(value.type)
    return shape.rank if isinstance(shape, ArrayShape) else 0


def _back(value: SSAValue, first: Instruction, source: ArrayShape) -> Instruction:
    """A constant or broadcast in the shape before the rearrangement."""
    here = shape_of(value.type)
    assert isinstance(here, ArrayShape)
    layout = source.layout or default_layout(source.rank)
    wanted = ArrayShape(here.element_type, source.dimensions, (), layout)
    owner = value.owner
    if isinstance(owner, BroadcastOp) and not owner.dimensions:
        return make("broadcast", [owner.operand], wanted, {"dimensions": integers(())})
    if isinstance(first, TransposeOp):
        order = first.dimensions
        inverse = tuple(order.index(d) for d in range(len(order)))
        return make("transpose", [value], wanted, {"dimensions": integers(inverse)})
    return make("reshape", [value], wanted)
