"""The order in which uses of a value are listed, where it is not the reverse of the operations'.

A shuffle says for each use, counted from the last in the module to the first, the place it takes.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue, Use

from mlirhlo.formats.bytecode.cursor import Cursor


@dataclass(frozen=True, slots=True)
class UseListOrder:
    """The order of the uses of one of several values."""

    index: int
    """Which of the values."""
    numbers: tuple[int, ...]
    """A place for each use, or pairs of (use, place)."""
    is_pairs: bool
    offset: int
    cursor: Cursor


def read_orders(cursor: Cursor, value_count: int) -> list[UseListOrder]:
    """Orders for some of `value_count` values."""
    orders: list[UseListOrder] = []
    count = cursor.count() if value_count > 1 else 1
    for _ in range(count):
        offset = cursor.pos
        index = cursor.varint() if value_count > 1 else 0
        if index >= value_count:
            raise cursor.problem(f"value {index} of {value_count} does not exist", offset)
        size, is_pairs = cursor.flagged()
        if size > cursor.end - cursor.pos:
            raise cursor.problem(f"{size} uses do not fit in what is left", offset)
        numbers = tuple(cursor.varint() for _ in range(size))
        orders.append(UseListOrder(index, numbers, is_pairs, offset, cursor))
    return orders


@dataclass(slots=True)
class UseLists:
    """Collects orders and applies them when all uses are known."""

    _orders: list[tuple[SSAValue, UseListOrder]] = field(
        default_factory=list["tuple[SSAValue, UseListOrder]"]
    )

    def add(self, values: Sequence[SSAValue], orders: list[UseListOrder]) -> None:
        """Remembers orders of some values."""
        self._orders += [(values[order.index], order) for order in orders]

    def apply(self) -> None:
        """Sorts the use lists. Raises HLO0221 where an order is not one."""
        for value, order in self._orders:
            uses = list(value.uses)
            places = list(range(len(uses)))
            if order.is_pairs:
                pairs = zip(order.numbers[::2], order.numbers[1::2], strict=False)
                for use, place in pairs:
                    if use < len(places):
                        places[use] = place
            else:
                places = list(order.numbers)
            if sorted(places) != list(range(len(uses))):
                raise order.cursor.problem(
                    f"the order of {len(uses)} uses is not one", order.offset
                )
            sorted_uses: list[Use] = uses.copy()
            for listed, place in zip(uses, places, strict=True):
                sorted_uses[place] = listed
            relink(value, sorted_uses)


def relink(value: SSAValue, uses: Sequence[Use]) -> None:
    """Gives a value its uses in a new order."""
    before: Use | None = None
    for use in uses:
        use._prev_use = before
        use._next_use = None
        if before is not None:
            before._next_use = use
        before = use
    value.first_use = uses[0] if uses else None
