"""Ways out of a block: `cf.cond_br` and `cf.switch`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirhlo.mosaic.attributes import integers_of, name_of
from mlirhlo.mosaic.interpreter.problems import unfit

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation


@dataclass(frozen=True, slots=True)
class Ways:
    """The successors of a branch with the numbers of the operands they take, and the choice."""

    ways: tuple[tuple[Block, range], ...]
    pick: Callable[[Any], int]


def chooser(op: Operation) -> Ways:
    """The ways of a conditional branch. Raises `HloError` HLO0701 when its segments are missing."""
    segments = integers_of(op, "operandSegmentSizes")
    if segments is None:
        raise unfit(op, "operandSegmentSizes are missing")
    sizes = list(segments[1:])
    if name_of(op) == "cf.switch":
        inner = integers_of(op, "case_operand_segments") or ()
        sizes = [segments[1], *inner]
        values = integers_of(op, "case_values") or ()
        places = {value: number + 1 for number, value in enumerate(values)}

        def pick(flag: Any) -> int:
            return places.get(int(flag), 0)
    else:

        def pick(flag: Any) -> int:
            return 0 if flag else 1

    starts = [1 + sum(sizes[:number]) for number in range(len(sizes))]
    taken = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    return Ways(tuple(zip(op.successors, taken, strict=True)), pick)
