"""`fft-expander`: transforms of long lines by those of short ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, pi
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import integers, string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.ops import FftOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass, expand_to_call
from mlirhlo.rewrites.legalize.indexed_loops import plain
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_C128, _F64, _S64 = (PRIMITIVE_TYPES[name] for name in ("c128", "f64", "s64"))
_LONGEST = 1024
"""Numbers of a line that stays one transform."""


@rule(FftOp, contract="rounding")
def transform_of_long_lines(op: FftOp, rewriter: Rewriter) -> None:
    """fft(x), fft_length={n}, n long => call(x), transforms of lines of sqrt(n), or of a power of two for a prime n"""
    operand, result, lengths = op.input_shapes[0], op.shape, tuple(op.fft_length)
    options = rewriter.options
    expander = options.expander if isinstance(options, Callees) else None
    longest = expander.longest if isinstance(expander, FftExpanderPass) else _LONGEST
    if max(lengths, default=0) <= longest:
        return
    if not isinstance(operand, ArrayShape) or not isinstance(result, ArrayShape):
        return
    have = (*lengths[:-1], lengths[-1] // 2 + 1) if op.fft_type == "IRFFT" else lengths
    if operand.is_dynamic or 0 in operand.dimensions or operand.dimensions[-len(have) :] != have:
        return

    def build(graph: Graph) -> Value:
        lines = _Lines(graph, longest, is_inverse=op.fft_type in ("IFFT", "IRFFT"))
        x = graph.parameter(operand).in_layout(plain(operand.element_type, operand.dimensions))
        return lines.all(x, op.fft_type, lengths, result.element_type).in_layout(result)

    key = ("fft", op.fft_type, lengths, str(operand), str(result), longest)
    expand_to_call(op, rewriter, key, "fft", build)


class _Lines:
    """Transforms along the last dimension, in double precision."""

    def __init__(self, graph: Graph, longest: int, *, is_inverse: bool) -> None:
        self.graph, self.longest, self.is_inverse = graph, longest, is_inverse
        self.sign = 1 if is_inverse else -1

    def all(self, x: Value, kind: str, lengths: Sequence[int], type_: PrimitiveType) -> Value:
        """A transform of several dimensions and of any kind."""
        last = x.rank - 1
        others = range(last + 1 - len(lengths), last)
        if x.type.is_complex:
            x = x.convert(_C128)
        else:
            x = x.convert(_F64)
            x = x.complex(self.graph.full(_F64, x.sizes))
        if kind == "IRFFT":
            for dim in others:
                x = self.along(x, dim)
            x = self.line(self.whole(x, lengths[-1])).real()
        else:
            x = self.line(x)
            if kind == "RFFT":
                x = x.slice_minor((0, lengths[-1] // 2 + 1))
            for dim in others:
                x = self.along(x, dim)
        return x.convert(type_)

    def along(self, x: Value, dim: int) -> Value:
        """Transforms of another dimension."""
        order = list(range(x.rank))
        order[dim], order[-1] = order[-1], order[dim]
        return self.line(x.transpose(*order)).transpose(*order)

    def whole(self, x: Value, count: int) -> Value:
        """The numbers that the first half of a real transform implies: conjugates, in reverse."""
        rest = x.slice_minor((1, (count + 1) // 2))
        return self.graph.concatenate([x, rest.conjugate().reverse(x.rank - 1)], x.rank - 1)

    def line(self, x: Value) -> Value:
        """Transforms of lines of any length, of the inverse kind divided by it."""
        count = x.sizes[-1]
        if count <= self.longest:
            kind = string("IFFT" if self.is_inverse else "FFT")
            shape = plain(_C128, x.sizes)
            return self.graph.make(
                "fft", x, shape=shape, fft_type=kind, fft_length=integers((count,))
            )
        rows = next(r for r in range(isqrt(count), 0, -1) if count % r == 0)
        return self.convolved(x) if rows == 1 else self.in_two(x, rows)

    def in_two(self, x: Value, rows: int) -> Value:
        """Lines as matrices, transformed along both dimensions:

        X[k + r l] = sum over j < c of root(c)^(j l) root(n)^(j k) sum over i < r of root(r)^(i k) x[j + c i]
        """
        *batch, count = x.sizes
        columns = count // rows
        x = self.line(x.reshape(*batch, rows, columns).swap())
        j, k = (self.graph.iota(_S64, (columns, rows), dim) for dim in (0, 1))
        x = x * self.roots(j * k, count).broadcast(batch)
        return self.line(x.swap()).swap().reshape(*batch, count)

    def convolved(self, x: Value) -> Value:
        """A convolution with w^-1, which is a product between transforms of a power of two (Bluestein):

        j k = (j^2 + k^2 - (k - j)^2) / 2,   X[k] = w[k] sum over j of w[j] x[j] / w[k-j],   w[j] = root(2 n)^(j^2)
        """
        graph, (*batch, count) = self.graph, x.sizes
        size = 1 << (2 * count - 2).bit_length()
        numbers = graph.iota(_S64, (count,))
        squares = (numbers * numbers).elementwise("remainder", 2 * count)
        w = self.roots(squares, 2 * count)
        there, back = (_Lines(graph, self.longest, is_inverse=inverse) for inverse in (False, True))
        fill = graph.full(_C128, (size - 2 * count + 1,))
        around = w.slice((1, count)).reverse(0)
        chirp = graph.concatenate([w.conjugate(), fill, around.conjugate()], 0)
        padding = [*((0, 0) for _ in batch), (0, size - count)]
        first = there.line((x * w.broadcast(batch)).pad(padding))
        product = first * there.line(chirp).broadcast(batch)
        found = back.line(product).slice_minor((0, count)) * w.broadcast(batch)
        return found * complex(1 / count) if self.is_inverse else found

    def roots(self, powers: Value, order: int) -> Value:
        """Powers of the root of one of an order."""
        angles = powers.convert(_F64) * (self.sign * 2 * pi / order)
        return angles.elementwise("cosine").complex(angles.elementwise("sine"))


@dataclass(frozen=True)
class FftExpanderPass(ExpanderPass):
    """Writes transforms of long lines by transforms of many short ones, which run side by side.

    Before and after:

        %y = c64[6000]{0} fft(%x), fft_type=FFT, fft_length={6000}
          =>   %y = c64[6000]{0} call(%x), to_apply=%fft     transforms of 80 lines of 75 numbers, and of 75 of 80

    Lines become matrices whose sides are as equal as divisors allow, again while a side is long; a line of a prime
    length is a convolution, by transforms of a power of two. Numbers between are c128. Source: Bailey, "FFTs in
    external or hierarchical memory"; Bluestein, "A linear filtering approach to the computation of discrete Fourier
    transform".
    """

    name = "fft-expander"
    longest: int = _LONGEST
    """Numbers of a line that stays one transform."""
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (transform_of_long_lines,)
