"""`dot-merger`: dots that share an operand as one larger dot."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, DotOp, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import insert_before, owners_of
from mlirhlo.rewrites.algsimp.common import array, own_properties, sized, slices
from mlirhlo.rewrites.algsimp.dot import free_of, is_plain
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit

_MIB = 1 << 20


@dataclass(frozen=True)
class DotMergerPass(HloPass):
    """Makes one dot of dots that read the same array, and do not depend on each other.

    Before and after:

        %q = f32[8,4] dot(%x, f32[16,4] %a), …          =>   %w = f32[16,10] concatenate(%a, %b)
        %k = f32[8,6] dot(%x, f32[16,6] %b), …               %d = f32[8,10] dot(%x, %w), …
                                                             %q = f32[8,4] slice(%d)   %k = f32[8,6] slice(%d)

    Both have the shared array on the same side, the same batch and contracting dimensions, element types and
    precision, and one free dimension on the other side. Of the dots that are merged at most one is larger than a
    bound. Source: XLA's pass of this name; a shared array that one of them reads transposed is not found.
    """

    name = "dot-merger"
    exact: ClassVar[bool] = False

    max_size: int = 32 * _MIB
    """Bytes of operands and result beyond which a dot is large: two large ones are not merged."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Merges in every computation but those of fusions; whether anything changed."""
        dots = module.candidates(DotOp)
        if len(dots) < 2:
            return False
        fused = module.known(HloModule.fused_computations)
        changed = False
        for computation in tuple(module.computations):
            if computation.computation_name not in fused:
                changed |= self._merge_in(computation, trace)
        return changed

    def _merge_in(self, computation: ComputationOp, trace: Trace) -> bool:
        changed = False
        for side in (0, 1):
            groups: dict[object, list[DotOp]] = {}
            for op in computation.instructions:
                if isinstance(op, DotOp) and (key := _key(op, side)) is not None:
                    groups.setdefault(key, []).append(op)
            for group in groups.values():
                for merged in _independent(group, self.max_size) if len(group) > 1 else ():
                    _merge(merged, side)
                    trace.rule_counts[self.name, "dot_merger"] += len(merged) - 1
                    changed = True
        return changed


def _independent(group: Sequence[DotOp], max_size: int) -> list[list[DotOp]]:
    """Those of a group, in their order, that depend on equally many others one after the other, if there are two.

    Such ones do not depend on each other, nor do they when others have been merged.
    """
    members = set(group)
    after: dict[Operation | Block, int] = {}
    levels: dict[int, list[DotOp]] = {}
    for op in _window(group):
        level = max((after.get(owner, 0) for owner in _needed(op)), default=0)
        if op in members and isinstance(op, DotOp):
            same = levels.setdefault(level, [])
            if _bytes(op) <= max_size or all(_bytes(other) <= max_size for other in same):
                same.append(op)
            level += 1
        if level:
            after[op] = level
    return [same for same in levels.values() if len(same) > 1]


def _needed(op: Operation) -> list[Operation | Block]:
    """What has to come before an instruction."""
    before = owners_of(op)
    if isinstance(op, Instruction):
        before = [*before, *(value.owner for value in op.control_predecessors)]
    return before


def _key(op: DotOp, side: int) -> object | None:
    """Equal of dots that may be merged into one with operand `side`; None where one may not be."""
    other = op.inputs[1 - side] if len(op.inputs) == 2 else None
    if other is None or not is_plain(op) or op.control_predecessors or "sharding" in op.properties:
        return None
    shapes = [array(v) for v in (op.inputs[side], other, op.output)]
    if any(s.is_dynamic for s in shapes) or len(free_of(op, 1 - side)) != 1:
        return None
    if op.output.first_use is None or other is op.inputs[side]:
        return None
    layouts = tuple(s.layout for s in shapes[1:])
    same = frozenset(own_properties(op).items())
    return (op.inputs[side], same, tuple(s.element_type for s in shapes), layouts)


def _bytes(op: DotOp) -> int:
    return sum(
        s.element_count * s.element_type.byte_size
        for s in (array(v) for v in (*op.inputs, op.output))
    )


def _window(group: Sequence[Operation]) -> list[Operation]:
    """Instructions from the first to the last of a group, found from one of them on."""
    missing = set(group[1:])
    found, op = [group[0]], group[0].next_op
    while missing and op is not None:
        found.append(op)
        missing.discard(op)
        op = op.next_op
    before: list[Operation] = []
    op = group[0].prev_op
    while missing and op is not None:
        before.append(op)
        missing.discard(op)
        op = op.prev_op
    return [*reversed(before), *found]


def _above(group: Sequence[Operation], among: Container[Operation | Block]) -> set[Operation]:
    """What a group depends on, of the instructions `among`."""
    seen: set[Operation] = set()
    stack = [*group]
    while stack:
        for owner in _needed(stack.pop()):
            if owner in among and isinstance(owner, Operation) and owner not in seen:
                seen.add(owner)
                stack.append(owner)
    return seen


def _merge(group: Sequence[DotOp], side: int) -> None:
    """Writes one dot for all of a group, of which none depends on another."""
    window = _window(group)
    needed = _above(group, set(window))
    # What the group needs moves in front of its first one, which is where the dot goes.
    for op in window:
        if op in needed and op is not group[0]:
            op.detach()
            insert_before(group[0], op)
    first = group[0]
    others = [op.inputs[1 - side] for op in group]
    (dim,) = free_of(first, 1 - side)
    joined = _concatenated(others, dim)
    operands: list[SSAValue | Instruction] = [joined, joined]
    operands[side] = first.inputs[side]
    at = len(first.lhs_batch_dims) if side else array(first).rank - 1
    sizes = list(array(first).dimensions)
    sizes[at] = sum(array(op).dimensions[at] for op in group)
    dot = make("dot", operands, _like(array(first), sizes), own_properties(first))
    inherit(dot, first)
    for made in (joined, dot):
        insert_before(first, made)
    start = 0
    parts = [(0, n, 1) for n in sizes]
    for op in group:
        limit = start + array(op).dimensions[at]
        parts[at] = (start, limit, 1)
        Rewriter(op).replace(op, make("slice", [dot], op.shape, {"slice": slices(parts)}))
        start = limit


def _concatenated(values: Sequence[SSAValue], dim: int) -> Instruction:
    first = shape_of(values[0].type)
    assert isinstance(first, ArrayShape)
    sizes = list(first.dimensions)
    sizes[dim] = sum(array(v).dimensions[dim] for v in values)
    return make("concatenate", values, _like(first, sizes), {"dimensions": integers((dim,))})


def _like(shape: ArrayShape, sizes: Sequence[int]) -> ArrayShape:
    """Other sizes in the layout of an array."""
    return ArrayShape(shape.element_type, sized(shape, sizes).dimensions, (), shape.layout)
