"""The schedules of scatters: updates of one element combined atomically, or in order."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr

from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import ScatterOp, sizes_of
from mlirhlo.lowering.schedule.attributes import Schedule, element_of
from mlirhlo.lowering.schedule.vectorize import BYTES, THREADS

_SERIAL = 16
"""Updates in order that one thread combines, where it would take longer to sort them."""
_WORD = 4
"""Bytes of the smallest number that all devices update atomically: of smaller ones they take the word around them,
which has to be in the array."""


def schedule_of_scatter(op: ScatterOp, launch: int, *, deterministic: bool) -> Schedule:
    """Kind `scatter`: a thread an update, which combines it atomically, or alone where no two meet. Else always in the
    order of the updates: `scatter_in_order`, which sorts them by their element, or `scatter_by_one` for few that meet.

    `deterministic`: whether sums of floats must not depend on the order in which threads run.
    """
    element = element_of(op.outputs[0])
    rounds = (element.is_float or element.is_complex) and opcode_of(op) in ("add", "multiply")
    if is_apart(op) or (is_atomic(op) and not (deterministic and rounds)):
        return Schedule(launch, "scatter", vector=_width(op))
    count = prod(op.space[dim] for dim in serial_dims(op))
    return Schedule(launch, "scatter_in_order" if count > _SERIAL else "scatter_by_one")


def is_apart(op: ScatterOp) -> bool:
    """Whether no two updates go to one element."""
    return op.unique_indices is not None or not serial_dims(op)


def _width(op: ScatterOp) -> int:
    """Neighbours that a thread combines, of which it reads the updates at once."""
    width = BYTES * 8 // max(*(element_of(value).bits for value in op.updates), 8)
    last = op.space[-1] if op.space else 1
    while width > 1 and (last % width or prod(op.space) // width < THREADS):
        width //= 2
    return width if width > 1 else 0


def is_atomic(op: ScatterOp) -> bool:
    """Whether updates may be combined in any order, each at once."""
    element = element_of(op.outputs[0])
    body = list(op.combiner.block.ops)
    if len(op.outputs) > 1 or len(body) != 2 or not _is_fold(body[0]):
        return False
    if set(body[0].operands) != set(op.combiner.block.args):
        return False
    if element.is_complex:
        return opcode_of(op) == "add"
    is_stored_whole = element.bits >= 8 or element.kind is Kind.PRED
    return is_stored_whole and prod(sizes_of(op.outputs[0])) * element.byte_size % _WORD == 0


def _is_fold(op: Operation) -> bool:
    """Whether the order in which numbers are combined says nothing, but for the rounding of floats."""
    return isinstance(op, Instruction) and op.opcode.identity is not None


def opcode_of(op: ScatterOp) -> str:
    """The first instruction of the combiner."""
    first = op.combiner.block.first_op
    return first.opcode.name if isinstance(first, Instruction) else ""


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
