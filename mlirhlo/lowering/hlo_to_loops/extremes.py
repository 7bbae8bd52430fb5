"""The greater and the lesser of floats: NaN where one is, and +0 above -0.

AVX-512 has an instruction that knows the order of zeros but drops NaNs: with the sum where a NaN is, that
is half of what the general form takes.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.x86vector import MaskRangeOp
from mlirhlo.lowering.builder import FunctionBuilder, element_of, lanes_of
from mlirhlo.lowering.target import current

_LEAST, _GREATEST = 4, 5
"""The instruction's numbers for the two, signs and all."""


_MASKS = {lanes: IntegerType(lanes) for lanes in (8, 16)}


def maximum(b: FunctionBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The greater, NaN when one is."""
    return _range(b, x, y, _GREATEST) if has_range(x) else b.maximumf(x, y)


def minimum(b: FunctionBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The lesser, NaN when one is."""
    return _range(b, x, y, _LEAST) if has_range(x) else b.minimumf(x, y)


def has_range(x: SSAValue) -> bool:
    """Whether the processor has the instruction for values of this type: whole vectors of f32 and f64."""
    bits = getattr(element_of(x.type), "bitwidth", 0)
    return (lanes_of(x.type), bits) in ((16, 32), (8, 64)) and current().has("avx512dq")


def _range(b: FunctionBuilder, x: SSAValue, y: SSAValue, how: int) -> SSAValue:
    every = b.constant(-1, _MASKS[lanes_of(x.type)])
    numbers = [b.constant(n, i32) for n in (how, 4)]
    found = b.emit(MaskRangeOp, (x, x, y, every, *numbers), x.type)
    return b.select(b.cmpf("uno", x, y), b.addf(x, y), found)
