"""Loops that fold: values carried from one element to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index, Loop
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import Value
from mlirhlo.lowering.hlo_to_loops.places import Coordinate

Step: TypeAlias = Callable[[Elements, Sequence[Coordinate], Sequence[Value]], Sequence[Value]]
"""The next values, out of the place in the loops and those so far."""


def fold(
    e: Elements,
    sizes: Sequence[int | tuple[Index, Index]],
    initial: Sequence[Value],
    step: Step,
) -> Sequence[Value]:
    """Loops over `sizes`, most major first; `step` makes the next values out of those so far.

    A size may be the first index and the one behind the last.
    """
    b = e.b
    counts = [len(v) for v in initial]

    def packed(values: Sequence[SSAValue]) -> list[Value]:
        rest = iter(values)
        return [tuple(next(rest) for _ in range(count)) for count in counts]

    def nest(
        inner: Elements,
        left: Sequence[int | tuple[Index, Index]],
        values: Sequence[SSAValue],
        indices: Sequence[Coordinate],
    ) -> Sequence[SSAValue]:
        if not left:
            return [part for v in step(inner, indices, packed(values)) for part in v]
        first, *others = left
        if first == 1:
            return nest(inner, others, values, [*indices, Coordinate(0)])
        lower, upper = (0, first) if isinstance(first, int) else first
        with b.loop(lower, upper, 1, values) as loop:
            index = Coordinate(loop.index)
            loop.carry(*nest(inner.scope(), others, loop.carried, [*indices, index]))
        return cast(Loop, loop).results

    if 0 in sizes:
        return initial
    return packed(nest(e.scope(), sizes, [part for v in initial for part in v], []))
