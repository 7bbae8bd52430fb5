"""A stage of a Fourier transform whose length is a large prime r, of lines side by side.

    y[k], y[r-k] = x[0] + sum over j of cos(j k) (x[j] + x[r-j])  +-  i sum over j of sin(j k) (x[j] - x[r-j])

j and k go to (r - 1) / 2. Sums and differences are computed once, and read for some k at a time. Of real
numbers there are no imaginary parts to sum in the first stage, and the last stage, which would make pairs of conjugates

    X[q + s k] and X[s (r - k) - q]*     for n = r s

makes one of each: q goes to s / 2.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index, vector_of
from mlirhlo.lowering.hlo_to_loops.fft_lines import Pair, roots, times

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


class CyclicStage(PrimeStage):
    """The same of a prime r so large that it is a cyclic convolution of r - 1 numbers (Rader).

    y[g^-m] = x[0] + sum over i of x[g^i] root(r)^(g^(i-m)),   g a generator of the numbers below r
    """

    def __init__(self, stage: Stages) -> None:
        self.stage, self.b, self.lanes = stage, stage.b, stage.lanes

    def build(self) -> None:
        """The loops over all transforms of the stage."""
        b, stage, length = self.b, self.stage, self.stage.radix - 1
        g = generator(stage.radix)
        name, make = f"mlirhlo_cyclic_{stage.radix}", partial(_factors, stage.radix)
        factors = stage.tables.of(name, 2 * length, make)
        start, other = stage.spare
        inner = stage.of(length)
        with ExitStack() as stack:
            p: Index = stack.enter_context(b.loop(0, stage.rest)) if stage.rest > 1 else 0
            q: Index = stack.enter_context(b.loop(0, stage.done)) if stage.done > 1 else 0
            first = stage.load(self.source(p, q, 0))
            with b.loop(0, length, 1, (b.index(1), *first)) as loop:
                value = stage.load(self.source(p, q, loop.carried[0]))
                start.store(loop.index, value)
                total = map(b.addf, loop.carried[1:], value)
                loop.carry(self.after(loop.carried[0], g), *total)
            self.store(p, q, 0, (loop.results[1], loop.results[2]))
            with b.loop(0, 2) as way:
                done = inner.run(start, (other, start), None, 1.0)
                offset = b.mul(way, length)
                with b.loop(0, length) as k:
                    place = b.add(offset, k)
                    real, imag = (b.broadcast(b.load(v, [place]), self.lanes) for v in factors)
                    real, imag = times(b, done.load(k), (real, imag), stage.sign)
                    start.store(k, (real, b.negf(imag)))
            with b.loop(0, length, 1, (b.index(1),)) as loop:
                real, imag = map(b.addf, first, start.load(loop.index))
                self.store(p, q, loop.carried[0], (real, imag))
                loop.carry(self.after(loop.carried[0], pow(g, -1, stage.radix)))

    def after(self, power: SSAValue, g: int) -> SSAValue:
        """The next power of a number below the prime."""
        return self.b.index(self.b.rem(self.b.mul(power, g), self.stage.radix))


@functools.lru_cache(maxsize=1024)
def generator(prime: int) -> int:
    """The least number whose powers are all numbers below a prime."""
    rest, factors = prime - 1, set[int]()
    for factor in range(2, isqrt(prime) + 1):
        while rest % factor == 0:
            rest //= factor
            factors.add(factor)
    factors |= {rest} - {1}
    return next(
        g for g in range(2, prime) if all(pow(g, (prime - 1) // f, prime) != 1 for f in factors)
    )


def _factors(prime: int) -> tuple[Any, Any]:
    """What the transforms of a cyclic convolution are multiplied with: that of the roots, then ones."""
    powers = [1]
    while len(powers) < prime - 1:
        powers.append(powers[-1] * pow(generator(prime), -1, prime) % prime)
    real, imaginary = roots(np.array(powers), prime)
    line = np.fft.fft(real - 1j * imaginary) / (prime - 1)
    ones = np.ones(prime - 1)
    return np.concatenate([line.real, ones]), np.concatenate([-line.imag, 0 * ones])
