"""`slice-sinker`: elementwise instructions on slices of the same arrays, once on the whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction, SliceOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.quick import insert_before, readers_of
from mlirhlo.rewrites.algsimp.common import array, is_array, own_properties, typed
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit

_Key: TypeAlias = (
    "tuple[tuple[SSAValue, ...], str, PrimitiveType, frozenset[tuple[str, Attribute]]]"
)


def _key(op: Instruction) -> _Key | None:
    """Equal of elementwise instructions that a group may have, first what their operands are slices of.

    None where the operands are not slices at the same places of equally large arrays.
    """
    if not op.inputs or not isinstance(op.inputs[0].owner, SliceOp):
        return None
    if not op.opcode.elementwise or not is_array(op) or op.control_predecessors:
        return None
    if array(op).is_dynamic or op.output.first_use is None or "sharding" in op.properties:
        return None
    sources: list[SSAValue] = []
    parts: list[Attribute] = []
    for value in op.inputs:
        cut = value.owner
        if not isinstance(cut, SliceOp) or cut.control_predecessors:
            return None
        sources.append(cut.operand)
        parts.append(cut.properties["slice"])
    first, *others = map(array, sources)
    if any(part != parts[0] for part in parts) or first.is_dynamic:
        return None
    if any((s.dimensions, s.layout) != (first.dimensions, first.layout) for s in others):
        return None
    same = frozenset(own_properties(op).items())
    return (tuple(sources), op.opcode.name, array(op).element_type, same)


@dataclass(frozen=True)
class SliceSinkerPass(HloPass):
    """Computes elementwise on whole arrays what is computed on slices that together are no smaller.

    Before and after:

        %s = f32[6] add(slice(%x), slice(%y)), both [0:6]     =>   %w = f32[10] add(%x, %y)
        %t = f32[4] add(slice(%x), slice(%y)), both [6:10]         %s = f32[6] slice(%w)   %t = f32[4] slice(%w)

    The instructions have the same opcode and attributes, and all their operands are slices at the same places of the
    same arrays. Their results have as many elements as the arrays at least, so that nothing is computed in vain.
    Source: XLA's pass of this name.
    """

    name = "slice-sinker"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Rewrites all groups; whether there was any. What was rewritten may make others possible."""
        if not module.candidates(SliceOp):
            return False
        changed = False
        for computation in tuple(module.computations):
            while self._sink(computation, trace):
                changed = True
        return changed

    def _sink(self, computation: ComputationOp, trace: Trace) -> bool:
        refused: set[_Key] = set()
        changed = False
        pending = list(computation.instructions)[::-1]
        while pending:
            op = pending.pop()
            if op.parent is None or (key := _key(op)) is None or key in refused:
                continue
            sources, whole = key[0], array(key[0][0])
            group = [
                user
                for cut in readers_of(sources[0])
                if isinstance(cut, SliceOp)
                for user in dict.fromkeys(readers_of(cut.output))
                if isinstance(user, Instruction) and user.parent is op.parent and _key(user) == key
            ]
            group = list(dict.fromkeys(group))
            if sum(array(each).element_count for each in group) < whole.element_count:
                refused.add(key)
                continue
            pending.append(_replace(op, group, sources, whole))
            trace.rule_counts[self.name, "slice_sinker"] += len(group)
            changed = True
        return changed


def _replace(
    first: Instruction,
    group: Sequence[Instruction],
    sources: Sequence[SSAValue],
    whole: ArrayShape,
) -> Instruction:
    """Writes the instruction once in front of `first`, the first of its group, and takes slices of it."""
    shape = typed(whole, array(first).element_type)
    computed = make(first.opcode.name, sources, shape, own_properties(first))
    inherit(computed, first)
    insert_before(first, computed)
    for op in group:
        cut = op.inputs[0].owner
        assert isinstance(cut, SliceOp)
        part = make("slice", [computed], op.shape, {"slice": cut.properties["slice"]})
        before = [v.owner for v in op.inputs]
        rewriter = Rewriter(op)
        rewriter.replace(op, part)
        rewriter.erase_unread(*before)
    return computed
