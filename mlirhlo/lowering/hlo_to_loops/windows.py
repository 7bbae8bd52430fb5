"""Where the positions of a window fall in its base: padding and dilation take no part in a fold.

A window that all lanes have at the same place is folded over the positions that fall in the base, and nothing
is asked inside the loops. Where lanes have windows of their own, each element is read under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import INDEX, FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.folding import Step, fold
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places


@dataclass(frozen=True, slots=True)
class WindowPlaces:
    """One dimension of the windows at a place."""

    place: Coordinate
    """In the result."""
    window: Any
    """The dimension of the window, of `attributes.Window`."""
    size: int
    """Of the base."""
    positions: int | tuple[Index, Index]
    """Those to fold over, for `fold`."""
    is_tested: bool
    """Whether some of them may fall beside the base's elements."""

    @staticmethod
    def of(e: Elements, place: Coordinate, window: Any, size: int) -> WindowPlaces:
        """The positions are computed in front of the loops over them."""
        reach = (window.size - 1) * window.window_dilation + 1
        dilated = (size - 1) * window.base_dilation + 1 if size else 0
        is_inside = window.padding_low <= 0 and window.padding_high <= 0 and dilated >= reach
        if is_inside and window.base_dilation == 1:
            return WindowPlaces(place, window, size, window.size, is_tested=False)
        if not place.uniform or window.base_dilation > 1:
            return WindowPlaces(place, window, size, window.size, is_tested=True)
        b = e.b
        first = b.sub(b.mul(place.base, window.stride), window.padding_low)
        # Position p falls on first + p * dilation, which has to be in [0, size).
        lower = _ceil_div(b, _negative(b, first), window.window_dilation)
        upper = _ceil_div(b, b.add(_negative(b, first), size), window.window_dilation)
        lower, upper = (_clamped(b, x, window.size) for x in (lower, upper))
        if window.window_reversal:
            lower, upper = b.sub(window.size, upper), b.sub(window.size, lower)
        return WindowPlaces(place, window, size, (lower, upper), is_tested=False)

    def whole(self, e: Elements) -> SSAValue | None:
        """Whether the windows of all lanes lie inside the base; None where that takes more than two comparisons."""
        b, d, place = e.b, self.window, self.place
        if place.lanes is not None or place.stride < 0 or d.base_dilation > 1:
            return None
        reach = (d.size - 1) * d.window_dilation + 1
        first = b.sub(b.mul(place.base, d.stride), d.padding_low)
        last = b.add(first, place.stride * (e.lanes - 1) * d.stride + reach)
        low = b.cmpi("sge", b.index(first), b.constant(0, INDEX))
        return b.andi(low, b.cmpi("sle", b.index(last), b.constant(self.size, INDEX)))

    def at(self, e: Elements, k: Coordinate) -> tuple[Coordinate, SSAValue | None]:
        """Where position `k` falls, and whether that is an element of the base.

        Where it is none, the place is still one of the base unless it is affine in the lanes.
        """
        b, places, d = e.b, e.places, self.window
        if d.window_reversal:
            k = places.reversed(k, d.size)
        at = places.sum(places.scaled(self.place, d.stride), places.scaled(k, d.window_dilation))
        if d.padding_low:
            at = places.shifted(at, -d.padding_low)
        if not self.is_tested:
            return at, None
        value = places.vector(at) if e.lanes and not at.uniform else b.index(at.base)
        zero = b.constant(0, value.type)
        inside = b.cmpi("sge", value, zero)
        if d.base_dilation > 1:
            divisor = b.constant(d.base_dilation, value.type)
            inside = b.andi(inside, b.cmpi("eq", b.integer(arith.RemSIOp, value, divisor), zero))
            value = b.integer(arith.DivSIOp, value, divisor)
        inside = b.andi(inside, b.cmpi("slt", value, b.constant(self.size, value.type)))
        if e.lanes and not at.uniform and at.lanes is None and d.base_dilation == 1:
            return at, inside
        last = b.constant(max(self.size - 1, 0), value.type)
        value = b.integer(arith.MinSIOp, b.integer(arith.MaxSIOp, value, zero), last)
        if e.lanes and at.uniform:
            return Coordinate(value), e.splat(inside)
        return (Coordinate(0, 0, value) if e.lanes else Coordinate(value)), inside


@dataclass(frozen=True, slots=True)
class Inside:
    """The place of a position in all dimensions, and what reads there."""

    place: Sequence[Coordinate]
    mask: SSAValue | None
    """Whether there is an element; None where there always is."""
    elements: Elements
    """Reads nothing where there is none."""

    def kept(self, e: Elements, new: Sequence[Value], old: Sequence[Value]) -> Sequence[Value]:
        """New values where there was an element, else the old ones."""
        mask = self.mask
        if mask is None:
            return new
        return [
            tuple(e.b.select(mask, p, q) for p, q in zip(x, y, strict=True))
            for x, y in zip(new, old, strict=True)
        ]


def inside(e: Elements, found: Sequence[tuple[Coordinate, SSAValue | None]]) -> Inside:
    """All dimensions put together."""
    mask: SSAValue | None = None
    for _, here in found:
        if here is not None:
            mask = here if mask is None else e.b.andi(mask, here)
    elements = e
    if mask is not None and e.lanes:
        outer = e.places.mask
        lanes = mask if outer is None else e.b.andi(mask, outer)
        elements = e.scope(Places(e.b, e.lanes, lanes))
    return Inside([c for c, _ in found], mask, elements)


def fold_windows(
    e: Elements,
    windows: Sequence[WindowPlaces],
    others: Sequence[int],
    initial: Sequence[Value],
    step: Callable[[Sequence[WindowPlaces]], Step],
) -> Sequence[Value]:
    """Folds over the positions of windows, then over `others`; where the windows of all lanes lie inside their
    base, nothing is asked for each position."""

    def folded(e: Elements, windows: Sequence[WindowPlaces]) -> Sequence[Value]:
        return fold(e, [*(w.positions for w in windows), *others], initial, step(windows))

    b = e.b
    tested = [w for w in windows if w.is_tested]
    conditions = [w.whole(e) for w in tested] if e.lanes and e.places.mask is None else []
    whole = [c for c in conditions if c is not None]
    if not tested or len(whole) < len(tested):
        return folded(e, windows)
    condition = reduce(b.andi, whole)
    inner = [replace(w, is_tested=False) for w in windows]
    values = [part for v in initial for part in v]
    for chosen, there in ((condition, inner), (b.xori(condition, b.constant(True, i1)), windows)):
        with b.otherwise(chosen, values) as choice:
            choice.give(*(part for v in folded(e.scope(), there) for part in v))
        values = list(choice.results)
    rest = iter(values)
    return [tuple(next(rest) for _ in v) for v in initial]


def _negative(b: FunctionBuilder, x: Index) -> Index:
    return b.sub(0, x)


def _ceil_div(b: FunctionBuilder, x: Index, by: int) -> Index:
    """`x / by` rounded up; anything below 1 where `x` is."""
    if by == 1:
        return x
    if isinstance(x, int):
        return -(-x // by)
    return b.integer(arith.DivSIOp, b.index(b.add(x, by - 1)), b.constant(by, INDEX))


def _clamped(b: FunctionBuilder, x: Index, size: int) -> Index:
    """Brought into [0, size]."""
    if isinstance(x, int):
        return min(max(x, 0), size)
    low = b.integer(arith.MaxSIOp, x, b.constant(0, INDEX))
    return b.integer(arith.MinSIOp, low, b.constant(size, INDEX))
