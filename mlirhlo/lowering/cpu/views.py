"""Slices that are read where they are: a dynamic-slice of neighbours in memory is a place, no copy.

What a kernel copies out of memory that nobody writes to any more (a parameter, a constant, what one kernel
alone writes) may as well be read there. The kernel's step becomes a `Slice`, which only computes the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import (
    BitcastConvertOp,
    ComputationOp,
    ConstantOp,
    DynamicSliceOp,
    FusionOp,
    ParameterOp,
    ReshapeOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    While,
    all_steps,
)


def read_in_place(
    steps: list[Step],
    instructions: Mapping[str, Instruction],
    computations: Mapping[str, ComputationOp],
    results: Sequence[Buffer],
) -> None:
    """Puts slices in place of copies among the steps, where nothing stands against it."""
    changed = set(results)
    changed.update(b.alias for b in results if b.alias is not None)
    written: dict[Buffer, int] = {}
    _count(steps, written, changed)
    known: dict[str, Sequence[tuple[int, int | SSAValue, int, int]] | None] = {}

    def read_there(step: Kernel) -> Slice | None:
        if len(step.writes) != 1:
            return None
        (target,) = step.writes
        source = step.reads[0] if step.reads else target
        is_fixed = source.parameter is not None or source.literal is not None
        is_fixed |= source.in_arena and written.get(source) == 1
        if not is_fixed or source in changed:
            return None
        if not target.in_arena or target in changed or written[target] != 1:
            return None
        if step.name not in known:
            known[step.name] = _starts(instructions[step.name], computations)
        starts = known[step.name]
        if starts is None:
            return None
        target.part_of = source
        places = [
            (first if isinstance(first, int) else step.reads[number], limit, stride)
            for number, first, limit, stride in starts
        ]
        return Slice(source, target, places)

    lists = [steps]
    while lists:
        listed = lists.pop()
        for at, step in enumerate(listed):
            if isinstance(step, While):
                lists += [step.body, step.condition]
            elif isinstance(step, Branch):
                lists += reversed(step.branches)
            elif isinstance(step, Kernel):
                listed[at] = read_there(step) or step


def _count(steps: Sequence[Step], written: dict[Buffer, int], changed: set[Buffer]) -> None:
    """How many steps write each buffer; `changed` gets what is copied or leaves machine code."""
    for step in all_steps(steps):
        match step:
            case Kernel():
                for buffer in step.writes:
                    written[buffer] = written.get(buffer, 0) + 1
            case Callback():
                changed.update((*step.reads, *step.writes))
            case Copy():
                changed.add(step.target)
                if step.source.in_arena:
                    changed.add(step.source)
            case While():
                changed.add(step.test)
            case Branch():
                changed.add(step.selector)
            case Slice() | Repeat():
                pass


def _starts(
    op: Instruction, computations: Mapping[str, ComputationOp]
) -> Sequence[tuple[int, int | SSAValue, int, int]] | None:
    """Where a slice of an instruction's first operand begins: for every dimension that is cut the operand
    that says it or a number, the greatest start, and the bytes of a step. None for anything else.
    """
    operands: list[SSAValue] = list(op.inputs)
    if isinstance(op, FusionOp):
        computation = computations[op.calls]
        operands = [p.output for p in computation.parameters]
        op = computation.root
        while isinstance(op, ReshapeOp | BitcastConvertOp):
            inner = op.inputs[0].owner
            if not isinstance(inner, Instruction) or isinstance(inner, ParameterOp):
                return None
            op = inner
    if not isinstance(op, DynamicSliceOp) or op.inputs[0] is not operands[0]:
        return None
    source, *starts = op.inputs
    whole, part = (cast(ArrayShape, shape_of(v.type)) for v in (source, op.output))
    if any(physical_order(s) != tuple(range(s.rank)) for s in (whole, part)):
        return None
    sizes, taken = whole.dimensions, part.dimensions
    cut = [d for d, (n, m) in enumerate(zip(sizes, taken, strict=True)) if n != m]
    # Neighbours: one element of every dimension before the last one that is cut.
    if not part.element_count or (cut and any(taken[d] != 1 for d in range(cut[-1]))):
        return None
    found: list[tuple[int, int | SSAValue, int, int]] = []
    for d in cut:
        stride = prod(sizes[d + 1 :]) * whole.element_type.byte_size
        start = starts[d]
        if start in operands:
            if cast(ArrayShape, shape_of(start.type)).element_type.name != "s32":
                return None
            found.append((operands.index(start), start, sizes[d] - taken[d], stride))
        elif isinstance(start.owner, ConstantOp) and start.owner.literal is not None:
            number = min(max(int(start.owner.literal.item()), 0), sizes[d] - taken[d])
            found.append((0, number, sizes[d] - taken[d], stride))
        else:
            return None
    return found
