"""Sums that a `select` takes or leaves: of a tile where it takes none, none are made.

    %d = dot(%x, %y)   %s = multiply(%d, %scale)   select(%mask, %s, %other)

Causal masks of attention, masks of what was padded, `tril(x @ y)`. What such a tile holds instead is
whatever stood in its memory: nobody sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import SelectOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.hlo_to_loops.kernel_frame import values_between
from mlirhlo.rewrites.fusion.choosing import LEAST_DEPTH

_MOST_OPS = 6
"""Instructions of a predicate, which is computed once more to know whether a tile is wanted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which elements of a contraction count."""

    predicate: SSAValue
    """In the dimensions of the instruction's result, or a scalar."""
    takes: bool
    """What it is where the element counts."""


def choice_of(
    sums: SSAValue, outputs: Sequence[SSAValue], operands: Sequence[SSAValue], depth: int
) -> Choice | None:
    """The predicate of the select that all outputs depend on sums through; None without one, or where it
    takes as long as the sums, of `depth` products each, do."""
    if depth < LEAST_DEPTH:
        return None
    inside = set(values_between(outputs, operands))
    value = sums
    while value not in outputs:
        users = dict.fromkeys(u.operation for u in value.uses if u.operation.results[0] in inside)
        if len(users) != 1:
            return None
        (user,) = users
        if not isinstance(user, Instruction) or not user.opcode.elementwise:
            return None
        if isinstance(user, SelectOp) and user.predicate is not value:
            both = user.on_true is user.on_false
            is_cheap = _is_cheap(user.predicate, operands)
            return Choice(user.predicate, user.on_true is value) if is_cheap and not both else None
        value = user.output
    return None


def _is_cheap(predicate: SSAValue, operands: Sequence[SSAValue]) -> bool:
    ends = set(operands)
    owners = [value.owner for value in values_between([predicate], operands) if value not in ends]
    rows = [owner.opcode for owner in owners if isinstance(owner, Instruction)]
    costing = [row for row in rows if not row.is_trivial and row.name != "convert"]
    is_quick = all(row.elementwise and row.is_plain for row in costing)
    return is_quick and len(rows) == len(owners) and len(costing) <= _MOST_OPS
