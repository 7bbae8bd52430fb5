"""Arithmetic on scalars and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp
from typing import Any, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects import math
from xdsl.dialects.builtin import (
    IndexType,
    f32,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects import arith
from mlirhlo.dialects.interned import integer64
from mlirhlo.lowering.builder.base import BlockBuilder
from mlirhlo.lowering.builder.byte_quotients import inverse_parts, is_byte
from mlirhlo.lowering.builder.types import (
    EXACT,
    NO_OVERFLOW,
    WITH_OVERFLOW,
    element_of,
    like,
)
from mlirhlo.lowering.target import current

_MULTIPLIES = frozenset({"fma", "neon"})
"""Features with an instruction for `x * y + z`."""


class ArithmeticBuilder(BlockBuilder):
    """Every method takes scalars or vectors."""

    def _two(self, cls: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        properties: dict[str, Attribute] | None = None
        if cls in WITH_OVERFLOW:
            properties = {"overflowFlags": NO_OVERFLOW}
        return self.emit(cls, (lhs, rhs), lhs.type, properties)

    def _float(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        flags: xarith.FastMathFlagsAttr = EXACT,
    ) -> SSAValue:
        return self.emit(cls, operands, operands[0].type, {"fastmath": flags})

    def addf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x + y`."""
        return self._float(xarith.AddfOp, (x, y))

    def subf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x - y`."""
        return self._float(xarith.SubfOp, (x, y))

    def mulf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x * y`."""
        return self._float(xarith.MulfOp, (x, y))

    def divf(self, x: SSAValue, y: SSAValue, flags: xarith.FastMathFlagsAttr = EXACT) -> SSAValue:
        """`x / y`; by products where they are exact: with powers of two, of bytes as f32 with most constants."""
        divisor = self._floats.get(y)
        if divisor is not None:
            if frexp(divisor)[0] == 0.5 and 2**-100 < divisor < 2**100:
                return self.mulf(x, self.constant(1 / divisor, y.type))
            if element_of(y.type) is f32 and _MULTIPLIES & current().features and is_byte(x):
                parts = inverse_parts(divisor)
                if parts is not None:
                    high, low = (self.constant(part, y.type) for part in parts)
                    return self.fma(x, high, self.mulf(x, low))
        return self._float(xarith.DivfOp, (x, y), flags)

    def negf(self, x: SSAValue) -> SSAValue:
        """`-x`."""
        return self._float(xarith.NegfOp, (x,))

    def fma(self, x: SSAValue, y: SSAValue, z: SSAValue) -> SSAValue:
        """`x * y + z`, rounded once."""
        return self._float(math.FmaOp, (x, y, z))

    def one(self, cls: type[Operation], x: SSAValue) -> SSAValue:
        """An op of `math` with one float operand: `SqrtOp`, `FloorOp`, `AbsFOp`, …"""
        return self._float(cls, (x,))

    def maximumf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The greater, NaN when one is."""
        return self._float(xarith.MaximumfOp, (x, y))

    def minimumf(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """The lesser, NaN when one is."""
        return self._float(xarith.MinimumfOp, (x, y))

    def addi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x + y`, wrapping."""
        return self._two(xarith.AddiOp, x, y)

    def subi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x - y`, wrapping."""
        return self._two(xarith.SubiOp, x, y)

    def muli(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x * y`, wrapping."""
        return self._two(xarith.MuliOp, x, y)

    def andi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Bitwise and."""
        return self._two(xarith.AndIOp, x, y)

    def ori(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Bitwise or."""
        return self._two(xarith.OrIOp, x, y)

    def xori(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Bitwise exclusive or."""
        return self._two(xarith.XOrIOp, x, y)

    def shli(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Shift left by less than the width."""
        return self._two(xarith.ShLIOp, x, y)

    def shrui(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Shift right by less than the width, zeros in front."""
        return self._two(xarith.ShRUIOp, x, y)

    def shrsi(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Shift right by less than the width, signs in front."""
        return self._two(xarith.ShRSIOp, x, y)

    def integer(self, cls: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        """Another op of `arith` on two integers: `DivSIOp`, `MaxSIOp`, …"""
        return self._two(cls, x, y)

    def cmpf(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """Compares floats: `oeq`, `olt`, `une`, …"""
        number = arith.CmpfOp.PREDICATES.index(predicate)
        return self.emit(
            arith.CmpfOp,
            (x, y),
            like(x.type, i1),
            {"predicate": integer64(number), "fastmath": EXACT},
        )

    def cmpi(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """Compares integers: `eq`, `slt`, `ult`, …"""
        number = arith.CmpiOp.PREDICATES.index(predicate)
        return self.emit(arith.CmpiOp, (x, y), like(x.type, i1), {"predicate": integer64(number)})

    def select(self, mask: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x` where the mask is set, else `y`."""
        return self.emit(arith.SelectOp, (mask, x, y), x.type)

    def cast(self, cls: type[Operation], x: SSAValue, element: Attribute) -> SSAValue:
        """A conversion of `arith` to another element type: `ExtFOp`, `SIToFPOp`, …"""
        return self.emit(cls, (x,), like(x.type, element))

    def bitcast(self, x: SSAValue, element: Attribute) -> SSAValue:
        """The same bits as another element type of that width."""
        return self.emit(arith.BitcastOp, (x,), like(x.type, element))

    def cast_index(self, x: SSAValue, element: Attribute, *, signed: bool = True) -> SSAValue:
        """Between `index` and integers."""
        cls = arith.IndexCastOp
        if not signed and isinstance(element, IndexType):
            # Widened with zeros first: an index cast copies the sign.
            if cast(Any, element_of(x.type)).width.data < 64:
                x = self.cast(arith.ExtUIOp, x, i64)
        return self.emit(cls, (x,), like(x.type, element))
