"""Small operands of collectives: each device copies its own to where the others read it, so that they meet once.

Larger ones are read where they are, and their owner waits until all have done so. A copy has two slots, for rounds of
even and of odd number: when a device writes to one again, it has passed the meeting of the round between, to which the
others came after they had read it. That holds where no other work stands between the start and the end of a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.lowering import meeting_words as words
from mlirhlo.lowering.cpu.collective_parts import is_shared_out, size_of
from mlirhlo.lowering.cpu.collectives import base_of, operands_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from mlirhlo.lowering.plan.steps import Site

_MOST_BYTES = 4 << 10
"""Of all operands of a device: copies of as many take less than a meeting."""
_LINE_WORDS = 8


@dataclass(frozen=True, slots=True)
class Copies:
    """The slots of a site's operands in a group of so many devices."""

    count: int
    sizes: Sequence[int]
    """Bytes of each operand."""
    start: int
    """Words from the world's start."""

    @property
    def end(self) -> int:
        """Where the slots end."""
        return self._slot(self.count, 0, 0)

    def _slot(self, member: int, parity: int, operand: int) -> int:
        lines = [-(-size // (_LINE_WORDS * words.WORD)) for size in self.sizes]
        head = self.count * (2 * len(lines) + words.COPY_HEAD + words.COPY_ROW * len(lines))
        first = self.start + -(-head // _LINE_WORDS) * _LINE_WORDS
        before = (2 * member + parity) * sum(lines) + sum(lines[:operand])
        return first + before * _LINE_WORDS

    def fill(
        self, memory: np.ndarray[Any, np.dtype[np.int64]], address: Callable[[int], int]
    ) -> list[int]:
        """Writes the tables of published pointers, and what each member copies; addresses of the latter."""
        rows_at: list[int] = []
        at, operands = self.start, range(len(self.sizes))
        tables = [at, at + self.count * len(self.sizes)]
        for parity, table in enumerate(tables):
            for k in operands:
                for member in range(self.count):
                    slot = self._slot(member, parity, k)
                    memory[table + k * self.count + member] = address(slot)
        at = tables[1] + self.count * len(self.sizes)
        for member in range(self.count):
            rows = [
                (self.sizes[k], *(address(self._slot(member, p, k)) for p in (0, 1)))
                for k in operands
            ]
            row = [len(self.sizes), *map(address, tables), *(word for row in rows for word in row)]
            memory[at : at + len(row)] = row
            rows_at.append(address(at))
            at += len(row)
        return rows_at


def copies_of(
    sites: Sequence[Site],
    groups: Sequence[Mapping[Hashable, int]],
    start: int,
) -> dict[tuple[int, Hashable], Copies]:
    """By site and group, the slots of what is small; `groups`: by site, the sizes of its groups, by name."""
    split = {
        key for site, names in zip(sites, groups, strict=True) if site.is_split for key in names
    }
    copies: dict[tuple[int, Hashable], Copies] = {}
    for number, (site, names) in enumerate(zip(sites, groups, strict=True)):
        sizes = _small(site)
        for key, count in names.items():
            if sizes and key not in split and count > 1:
                slots = Copies(count, sizes, start)
                copies[number, key] = slots
                start = slots.end
    return copies


def _small(site: Site) -> list[int]:
    """Bytes of the operands that are copied; none of large ones, or where devices write to each other's results."""
    op = site.op
    if op is None or not site.is_native or not op.inputs:
        return []
    shapes = operands_of(op)
    sizes = [size_of(shape) for shape in shapes]
    if base_of(op) == "all-reduce" and any(is_shared_out(op, k) for k in range(len(shapes))):
        return []
    return sizes if sum(sizes) <= _MOST_BYTES else []
