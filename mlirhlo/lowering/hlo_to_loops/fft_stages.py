"""Transforms of one dimension in vectors: Stockham's stages, each from one place to another.

    for p in 0..m, q in 0..s:           n = r m s numbers, transforms of r numbers each
      y[q + s (r p + k)] = root(r m)^(p k) * sum of x[q + s (p + m j)] root(r)^(j k)

`s` begins with 1, and every stage makes it `r` times as much. Lines that lie side by side have a lane
each. A line on its own goes in vectors of neighbouring q, but in the first stage of neighbouring p: what
that makes is turned in registers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    f64,
    i8,
    i64,
)
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.memref import GlobalOp
from mlirhlo.dialects.quick import create_op
from mlirhlo.lowering.builder import FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.fft_lines import Line, Pair, roots, small_transform, times
from mlirhlo.lowering.hlo_to_loops.fft_primes import CyclicStage, PrimeStage
from mlirhlo.lowering.hlo_to_loops.transposes import turned

_PRIMES = (17, 13, 11, 7, 5, 3)
"""Odd lengths of transforms in registers."""
_LARGE_PRIMES = (61, 59, 53, 47, 43, 41, 37, 31, 29, 23, 19)
"""Those of stages of lines side by side, above which a convolution takes less."""
_NEAR = 1 << 12
"""Numbers of a table that stands whole."""


@functools.lru_cache(maxsize=1024)
def radices(count: int, *, across: bool = False) -> Sequence[int] | None:
    """The lengths of transforms that make one of `count`; None where a prime factor is too large.

    `across`: of lines side by side.
    """
    twos = (count & -count).bit_length() - 1
    rest = count >> twos
    eights, left = divmod(twos, 3)
    fours, pairs = (1, 0) if left == 2 else (2, 0) if left and eights else (0, left)
    eights -= fours == 2
    found = [8] * eights
    large: list[int] = []
    for prime in (*_LARGE_PRIMES, *_PRIMES) if across else _PRIMES:
        while rest % prime == 0:
            rest //= prime
            (found if prime in _PRIMES else large).append(prime)
    # The first and the last stage of real numbers do half of it.
    found = [*large[:1], *found, *[4] * fours, *[2] * pairs, *large[1:]]
    if across and rest > 1 and is_cyclic(rest):
        found, rest = [rest, *found], 1
    return None if rest > 1 else found or [1]


@functools.lru_cache(maxsize=1024)
def is_cyclic(count: int) -> bool:
    """Whether a number is a prime whose stage is a cyclic convolution."""
    is_prime = all(count % factor for factor in range(2, isqrt(count) + 1))
    stages = radices(count - 1, across=True) if is_prime and count > _LARGE_PRIMES[0] else None
    return stages is not None and max(stages) <= _LARGE_PRIMES[0]


class Roots:
    """Tables of roots of one, constants of the program, for a kernel that reads them."""

    def __init__(self, b: FunctionBuilder) -> None:
        self.b = b
        self.builders: dict[str, Callable[[], Operation]] = {}
        """What makes each table, by its name: helpers of the kernel."""

    def table(self, length: int, radix: int) -> tuple[SSAValue, SSAValue]:
        """Real and imaginary parts: at `(k - 1) m + p` of `root(length)^(p k)`, for p below m = length / radix."""
        rest = length // radix
        make = partial(_powers, length, range(1, radix), range(rest))
        return self.of(f"mlirhlo_roots_{length}_{radix}", (radix - 1) * rest, make)

    def powers(self, length: int, rows: int, columns: int, step: int) -> tuple[SSAValue, SSAValue]:
        """At `j columns + k` of `root(length)^(step j k)`."""
        make = partial(_powers, length, range(0, rows * step, step), range(columns))
        return self.of(f"mlirhlo_roots_{length}_{rows}_{columns}_{step}", rows * columns, make)

    def circle(self, length: int) -> tuple[SSAValue, SSAValue]:
        """At `(j - 1) h + k - 1` of `root(length)^(j k)`, for j and k from 1 to h = (length - 1) / 2."""
        sides = range(1, length // 2 + 1)
        make = partial(_powers, length, sides, sides)
        return self.of(f"mlirhlo_circle_{length}", len(sides) ** 2, make)

    def half(self, length: int, first: Index, lanes: int, count: Index | None) -> Pair:
        """Powers of `root(length)` from one on that is a multiple of lanes, up to half the length.

        Of a long table, each is the product of a power below `_NEAR` and of one that is a multiple of it.
        """
        b, size = self.b, length // 2 + 1
        is_long = size > _NEAR
        near = min(size, _NEAR)
        fine = self.of(
            f"mlirhlo_roots_{length}", near, partial(_powers, length, range(1, 2), range(near))
        )
        mask = None if count is None else b.mask(b.index(count), lanes)
        place = b.rem(first, near) if is_long else first
        real, imaginary = (b.vector_load(v, [place], lanes, mask) for v in fine)
        if not is_long:
            return real, imaginary
        far = -(-size // near)
        make = partial(_powers, length, range(near, near + 1), range(far))
        coarse = self.of(f"mlirhlo_roots_{length}_far", far, make)
        group = [b.broadcast(b.load(v, [b.div(first, near)]), lanes) for v in coarse]
        return times(b, (real, imaginary), (group[0], group[1]), 1)

    def of(
        self, name: str, size: int, make: Callable[[], tuple[Any, Any]]
    ) -> tuple[SSAValue, SSAValue]:
        """Real and imaginary parts of as many numbers, which `make` makes."""
        b = self.b
        self.builders[name] = partial(_global, name, make)
        memory = b.emit(
            memref.GetGlobalOp, (), MemRefType(i8, [16 * size]), {"name": SymbolRefAttr(name)}
        )
        type_ = MemRefType(f64, [size])
        real, imaginary = (
            b.emit(memref.ViewOp, [memory, b.index(8 * n)], type_) for n in (0, size)
        )
        return real, imaginary


def _powers(length: int, rows: Sequence[int], columns: Sequence[int]) -> tuple[Any, Any]:
    return roots(np.outer(rows, columns), length)


def _global(name: str, make: Callable[[], tuple[Any, Any]]) -> Operation:
    data = np.stack(make()).astype("<f8").tobytes()
    value: Any = TensorType(i8, [len(data)])
    return create_op(
        GlobalOp,
        properties={
            "sym_name": StringAttr(name),
            "sym_visibility": StringAttr("private"),
            "type": MemRefType(i8, [len(data)]),
            "initial_value": DenseIntOrFPElementsAttr(value, BytesAttr(data)),
            "constant": UnitAttr(),
            "alignment": IntegerAttr(64, i64),
        },
    )


class Stages:
    """A transform of `count` numbers, of one line or of as many side by side as there are lanes."""

    def __init__(
        self, b: FunctionBuilder, tables: Roots, lanes: int, count: int, sign: int, *, across: bool
    ) -> None:
        self.b, self.tables, self.lanes = b, tables, lanes
        self.count, self.sign, self.across = count, sign, across
        found = radices(count, across=across)
        assert found is not None
        self.radices = found

    def run(
        self,
        source: Line,
        rooms: Sequence[Line],
        target: Line | None,
        scale: float,
        width: Index | None = None,
    ) -> Line:
        """From `source` by turns through two rooms to `target`, or to where it ends without one.

        The source may be the second room; of real numbers only the first half of the results is used.
        `width`: how many lines there are side by side, where they
        are fewer than lanes. The result is multiplied by `scale`.
        """
        length, done, here = self.count, 1, source
        for at, radix in enumerate(self.radices):
            is_last = at == len(self.radices) - 1
            there = rooms[at % 2]
            if is_last and target is not None:
                there = target
            self.scale = scale if is_last else 1.0
            self.here, self.there = here, there
            self.widths = [width if v in (source, target) else None for v in (here, there)]
            self.radix, self.rest, self.done = radix, length // radix, done
            self.is_half = is_last and source.memory.is_real
            self.roots = self.tables.table(length, radix) if self.rest > 1 else None
            if radix in _LARGE_PRIMES:
                PrimeStage(self).build()
            elif radix > _LARGE_PRIMES[0]:
                self.spare = [Line(v.memory, v.at(self.count), self.lanes) for v in rooms]
                CyclicStage(self).build()
            elif self.across:
                self.side_by_side()
            elif at == 0:
                self.first()
            else:
                self.along()
            length, done, here = self.rest, done * radix, there
        return here

    def of(self, count: int) -> Stages:
        """A transform of another length in the same way."""
        return Stages(self.b, self.tables, self.lanes, count, self.sign, across=self.across)

    def side_by_side(self) -> None:
        """Every lane has a line of its own."""
        b, s = self.b, self.done
        with ExitStack() as stack:
            p: Index = stack.enter_context(b.loop(0, self.rest)) if self.rest > 1 else 0
            powers = self.powers(p)
            q: Index = stack.enter_context(b.loop(0, s)) if s > 1 else 0
            x = [self.load(b.add(q, b.mul(b.add(p, self.rest * j), s))) for j in range(self.radix)]
            for k, value in enumerate(self.transformed(x, powers)):
                place = b.add(q, b.mul(b.add(b.mul(p, self.radix), k), s))
                self.there.store(place, value, self.widths[1])

    def along(self) -> None:
        """Vectors of neighbouring q."""
        b, s, lanes = self.b, self.done, self.lanes
        whole = s - s % lanes
        with ExitStack() as stack:
            p: Index = stack.enter_context(b.loop(0, self.rest)) if self.rest > 1 else 0
            powers = self.powers(p)

            def body(q: Index, count: int | None) -> None:
                x = [
                    self.load(b.add(q, b.mul(b.add(p, self.rest * j), s)))
                    for j in range(self.radix)
                ]
                for k, value in enumerate(self.transformed(x, powers)):
                    place = b.add(q, b.mul(b.add(b.mul(p, self.radix), k), s))
                    self.there.store(place, value, count)

            if whole > lanes:
                with b.loop(0, whole, lanes) as q:
                    body(q, None)
            elif whole:
                body(0, None)
            if s > whole:
                body(whole, s - whole)

    def first(self) -> None:
        """Vectors of neighbouring p, before which nothing was done; the results of each p go side by side."""
        b, lanes, rest = self.b, self.lanes, self.rest
        whole = rest - rest % lanes

        def body(p: Index, count: int | None) -> None:
            x = [self.here.load(b.add(p, rest * j), count) for j in range(self.radix)]
            powers = self.each_power(
                lambda table, k: b.vector_load(table, [b.add(p, rest * k)], lanes, mask)
            )
            y = self.transformed(x, powers)
            for k in range(0, self.radix, lanes):
                block = y[k : k + lanes]
                rows = [turned(b, [v[part] for v in block], count or lanes) for part in (0, 1)]
                for at, value in enumerate(zip(*rows, strict=True)):
                    place = b.add(b.mul(b.add(p, at), self.radix), k)
                    few = len(block) if len(block) < lanes else None
                    self.there.store(place, value, few)

        mask: SSAValue | None = None
        if whole:
            with b.loop(0, whole, lanes) as p:
                body(p, None)
        if rest > whole:
            mask = b.mask(b.index(rest - whole), lanes)
            body(whole, rest - whole)

    def load(self, position: Index) -> Pair:
        """Numbers of a later stage, or of lines side by side."""
        return self.here.load(position, self.widths[0])

    def powers(self, p: Index) -> Sequence[Pair] | None:
        """The powers of a root for one p, in every lane."""
        b = self.b

        def spread(table: SSAValue, k: int) -> SSAValue:
            return b.broadcast(b.load(table, [b.add(p, self.rest * k)]), self.lanes)

        return self.each_power(spread)

    def each_power(self, load: Callable[[SSAValue, int], SSAValue]) -> Sequence[Pair] | None:
        """Real and imaginary parts of all rows of this stage's table; None where it needs none."""
        if self.roots is None:
            return None
        real, imaginary = self.roots
        return [(load(real, k), load(imaginary, k)) for k in range(self.radix - 1)]

    def transformed(self, x: Sequence[Pair], powers: Sequence[Pair] | None) -> list[Pair]:
        """What a stage makes of its numbers."""
        b = self.b
        y = small_transform(b, x, self.sign)
        if powers is not None:
            y[1:] = [times(b, v, w, self.sign) for v, w in zip(y[1:], powers, strict=True)]
        if self.scale != 1.0:
            scale = b.constant(self.scale, y[0][0].type)
            y = [(b.mulf(re, scale), b.mulf(im, scale)) for re, im in y]
        return y
