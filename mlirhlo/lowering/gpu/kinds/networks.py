"""Short lines sorted in registers: bitonic networks among the threads of a warp.

Runs of 2, 4, 8 … elements are merged: the first step of a merge compares each element of the left run with its mirror
image in the right one, the others compare elements a distance apart that is halved each time. The smaller one always
comes to the smaller index. Where a comparator calls different elements equal, the indices they had at first decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.builder import KernelBuilder
from mlirhlo.lowering.hlo_to_loops.elements import Value

Elements = Sequence[Value]
"""One of each array."""


class Network:
    """Sorts `lanes * held` elements, of which each of `lanes` neighbouring threads holds `held`.

    Element `r` of a thread, counted in groups of `together` neighbours, has the index
    `r // together * lanes * together + lane * together + r % together`.
    """

    def __init__(
        self,
        b: KernelBuilder,
        lanes: int,
        together: int,
        less: Callable[[Elements, Elements], SSAValue],
        *,
        lane: Index,
        is_distinct: bool,
        length: Index | None,
    ) -> None:
        """`is_distinct`: whether elements that the comparator calls equal are the same. `length`: how many elements are
        sorted, if not all; those behind stay behind."""
        self.b, self.lanes, self.together, self.less = b, lanes, together, less
        self.lane = b.index(lane)
        self.has_index = length is not None or not is_distinct
        self.is_distinct, self.length = is_distinct, length

    def index(self, register: int) -> Index:
        """That of one of a thread's elements."""
        b, (group, inside) = self.b, divmod(register, self.together)
        first = b.add(b.mul(self.lane, self.together), inside)
        return b.add(first, group * self.lanes * self.together)

    def sorted(self, elements: Sequence[Elements]) -> list[Elements]:
        """A thread's elements of the sorted line."""
        held, count = len(elements), len(elements[0])
        rows = [list(element) for element in elements]
        if self.has_index:
            for number, row in enumerate(rows):
                row.append((self.b.cast_index(self.b.index(self.index(number)), i32),))
        size = 2
        while size <= self.lanes * held:
            rows = self._step(rows, size - 1, size // 2)
            distance = size // 4
            while distance:
                rows = self._step(rows, distance, distance)
                distance //= 2
            size *= 2
        return [row[:count] for row in rows]

    def _split(self, mask: int) -> tuple[int, int]:
        """The bits of an index that are of registers, and those of lanes."""
        outer, inner = divmod(mask, self.together)
        high, lane = divmod(outer, self.lanes)
        return high * self.together + inner, lane

    def _step(self, rows: list[list[Value]], mask: int, bit: int) -> list[list[Value]]:
        """Elements compared with those whose index differs in `mask`; that without `bit` gets the smaller."""
        b = self.b
        (registers, lanes), (register, lane) = self._split(mask), self._split(bit)
        found = list(rows)
        is_high: SSAValue | None = None
        if lane:
            is_high = b.cmpi("ne", b.andi(self.lane, b.index(lane)), b.constant(0, INDEX))
        for own, row in enumerate(rows):
            other = rows[own ^ registers]
            if lanes:
                other = [tuple(b.warp_shuffle("xor", p, lanes) for p in value) for value in other]
                takes = self._before(other, row)
                if own & register or is_high is not None:
                    takes = b.xori(takes, b.constant(True, i1) if is_high is None else is_high)
                found[own] = self._chosen(takes, other, row)
            elif not own & register:
                swap = self._before(other, row)
                found[own] = self._chosen(swap, other, row)
                found[own ^ registers] = self._chosen(swap, row, other)
        return found

    def _before(self, x: Sequence[Value], y: Sequence[Value]) -> SSAValue:
        """Whether `x` comes before `y`."""
        b = self.b
        if not self.has_index:
            return self.less(x, y)
        *first, (at,) = x
        *second, (other,) = y
        before = self.less(first, second)
        if not self.is_distinct:
            after = b.xori(self.less(second, first), b.constant(True, i1))
            before = b.ori(before, b.andi(after, b.cmpi("ult", at, other)))
        if self.length is None:
            return before
        length = b.cast_index(b.index(self.length), i32)
        is_inside, is_other = (b.cmpi("ult", index, length) for index in (at, other))
        outside = b.xori(is_other, b.constant(True, i1))
        return b.ori(
            b.andi(is_inside, b.ori(outside, before)), b.andi(outside, b.cmpi("ult", at, other))
        )

    def _chosen(self, condition: SSAValue, x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
        return [
            tuple(self.b.select(condition, v, w) for v, w in zip(one, two, strict=True))
            for one, two in zip(x, y, strict=True)
        ]
