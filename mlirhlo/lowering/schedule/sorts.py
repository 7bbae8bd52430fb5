"""The schedules of sorts: by the digits of keys, or by merging runs."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import SortOp, sizes_of
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.interp.ops.sorting import SortKey, sort_key
from mlirhlo.lowering.hlo_to_loops.sort_keys import key_bits
from mlirhlo.lowering.schedule.attributes import Schedule

DIGIT_BITS = 8
"""Of a key, that one launch moves elements by."""
_TILE = 2048
"""Elements that a block sorts before runs are merged, about."""
_MAX_LENGTH = 1 << 30
"""Of lines whose elements are counted in 30 bits."""


def schedule_of_sort(op: SortOp, launch: int) -> Schedule:
    """Kind `radix_sort` where it takes fewer launches than merging runs, else `sort`.

    Each digit of a key is a launch, and a further one counts digits; merging takes one for each doubling of a tile.
    """
    key = key_of(op)
    length = sizes_of(op.inputs[0])[op.dim]
    if key is None or length >= _MAX_LENGTH:
        return Schedule(launch, "sort")
    return Schedule(
        launch, "radix_sort" if digits_pay(length, key_bits(key.element_type)) else "sort"
    )


def digits_pay(length: int, bits: int) -> bool:
    """Whether lines are ordered faster by the digits of keys than by merging runs."""
    return length > _TILE << (bits // DIGIT_BITS + 1)


def key_of(op: SortOp) -> SortKey | None:
    """The key that a comparator orders by; None where it orders otherwise, or by a complex number."""
    owner = yielded(op.comparator)[0].owner
    if not isinstance(owner, Operation) or not isinstance(owner, Instruction):
        return None
    key = sort_key(owner)
    return None if key is None or key.element_type.is_complex else key
