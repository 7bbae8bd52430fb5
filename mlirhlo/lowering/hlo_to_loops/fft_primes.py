"""A stage of a Fourier transform whose length is a large prime r, of lines side by side.

    y[k], y[r-k] = x[0] + sum over j of cos(j k) (x[j] + x[r-j])  +-  i sum over j of sin(j k) (x[j] - x[r-j])

j and k go to (r - 1) / 2. Sums and differences are computed once, and read for some k at a time. Of real
numbers there are no imaginary parts to sum in the first stage, and the last stage, which would make pairs of conjugates

    X[q + s k] and X[s (r - k) - q]*     for n = r s

makes one of each: q goes to s / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index, vector_of
from mlirhlo.lowering.hlo_to_loops.fft_lines import Pair, times

if TYPE_CHECKING:
    from mlirhlo.lowering.hlo_to_loops.fft_stages import Stages

_ROWS = 4
"""Results, and their mirror images, at a time: four sums each."""


class PrimeStage:
    """The current stage of a transform of lines side by side."""

    def __init__(self, stage: Stages) -> None:
        self.stage, self.b, self.lanes = stage, stage.b, stage.lanes
        self.half = stage.radix // 2
        self.circle = stage.tables.circle(stage.radix)
        self.parts = 1 if stage.here.memory.is_real else 2
        self.pairs = self.b.scratch([2 * self.parts * self.half * self.lanes], f64)
        """Of each j the sum and the difference, of real parts or of both parts."""

    def build(self) -> None:
        """The loops over all transforms of the stage."""
        b, stage = self.b, self.stage
        with ExitStack() as stack:
            p: Index = stack.enter_context(b.loop(0, stage.rest)) if stage.rest > 1 else 0
            count = stage.done // 2 + 1 if stage.is_half else stage.done
            q: Index = stack.enter_context(b.loop(0, count)) if count > 1 else 0
            first = stage.load(self.source(p, q, 0))
            self.store(p, q, 0, self.sums(p, q, first))
            whole = self.half - self.half % _ROWS
            if whole:
                with b.loop(0, whole, _ROWS) as k:
                    self.rows(p, q, first, k, _ROWS)
            if self.half > whole:
                self.rows(p, q, first, whole, self.half - whole)

    def source(self, p: Index, q: Index, j: Index) -> Index:
        """Position of number j of a transform."""
        b, stage = self.b, self.stage
        return b.add(q, b.mul(b.add(p, b.mul(j, stage.rest)), stage.done))

    def sums(self, p: Index, q: Index, first: Pair) -> Pair:
        """Stores sums and differences; the sum of all numbers."""
        b, stage, lanes, parts = self.b, self.stage, self.lanes, self.parts
        with b.loop(0, self.half, 1, first[:parts]) as loop:
            near = stage.load(self.source(p, q, b.add(loop.index, 1)))
            far = stage.load(self.source(p, q, b.sub(stage.radix - 1, loop.index)))
            both = list(map(b.addf, near[:parts], far[:parts]))
            apart = list(map(b.subf, near[:parts], far[:parts]))
            at = b.mul(loop.index, 2 * parts * lanes)
            for number, value in enumerate((*both, *apart)):
                b.vector_store(value, self.pairs, [b.add(at, number * lanes)])
            loop.carry(*(b.addf(x, y) for x, y in zip(loop.carried, both, strict=True)))
        return loop.results[0], loop.results[1] if parts == 2 else first[1]

    def rows(self, p: Index, q: Index, first: Pair, k: Index, count: int) -> None:
        """Results k + 1 to k + count, and their mirror images."""
        b, stage, lanes, half, parts = self.b, self.stage, self.lanes, self.half, self.parts
        zero = b.constant(0.0, vector_of(f64, lanes))
        initial = (*first[:parts], *[zero] * parts) * count
        with b.loop(0, half, 1, initial) as loop:
            at = b.mul(loop.index, 2 * parts * lanes)
            values = [
                b.vector_load(self.pairs, [b.add(at, number * lanes)], lanes)
                for number in range(2 * parts)
            ]
            totals: list[SSAValue] = []
            for row in range(count):
                place = b.add(b.mul(b.add(k, row), half), loop.index)
                cosine, sine = (b.broadcast(b.load(v, [place]), lanes) for v in self.circle)
                factors = [cosine] * parts + [sine] * parts
                before = loop.carried[2 * parts * row : 2 * parts * (row + 1)]
                totals += map(b.fma, values, factors, before)
            loop.carry(*totals)
        for row in range(count):
            found = loop.results[2 * parts * row : 2 * parts * (row + 1)]
            re, im, aside_re, aside_im = found if parts == 2 else (found[0], zero, found[1], zero)
            across = (
                (b.negf(aside_im), aside_re) if stage.sign > 0 else (aside_im, b.negf(aside_re))
            )
            number = b.add(k, row + 1)
            self.store(p, q, number, (b.addf(re, across[0]), b.addf(im, across[1])))
            mirror = b.subf(re, across[0]), b.subf(im, across[1])
            if stage.is_half:
                place = b.sub(b.mul(number, stage.done), q)
                stage.there.store(place, (mirror[0], b.negf(mirror[1])))
            else:
                self.store(p, q, b.sub(stage.radix, number), mirror)

    def store(self, p: Index, q: Index, k: Index, value: Pair) -> None:
        """Stores result k, times its power of a root and the scale."""
        b, stage = self.b, self.stage
        if stage.roots is not None and k != 0:
            place = b.add(p, b.mul(b.sub(k, 1), stage.rest))
            powers: Sequence[SSAValue] = [
                b.broadcast(b.load(table, [place]), self.lanes) for table in stage.roots
            ]
            value = times(b, value, (powers[0], powers[1]), stage.sign)
        if stage.scale != 1.0:
            scale = b.constant(stage.scale, value[0].type)
            value = b.mulf(value[0], scale), b.mulf(value[1], scale)
        place = b.add(q, b.mul(b.add(b.mul(p, stage.radix), k), stage.done))
        stage.there.store(place, value, stage.widths[1])
