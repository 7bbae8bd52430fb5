"""What the elementary functions are written in: floats of one type, in all lanes at once.

    n = Numbers(b, x.type)
    y = n.fma(x, n.c(2.0), n.c(1.0))

Everything is arithmetic, comparisons and selects on values; nothing calls a library.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import Float32Type, IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.x86 import PermuteOp, ReciprocalRootOp
from mlirhlo.dialects.x86vector import MaskScaleFOp
from mlirhlo.lowering.builder import EXACT, FunctionBuilder, element_of, lanes_of, like
from mlirhlo.lowering.hlo_to_loops.math_coefficients import TABLES
from mlirhlo.lowering.target import current

INFINITY = float("inf")
NAN = float("nan")


class Numbers:
    """Arithmetic on f32 or f64; `single`: f64 that is rounded to f32 in the end."""

    def __init__(self, b: FunctionBuilder, type_: Attribute, *, single: bool = False) -> None:
        self.b = b
        self.type = type_
        self.is_f32 = isinstance(element_of(type_), Float32Type)
        self.single = single
        self.precision = "f32" if self.is_f32 else "single" if single else "f64"
        self.mantissa = 23 if self.is_f32 else 52
        self.bias = 127 if self.is_f32 else 1023
        self.least_normal = 2.0**-126 if self.is_f32 else 2.0**-1022
        self.word = like(type_, i32 if self.is_f32 else i64)
        """Type of the bits."""
        self.add, self.sub, self.mul, self.div = b.addf, b.subf, b.mulf, b.divf
        self.neg, self.fma, self.select = b.negf, b.fma, b.select
        self.max, self.min = b.maximumf, b.minimumf

    def c(self, number: float) -> SSAValue:
        """A constant, rounded to the type."""
        if self.is_f32:
            number = struct.unpack("f", struct.pack("f", number))[0]
        return self.b.constant(number, self.type)

    def at_most(self, x: SSAValue, most: float) -> SSAValue:
        """The lesser of `x` and a number other than 0, NaN for NaN: one instruction where the general
        minimum takes six."""
        limit = self.c(most)
        return self.select(self.b.cmpf("ogt", x, limit), limit, x)

    def at_least(self, x: SSAValue, least: float) -> SSAValue:
        """The greater in the same way."""
        limit = self.c(least)
        return self.select(self.b.cmpf("olt", x, limit), limit, x)

    def i(self, number: int) -> SSAValue:
        """A constant among the bits."""
        return self.b.constant(number, self.word)

    def table(self, name: str) -> Sequence[float]:
        """Coefficients of this precision."""
        return TABLES[f"{name}.{self.precision}"]

    def poly(self, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
        """Horner's rule."""
        result = self.c(coefficients[-1])
        for number in reversed(coefficients[:-1]):
            result = self.b.fma(result, x, self.c(number))
        return result

    def poly_of_square(
        self, x: SSAValue, square: SSAValue, coefficients: Sequence[float]
    ) -> SSAValue:
        """The same polynomial out of pairs: Horner's rule in x*x, which takes half as long."""
        *pairs, last = [coefficients[k : k + 2] for k in range(0, len(coefficients), 2)]
        result = self.poly(x, last)
        for pair in reversed(pairs):
            result = self.fma(result, square, self.poly(x, pair))
        return result

    def cmp(self, predicate: str, x: SSAValue, y: SSAValue | float) -> SSAValue:
        """Compares with a value or a number."""
        return self.b.cmpf(predicate, x, y if isinstance(y, SSAValue) else self.c(y))

    def abs(self, x: SSAValue) -> SSAValue:
        """|x|."""
        return self.b.one(math.AbsFOp, x)

    def sqrt(self, x: SSAValue) -> SSAValue:
        """Rounded as IEEE says."""
        return self.b.one(math.SqrtOp, x)

    @property
    def can_estimate_roots(self) -> bool:
        """Whether `root_estimate` takes an instruction a vector: AVX-512, whole vectors."""
        return lanes_of(self.type) in ((16,) if self.is_f32 else (8, 16)) and current().has(
            "avx512dq"
        )

    def root_estimate(self, x: SSAValue) -> SSAValue:
        """1 / sqrt(x) of a normal number, within 2**-14 of it."""
        b, lanes = self.b, lanes_of(self.type)
        whole = 16 if self.is_f32 else 8
        if lanes == whole:
            return b.emit(ReciprocalRootOp, (x,), x.type)
        halves = [b.shuffle(x, x, range(at, at + whole)) for at in (0, whole)]
        low, high = (b.emit(ReciprocalRootOp, (half,), half.type) for half in halves)
        return b.shuffle(low, high, range(lanes))

    def near_inverse_root(self, x: SSAValue) -> SSAValue:
        """1 / sqrt(x) of a normal number of f64, within 2**-40 of it; anything of 0 and infinity.

        An exact root takes three times as long as an estimate and a step of Halley's.
        """
        if not self.can_estimate_roots:
            return self.div(self.c(1.0), self.sqrt(x))
        estimate = self.root_estimate(x)
        error = self.fma(self.neg(self.mul(x, estimate)), estimate, self.c(1.0))
        step = self.fma(error, self.c(0.375), self.c(0.5))
        return self.fma(self.mul(estimate, error), step, estimate)

    @property
    def has_exp2(self) -> bool:
        """Whether the processor has an instruction for 2**x, of 2 ULP."""
        return self.is_f32 and current().has("ptx80")

    def exp2(self, x: SSAValue) -> SSAValue:
        """2**x by that instruction."""
        return self.b.one(math.Exp2Op, x)

    def floor(self, x: SSAValue) -> SSAValue:
        """Rounded down."""
        return self.b.one(math.FloorOp, x)

    def rint(self, x: SSAValue) -> SSAValue:
        """The nearest whole number, even ones of two."""
        return self.b.one(math.RoundEvenOp, x)

    def trunc(self, x: SSAValue) -> SSAValue:
        """Rounded to zero."""
        return self.b.one(math.TruncOp, x)

    def with_sign(self, x: SSAValue, sign: SSAValue) -> SSAValue:
        """|x| with the sign of `sign`."""
        return self.b.emit(math.CopySignOp, (x, sign), x.type, {"fastmath": EXACT})

    def bits(self, x: SSAValue) -> SSAValue:
        """As integers."""
        return self.b.bitcast(x, element_of(self.word))

    def real(self, bits: SSAValue) -> SSAValue:
        """Integers as the floats of these bits."""
        return self.b.bitcast(bits, element_of(self.type))

    def is_negative(self, x: SSAValue) -> SSAValue:
        """Whether the sign bit is set."""
        return self.b.cmpi("slt", self.bits(x), self.i(0))

    def from_integer(self, k: SSAValue) -> SSAValue:
        """A signed integer as a number."""
        return self.b.cast(casts.SIToFPOp, k, element_of(self.type))

    def ldexp1(self, k: SSAValue) -> SSAValue:
        """2**k of integers within the exponents of normal numbers."""
        return self.real(self.b.shli(self.b.addi(k, self.i(self.bias)), self.i(self.mantissa)))

    @property
    def can_scale(self) -> bool:
        """Whether the processor multiplies by powers of two (`scaled`): AVX-512, whole vectors."""
        lanes = 16 if self.is_f32 else 8
        return lanes_of(self.type) == lanes and current().has("avx512f")

    def scaled(self, x: SSAValue, k: SSAValue) -> SSAValue:
        """x * 2**k of a whole number k, rounded once, also where the result is subnormal or too large."""
        every = self.b.constant(-1, IntegerType(lanes_of(self.type) or 1))
        return self.b.emit(MaskScaleFOp, (x, x, k, every, self.b.constant(4, i32)), x.type)

    @property
    def can_look_up(self) -> bool:
        """Whether `looked_up` takes an instruction, and its numbers are exact enough."""
        return self.can_scale and (self.is_f32 or self.single)

    def looked_up(self, numbers: Sequence[float], places: SSAValue) -> SSAValue:
        """Of one or two vectors of numbers, those at the low bits of integers."""
        lanes = lanes_of(self.type) or 1
        parts = [numbers[at : at + lanes] for at in range(0, len(numbers), lanes)]
        vectors = [self.b.lanes(part, self.type) for part in parts]
        return self.b.emit(PermuteOp, (places, *vectors), self.type)

    def nearest(self, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The whole number next to x, below 2**(mantissa - 2), and bits whose low ones count it."""
        magic = self.c(1.5 * 2.0**self.mantissa)
        shifted = self.add(x, magic)
        return self.sub(shifted, magic), self.bits(shifted)

    def any(self, mask: SSAValue) -> SSAValue:
        """Whether a lane is set."""
        return self.b.reduce("or", mask) if lanes_of(mask.type) else mask

    # Sums of two numbers

    def two_sum(self, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
        """x + y and what rounding it lost."""
        total = self.add(x, y)
        back = self.sub(total, x)
        lost = self.add(self.sub(x, self.sub(total, back)), self.sub(y, back))
        return total, lost

    def fast_two_sum(self, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The same where |x| >= |y|."""
        total = self.add(x, y)
        return total, self.sub(y, self.sub(total, x))

    def two_product(self, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
        """x * y and what rounding it lost."""
        product = self.mul(x, y)
        return product, self.fma(x, y, self.neg(product))


def extended(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """f32 as f64; f64 as it is."""
    return b.cast(casts.ExtFOp, x, f64) if isinstance(element_of(x.type), Float32Type) else x


def rounded(b: FunctionBuilder, x: SSAValue) -> SSAValue:
    """f64 rounded to f32."""
    return b.cast(casts.TruncFOp, x, f32)
