"""`reshape-mover`: reshapes and transposes sink below element-wise instructions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    ComputationOp,
    ConstantOp,
    Instruction,
    ReshapeOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, default_layout
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit


@dataclass(frozen=True)
class ReshapeMoverPass(HloPass):
    """Moves reshapes and transposes behind the element-wise instruction that reads them.

    Before and after:

        %a = f32[6] reshape(%x)   %b = f32[6] reshape(%y)   %s = f32[6] add(%a, %b)
          =>   %t = f32[2,3] add(%x, %y)   %s = f32[6] reshape(%t)

    All reshapes, or transposes, among the operands must be of the same kind; every other operand is a
    constant, or the broadcast of a scalar. A reshape that somebody else reads too stays where it is, unless
    all its users move. Each instruction moves once: what could move on does in the next run. Fused
    computations and control dependencies are left alone.
    Source: reference of the passes, "ReshapeMover".
    """

    name = "reshape-mover"

    fuel: int | None = None
    """At most so many instructions move."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Moves; whether anything was."""
        fused = module.known(HloModule.fused_computations)
        reading = _reading_rearrangements(module)
        left = self.fuel
        changed = False
        for computation in module.computations:
            if computation not in reading or computation.computation_name in fused:
                continue
            candidates = _candidates(reading[computation])
            if left is not None:
                candidates = candidates[:left]
                left -= len(candidates)
            for op in candidates:
                _sink(op)
            if candidates:
                trace.rule_counts[self.name, "sink_below_elementwise"] += len(candidates)
                changed = True
        return changed


def _reading_rearrangements(module: HloModule) -> dict[ComputationOp, list[Instruction]]:
    """Readers of reshapes and transposes, by computation, in no order."""
    found: dict[ComputationOp, dict[Instruction, None]] = {}
    for op in module.candidates(ReshapeOp, TransposeOp):
        for use in op.output.uses:
            if isinstance(user := use.operation, Instruction):
                computation = user.parent_op()
                assert isinstance(computation, ComputationOp)
                found.setdefault(computation, {})[user] = None
    return {computation: list(ops) for computation, ops in found.items()}


def _candidates(instructions: list[Instruction]) -> list[Instruction]:
    """Instructions that move; none of their rearrangements has a user that does not."""
    found = {op: None for op in instructions if _is_candidate(op)}
    while True:
        wrong = [
            op
            for op in found
            for value in op.inputs
            if _is_rearranged(value) and any(use.operation not in found for use in value.uses)
        ]
        if not wrong:
            return list(found)
        for op in wrong:
            found.pop(op, None)


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
    if not op.opcode.elementwise or op.control_predecessors or not isinstance(shape, ArrayShape):
        return False
    if shape.is_dynamic or "sharding" in op.properties or op.opcode.name == "copy":
        return False
    rearranged = [v.owner for v in op.inputs if _is_rearranged(v)]
    if not rearranged:
        return False
    first = rearranged[0]
    assert isinstance(first, ReshapeOp | TransposeOp)
    if not all(_same_kind(first, other) for other in rearranged):
        return False
    return all(_is_rearranged(v) or _is_trivial(v, shape) for v in op.inputs)


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


def _sink(op: Instruction) -> None:
    """`op(rearrange(a), b) => rearrange(op(a, rearrange'(b)))`."""
    first = next(v.owner for v in op.inputs if _is_rearranged(v))
    assert isinstance(first, ReshapeOp | TransposeOp)
    source = shape_of(first.operand.type)
    assert isinstance(source, ArrayShape)
    made: list[Instruction] = []
    operands: list[SSAValue] = []
    for value in op.inputs:
        owner = value.owner
        if _is_rearranged(value):
            assert isinstance(owner, ReshapeOp | TransposeOp)
            operands.append(owner.operand)
        elif not _rank(value) and _rank(op.output):
            operands.append(value)
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
