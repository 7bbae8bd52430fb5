"""Complex numbers of Fourier transforms in memory and in registers, where they are always f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, f64
from xdsl.ir import SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.lowering.builder import FunctionBuilder, Index, element_of, lanes_of

Pair: TypeAlias = "tuple[SSAValue, SSAValue]"
"""Real and imaginary parts, in vectors of f64."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Complex numbers: in two buffers of f64, or in one of any floats as pairs or as real parts alone."""

    b: FunctionBuilder
    lanes: int
    buffers: Sequence[SSAValue]
    is_real: bool = False
    """Of one buffer, whether it holds real parts: what is read has imaginary parts of 0."""

    def load(self, index: Index, count: Index | None = None) -> Pair:
        """`lanes` numbers from one on, or only `count` of them."""
        if len(self.buffers) == 2:
            first, second = (self._vector(v, index, 1, count) for v in self.buffers)
            return first, second
        if self.is_real:
            value = self._vector(self.buffers[0], index, 1, count)
            return value, self.b.constant(0.0, value.type)
        both = self._vector(self.buffers[0], index, 2, count)
        real, imaginary = (
            self.b.shuffle(both, both, range(part, 2 * self.lanes, 2)) for part in (0, 1)
        )
        return real, imaginary

    def _vector(self, buffer: SSAValue, index: Index, parts: int, count: Index | None) -> SSAValue:
        b, lanes = self.b, parts * self.lanes
        mask = None if count is None else b.mask(b.index(b.mul(count, parts)), lanes)
        value = b.vector_load(buffer, [b.mul(index, parts)], lanes, mask)
        return value if element_of(value.type) == f64 else b.cast(casts.ExtFOp, value, f64)

    def store(self, index: Index, value: Pair, count: Index | None = None) -> None:
        """Stores what `load` loads."""
        if len(self.buffers) == 2:
            for buffer, part in zip(self.buffers, value, strict=True):
                self._store(buffer, index, part, 1, count)
        elif self.is_real:
            self._store(self.buffers[0], index, value[0], 1, count)
        else:
            sides = [lane for at in range(self.lanes) for lane in (at, self.lanes + at)]
            both = self.b.shuffle(*value, sides)
            self._store(self.buffers[0], index, both, 2, count)

    def _store(
        self, buffer: SSAValue, index: Index, value: SSAValue, parts: int, count: Index | None
    ) -> None:
        b = self.b
        element = cast("MemRefType[Any]", buffer.type).element_type
        mask = None if count is None else b.mask(b.index(b.mul(count, parts)), lanes_of(value.type))
        if element != f64:
            value = b.cast(casts.TruncFOp, value, element)
        b.vector_store(value, buffer, [b.mul(index, parts)], mask)


@dataclass(frozen=True, slots=True)
class Line:
    """Numbers of a transform in memory: number p is at `first + p * step`."""

    memory: Memory
    first: Index = 0
    step: int = 1

    def at(self, position: Index) -> Index:
        """Where a number is."""
        b = self.memory.b
        return b.add(self.first, b.mul(position, self.step))

    def load(self, position: Index, count: Index | None = None) -> Pair:
        """A vector of neighbours in memory from a number on."""
        return self.memory.load(self.at(position), count)

    def store(self, position: Index, value: Pair, count: Index | None = None) -> None:
        """Stores such a vector."""
        self.memory.store(self.at(position), value, count)


def times(b: FunctionBuilder, x: Pair, root: Pair, sign: int) -> Pair:
    """`x` times a root of one whose imaginary part has a sign of its own."""
    (re, im), (cosine, sine) = x, root
    turned = (b.negf(im), re) if sign > 0 else (im, b.negf(re))
    real = b.fma(turned[0], sine, b.mulf(re, cosine))
    return real, b.fma(turned[1], sine, b.mulf(im, cosine))


def small_transform(b: FunctionBuilder, x: Sequence[Pair], sign: int) -> list[Pair]:
    """`y[k] = sum of x[j] e^(sign 2 pi i j k / n)` for a power of two, or a prime, of numbers."""
    count = len(x)
    if count == 1:
        return list(x)
    if count % 2:
        return _odd_transform(b, x, sign)
    even, odd = (small_transform(b, x[part::2], sign) for part in (0, 1))
    odd = [_turned(b, v, k, count, sign) for k, v in enumerate(odd)]
    sums = [_each(b.addf, v, w) for v, w in zip(even, odd, strict=True)]
    return sums + [_each(b.subf, v, w) for v, w in zip(even, odd, strict=True)]


def _each(function: Callable[[SSAValue, SSAValue], SSAValue], x: Pair, y: Pair) -> Pair:
    return function(x[0], y[0]), function(x[1], y[1])


def _turned(b: FunctionBuilder, x: Pair, k: int, count: int, sign: int) -> Pair:
    """`x e^(sign 2 pi i k / count)`, for less than half a turn."""
    if k == 0:
        return x
    across = (b.negf(x[1]), x[0]) if sign > 0 else (x[1], b.negf(x[0]))
    if 4 * k == count:
        return across
    if 8 * k in (count, 3 * count):
        half = b.constant(sqrt(0.5), x[0].type)
        both = _each(b.addf if 8 * k == count else b.subf, across, x)
        return b.mulf(both[0], half), b.mulf(both[1], half)
    cosine, sine = (b.constant(float(v), x[0].type) for v in roots(k, count))
    return times(b, x, (cosine, sine), sign)


def _odd_transform(b: FunctionBuilder, x: Sequence[Pair], sign: int) -> list[Pair]:
    """By sums and differences of what is as far from the first number on both sides."""
    count = len(x)
    sides = range(1, count // 2 + 1)
    sums = [_each(b.addf, x[j], x[count - j]) for j in sides]
    differences = [_each(b.subf, x[j], x[count - j]) for j in sides]
    first = x[0]
    for both in sums:
        first = _each(b.addf, first, both)
    y = [first] * count
    type_ = x[0][0].type
    for k in sides:
        middle, aside = x[0], None
        for j, both, difference in zip(sides, sums, differences, strict=True):
            cosine, sine = (b.constant(float(v), type_) for v in roots(j * k, count))
            middle = b.fma(both[0], cosine, middle[0]), b.fma(both[1], cosine, middle[1])
            aside = (
                (b.mulf(difference[0], sine), b.mulf(difference[1], sine))
                if aside is None
                else (b.fma(difference[0], sine, aside[0]), b.fma(difference[1], sine, aside[1]))
            )
        assert aside is not None
        across = (b.negf(aside[1]), aside[0]) if sign > 0 else (aside[1], b.negf(aside[0]))
        y[k], y[count - k] = _each(b.addf, middle, across), _each(b.subf, middle, across)
    return y


def roots(numerators: Any, count: int) -> tuple[Any, Any]:
    """Real and imaginary parts of `e^(2 pi i numerator / count)`, computed of an eighth of a turn at most."""
    quarters, rest = np.divmod(4 * (np.asarray(numerators) % count), count)
    is_late = 2 * rest > count
    angle = np.pi / 2 * (np.where(is_late, count - rest, rest) / count)
    near, far = np.cos(angle), np.sin(angle)
    x, y = np.where(is_late, far, near), np.where(is_late, near, far)
    return (
        np.choose(quarters, [x, -y, -x, y]) + 0.0,
        np.choose(quarters, [y, x, -y, -x]) + 0.0,
    )
