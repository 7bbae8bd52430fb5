"""The schedules of scatters: updates of one element combined atomically, or in order."""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.ir.affine import AffineDimExpr

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import ScatterOp, sizes_of
from mlirhlo.lowering.schedule.attributes import Schedule, element_of

_SERIAL = 16
"""Updates in order that one thread combines, where it would take longer to sort them."""
_ATOMIC = {
    "add": ("addi", "addi", "addf"),
    "maximum": ("maxs", "maxu", "maximumf"),
    "minimum": ("mins", "minu", "minimumf"),
    "and": ("andi", "andi", ""),
    "or": ("ori", "ori", ""),
    "xor": ("xori", "xori", ""),
}
"""Kinds of atomic updates of signed and unsigned integers and of floats, by the opcode of the combiner."""
_WORD = 4
"""Bytes of the smallest number that all devices update atomically: of smaller ones, the word around them."""


def schedule_of_scatter(op: ScatterOp, launch: int, *, deterministic: bool) -> Schedule:
    """Kind `scatter`: a thread an update, which combines it atomically, or alone where no two meet. Else
    `scatter_in_order`, which is always the same: with the updates sorted by their element, or a thread for all that meet.

    `deterministic`: whether sums of floats must not depend on the order in which threads run.
    """
    kind = atomic_kind(op)
    is_apart = op.unique_indices is not None or not serial_dims(op)
    if is_apart or (kind is not None and not (deterministic and kind == "addf")):
        return Schedule(launch, "scatter")
    count = prod(op.space[dim] for dim in serial_dims(op))
    return Schedule(launch, "scatter_in_order" if count > _SERIAL else "scatter_by_one")


def atomic_kind(op: ScatterOp) -> str | None:
    """The atomic update that a combiner is; None for one whose order matters, or that no device has."""
    element = element_of(op.outputs[0])
    body = list(op.combiner.block.ops)
    if len(op.outputs) > 1 or len(body) != 2:
        return None
    if set(body[0].operands) != set(op.combiner.block.args):
        return None
    kinds = _ATOMIC.get(cast(Instruction, body[0]).opcode.name)
    if kinds is None:
        return None
    is_whole = element.byte_size >= _WORD or prod(sizes_of(op.outputs[0])) % _WORD == 0
    if element.is_complex:
        return "addf" if kinds[2] == "addf" else None
    if not is_whole or element.bits not in (8, 16, 32, 64):
        return kinds[1] if is_whole and element.kind is Kind.PRED and not kinds[2] else None
    if element.is_float:
        return kinds[2] if element.bits >= 16 else None
    return kinds[not element.is_signed]


def serial_dims(op: ScatterOp) -> list[int]:
    """Dimensions of the updates along which two may go to one element."""
    parallel = parallel_dims(op)
    return [dim for dim in range(len(op.space)) if dim not in parallel]


def parallel_dims(op: ScatterOp) -> list[int]:
    """Dimensions along which updates go to different elements: they alone say where in a dimension of the target
    without indices, or where in the windows of one start."""
    rank = len(op.space)
    moves = [
        (dim in op.indexed, expr.position)
        for dim, expr in enumerate(op.offset_map.results)
        if isinstance(expr, AffineDimExpr)
    ]
    apart = {d for is_indexed, d in moves if not is_indexed}
    starts = {d for map_ in op.index_maps for expr in map_.results for d in expr.used_dims()}
    if all(op.space[d] == 1 for d in starts - apart):
        apart |= {d for _, d in moves}
    return [d for d in range(rank) if op.space[d] == 1 or d in apart]
