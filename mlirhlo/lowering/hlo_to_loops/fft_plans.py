"""Transforms of any length out of those that go in stages, with the same way to run each.

A transform of n numbers that is long is one of n = r c numbers in two dimensions, so that what it works on
stays in the caches:

    X[k + r l] = sum over j < c of root(c)^(j l) root(n)^(j k) sum over i < r of root(r)^(i k) x[j + c i]

One whose length has a large prime factor is a convolution (Bluestein), which is a product between two
transforms of m >= 2 n - 1 numbers, for which a good length is chosen:

    j k = (j^2 + k^2 - (k - j)^2) / 2,   X[k] = w[k] sum over j of w[j] x[j] w[k-j]*,   w[j] = root(2 n)^(j^2)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any, Protocol

import numpy as np
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder, Index, vector_of
from mlirhlo.lowering.hlo_to_loops.fft_lines import Line, Pair, roots, times
from mlirhlo.lowering.hlo_to_loops.fft_stages import Roots, Stages, is_cyclic, radices
from mlirhlo.lowering.hlo_to_loops.transposes import turned

LONGEST = 1 << 14
"""Numbers of a line that goes in stages: longer ones do not stay in the caches."""
_MOST = 1 << 24
"""Numbers of a line on its own."""
_MOST_CONVOLVED = 1 << 17
"""Numbers of the transforms of a convolution, whose two tables are a part of the program."""


class Plan(Protocol):
    """How a transform goes."""

    def run(
        self,
        source: Line,
        rooms: Sequence[Line],
        target: Line | None,
        scale: float,
        width: Index | None = None,
    ) -> Line:
        """As `Stages.run`."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """What all transforms of a kernel share, and whether it is of one line or of lines side by side."""

    b: FunctionBuilder
    tables: Roots
    lanes: int
    sign: int
    across: bool = False


def room(count: int, lanes: int, *, across: bool) -> int | None:
    """Numbers of each of the two rooms of a transform of `count` numbers; None where there is no plan."""
    stages = radices(count, across=across and count <= LONGEST)
    if stages is None:
        length = convolved(count, count)
        return None if length is None else room(length, lanes, across=across)
    if across:
        spare = max((radix for radix in stages if is_cyclic(radix)), default=0)
        return (count + spare) * lanes if count <= LONGEST else None
    if count <= LONGEST:
        return count + 2 * lanes
    if count > _MOST or (sides := _sides(count)) is None:
        return None
    padded = [-(-n // lanes) * lanes for n in sides]
    return padded[0] * padded[1] + (max(sides) + 2) * lanes


def plan(kind: Kind, count: int, results: int | None = None) -> Plan:
    """A transform for which `room` has room; `results`: how many of its numbers are used, the first ones."""
    if radices(count, across=kind.across and count <= LONGEST) is None:
        return Convolved(kind, count, results or count)
    if count > LONGEST:
        return Long(kind, count)
    return Stages(kind.b, kind.tables, kind.lanes, count, kind.sign, across=kind.across)


@functools.lru_cache(maxsize=1024)
def convolved(count: int, results: int) -> int | None:
    """The length of the transforms of a convolution of `count` numbers of which the first `results` are used,
    by what their stages read."""
    least = count + results - 1
    if least > _MOST_CONVOLVED:
        return None
    power = 1 << (least - 1).bit_length()
    good = sorted(odd << twos for odd in _ODD for twos in range(18))
    found = [(n, stages) for n in good if least <= n <= power and (stages := radices(n))]
    return min(found, key=lambda v: v[0] * (1 + len(v[1])))[0]


_ODD = (1, 3, 5, 7, 9, 11, 13, 15)
"""Times powers of two, these are lengths of the transforms of convolutions."""


@functools.lru_cache(maxsize=1024)
def _sides(count: int) -> tuple[int, int] | None:
    """Rows and columns of the lengths that make a long one, as much of a square as there is."""
    rows = next(n for n in range(isqrt(count), 0, -1) if count % n == 0)
    return (rows, count // rows) if count // rows <= LONGEST else None


@dataclass(frozen=True, slots=True)
class Long:
    """A line on its own as a matrix: along its columns, times roots, turned, along its columns again."""

    kind: Kind
    count: int

    def run(
        self,
        source: Line,
        rooms: Sequence[Line],
        target: Line | None,
        scale: float,
        width: Index | None = None,
    ) -> Line:
        """As `Stages.run`."""
        kind = self.kind
        b, lanes = kind.b, kind.lanes
        sides = _sides(self.count)
        assert sides is not None
        assert width is None
        rows, columns = sides
        middle, there = rooms[0], target or rooms[1]
        step = -(-rows // lanes) * lanes
        tail = step * (-(-columns // lanes) * lanes)
        small = [Line(line.memory, line.at(tail), lanes) for line in rooms]
        along = Kind(b, kind.tables, lanes, kind.sign, across=True)
        with self.blocks(columns) as (first, few):
            here = Line(source.memory, b.add(source.first, first), columns)
            done = plan(along, rows).run(here, small, None, 1.0, few)
            self.turn(done, first, rows, middle, step)
        with self.blocks(rows) as (first, few):
            here = Line(middle.memory, b.add(middle.first, first), step)
            end = Line(there.memory, b.add(there.first, first), rows)
            plan(along, columns).run(here, small, end, scale, few)
        return there

    @contextmanager
    def blocks(self, count: int) -> Generator[tuple[Index, Index | None]]:
        """Vectors of neighbouring lines: where each starts, and how many there are, where not all are whole."""
        b, lanes = self.kind.b, self.kind.lanes
        with b.loop(0, count, lanes) as first:
            yield first, b.minimum(b.sub(count, first), lanes) if count % lanes else None

    def turn(self, done: Line, first: Index, rows: int, middle: Line, step: int) -> None:
        """Columns from `first` on times their roots, as rows of the middle.

        The power of column `g s + r` in row k is that of `g s` times that of r: two short tables.
        """
        kind = self.kind
        b, lanes = kind.b, kind.lanes
        columns = self.count // rows
        near = max(lanes, 1 << (isqrt(columns).bit_length() - 1))
        far = -(-columns // near)
        fine = kind.tables.powers(self.count, rows, near, 1)
        coarse = kind.tables.powers(self.count, far, rows, near)
        group, offset = b.mul(b.div(first, near), rows), b.rem(first, near)

        def block(k: Index, count: int) -> None:
            found: list[Pair] = []
            for at in range(count):
                row = b.add(k, at)
                one = [b.vector_load(v, [b.add(b.mul(row, near), offset)], lanes) for v in fine]
                other = [b.broadcast(b.load(v, [b.add(group, row)]), lanes) for v in coarse]
                value = times(b, done.load(row), (one[0], one[1]), kind.sign)
                found.append(times(b, value, (other[0], other[1]), kind.sign))
            parts = [turned(b, [v[part] for v in found], lanes) for part in (0, 1)]
            for at, value in enumerate(zip(*parts, strict=True)):
                place = b.add(b.mul(b.add(first, at), step), k)
                middle.store(place, value, count if count < lanes else None)

        whole = rows - rows % lanes
        if whole:
            with b.loop(0, whole, lanes) as k:
                block(k, lanes)
        if rows > whole:
            block(whole, rows - whole)


@dataclass(frozen=True, slots=True)
class Convolved:
    """A length with a large prime factor, as a convolution: there and back are one loop, of conjugates."""

    kind: Kind
    count: int
    results: int

    def run(
        self,
        source: Line,
        rooms: Sequence[Line],
        target: Line | None,
        scale: float,
        width: Index | None = None,
    ) -> Line:
        """As `Stages.run`."""
        kind, n = self.kind, self.count
        b = kind.b
        length = convolved(n, self.results)
        assert length is not None
        factors = kind.tables.of(
            f"mlirhlo_chirp_{n}_{length}", 2 * length, partial(_factors, n, length)
        )
        start = rooms[0]

        def begin(j: Index, count: int | None) -> None:
            value = source.load(j, width if kind.across else count)
            start.store(j, times(b, value, self.row(factors, j, count), -kind.sign))

        def empty(j: Index, _: int | None) -> None:
            zero = b.constant(0.0, vector_of(f64, kind.lanes))
            start.store(j, (zero, zero))

        self.each(0, n, begin)
        self.each(n if kind.across else -(-n // kind.lanes) * kind.lanes, length, empty)
        with b.loop(0, 2) as way:
            here = plan(kind, length).run(start, rooms[::-1], None, 1.0)
            table = b.mul(b.sub(1, way), length)

            def multiply(k: Index, count: int | None) -> None:
                factor = self.row(factors, b.add(table, k), count)
                real, imaginary = times(b, here.load(k, count), factor, kind.sign)
                start.store(k, (real, b.negf(imaginary)), count)

            self.each(0, length, multiply)
        if target is None and scale == 1.0:
            return start
        there = target or start

        def end(k: Index, count: int | None) -> None:
            real, imaginary = start.load(k, count)
            factor = b.constant(scale, real.type)
            value = b.mulf(real, factor), b.mulf(imaginary, factor)
            there.store(k, value, width if kind.across and target else count)

        self.each(0, self.results, end)
        return there

    def each(self, first: int, last: int, body: Callable[[Index, int | None], None]) -> None:
        """Numbers of lines side by side, or vectors of those of one line and what is left of a vector."""
        b = self.kind.b
        step = 1 if self.kind.across else self.kind.lanes
        whole = last - (last - first) % step
        if whole > first:
            with b.loop(first, whole, step) as at:
                body(at, None)
        if last > whole:
            body(whole, last - whole)

    def row(self, table: Sequence[SSAValue], at: Index, count: int | None) -> Pair:
        """Numbers of a table, one for all lines or a vector of them; what is not there is zero."""
        b, lanes = self.kind.b, self.kind.lanes
        if self.kind.across:
            real, imaginary = (b.broadcast(b.load(v, [at]), lanes) for v in table)
        else:
            mask = None if count is None else b.mask(b.index(count), lanes)
            real, imaginary = (b.vector_load(v, [at], lanes, mask) for v in table)
        return real, imaginary


def _factors(count: int, length: int) -> tuple[Any, Any]:
    """What both transforms of a convolution are multiplied with, each `length` numbers: the last one first.

    Those are the conjugates of `w` of this file's head, and the transform of `w` on both sides of its start,
    conjugate and divided by the length.
    """
    real, imaginary = roots(np.arange(count) ** 2, 2 * count)
    line = np.zeros(length, np.complex128)
    line[:count] = real + 1j * imaginary
    last = np.conj(line)
    line[length - count + 1 :] = line[count - 1 : 0 : -1]
    values = np.concatenate([last, np.conj(np.fft.fft(line)) / length])
    return values.real, values.imag
