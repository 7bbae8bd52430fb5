"""Parts of fusions that no other kernel is asked to write."""

from __future__ import annotations

from typing import TypeAlias, cast

from mlirhlo.dialects.hlo.module import holder
from mlirhlo.dialects.hlo.ops import ConstantOp, Instruction, ParameterOp, ReduceOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, OP_CLASSES, classes_of
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.spaces import FoldKind, major_to_minor, reduce_fold

Space: TypeAlias = "tuple[tuple[int, ...], tuple[int, ...]]"
"""Dimensions, and their order in memory: equal for arrays that are walked alike."""

FREE_CLASSES = classes_of(lambda row: row.is_trivial)
"""Classes of what costs nothing to compute once more: never one more output of a kernel."""

_ELEMENTWISE = frozenset(cls for cls in OP_CLASSES.values() if cls.opcode.elementwise)
_APART = frozenset({CONTROL_PREDECESSORS, "sharding", "backend_config", "frontend_attributes"})
"""Properties by which instructions are kept apart from others."""


def is_written_first(source: Instruction, *, columns: bool) -> bool:
    """Whether the fusion that `source` is in writes its value whoever else could.

    Of all that read a value, planning asks what runs first: the fusion itself, where it reads it too. It is
    one more output there if the fusion walks all arrays of that shape in step, and needs each element once.
    """
    shape = source.shape
    if type(source) not in _ELEMENTWISE or not isinstance(shape, ArrayShape):
        return False
    readers = {type(use.operation) for use in source.output.uses}
    if ReduceOp not in readers and readers.isdisjoint(_ELEMENTWISE):
        return False
    body = instruction_list(holder(source))
    # Few enough for no limit of a fusion to be in question.
    return len(body) <= cost.MOST_INPUTS - 4 and all(
        _is_in_step(op, space_of(shape), columns=columns) for op in body
    )


def _is_in_step(op: Instruction, walked: Space, *, columns: bool) -> bool:
    """Whether an instruction reads arrays that are walked so only where they are walked."""
    if not _APART.isdisjoint(op.properties):
        return False
    if isinstance(op, (ConstantOp, ParameterOp, TupleOp)):
        return True
    shapes = [shape_of(value.type) for value in (op.output, *op.inputs)]
    if not all(isinstance(s, ArrayShape) for s in shapes):
        return False
    arrays = cast("list[ArrayShape]", shapes)
    if isinstance(op, ReduceOp):
        fold = reduce_fold(op)
        if fold is None or fold.space != walked:
            return False
        return fold.kind is FoldKind.ROWS or (fold.kind is FoldKind.COLUMNS and columns)
    space, *read = map(space_of, arrays)
    if type(op) in FREE_CLASSES:
        return walked not in read
    if type(op) not in _ELEMENTWISE:
        return False
    return all(found == space or (found != walked and not found[0]) for found in read)


def space_of(shape: ArrayShape) -> Space:
    """How an array is walked."""
    return (shape.dimensions, major_to_minor(shape))
