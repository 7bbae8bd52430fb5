"""The greater and the lesser of floats: NaN where one is, and +0 above -0.

AVX-512 has an instruction that knows the order of zeros but drops NaNs: with the sum where a NaN is, that
is half of what the general form takes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from mlirhlo.dialects.x86 import MaskRangeOp
from mlirhlo.lowering.builder import FunctionBuilder, element_of, lanes_of
from mlirhlo.lowering.target import current

_LEAST, _GREATEST, _GREATEST_SIZE = 4, 5, 11
"""The instruction's numbers for the two, signs and all, and for the greater magnitude."""
_SHORTEST_BITS = 128
_HOW = {"minimum": _LEAST, "maximum": _GREATEST}


_MASKS = {lanes: IntegerType(max(lanes, 8)) for lanes in (2, 4, 8, 16)}


def maximum(b: FunctionBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The greater, NaN when one is."""
    if has_range(x):
        return _range(b, x, y, _GREATEST)
    return _of_few(b, x, y, _GREATEST) or b.maximumf(x, y)


def minimum(b: FunctionBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The lesser, NaN when one is."""
    if has_range(x):
        return _range(b, x, y, _LEAST)
    return _of_few(b, x, y, _LEAST) or b.minimumf(x, y)


def _of_few(b: FunctionBuilder, x: SSAValue, y: SSAValue, how: int) -> SSAValue | None:
    """By the instruction too, of numbers that are no vector of it: those repeated; None where it does not exist."""
    bits, count = getattr(element_of(x.type), "bitwidth", 0), lanes_of(x.type)
    if bits not in (32, 64) or not current().has("avx512dq") or count * bits > _SHORTEST_BITS:
        return None
    lanes = _SHORTEST_BITS // bits
    if not count:
        return b.extract(_range(b, b.broadcast(x, lanes), b.broadcast(y, lanes), how), 0)
    every = [at % count for at in range(lanes)]
    found = _range(b, b.shuffle(x, x, every), b.shuffle(y, y, every), how)
    return b.shuffle(found, found, range(count))


def has_range(x: SSAValue) -> bool:
    """Whether the processor has the instruction for values of this type: vectors of f32 and f64."""
    bits = getattr(element_of(x.type), "bitwidth", 0)
    is_vector = bits in (32, 64) and lanes_of(x.type) * bits in (_SHORTEST_BITS, 256, 512)
    return is_vector and current().has("avx512dq")


def of_numbers(b: FunctionBuilder, opcode: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """The `maximum` or `minimum` of vectors that have the instruction; of a number and a NaN the number."""
    return _of_numbers(b, x, y, _HOW[opcode])


def greater_size(b: FunctionBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The greater of |x| and |y|, in the same way."""
    return _of_numbers(b, x, y, _GREATEST_SIZE)


def with_nans(b: FunctionBuilder, nans: SSAValue, vectors: Sequence[SSAValue]) -> SSAValue:
    """A mask, and where a NaN is in one of the vectors: a comparison sees two of them."""
    pairs = zip(vectors[::2], [*vectors[1::2], vectors[-1]], strict=False)
    return functools.reduce(b.ori, [b.cmpf("uno", x, y) for x, y in pairs], nans)


def of_vectors(
    b: FunctionBuilder, opcode: str, vectors: Sequence[SSAValue], nans: SSAValue
) -> SSAValue:
    """Lane by lane the `maximum` or `minimum` of vectors of numbers, and NaN under a mask."""
    return _or_nan(b, nans, _joined(b, opcode, vectors))


def of_lanes(
    b: FunctionBuilder, opcode: str, vectors: Sequence[SSAValue], nans: SSAValue | None = None
) -> SSAValue:
    """The `maximum` or `minimum` of all lanes of vectors, in every lane.

    `nans`: a mask with a lane where a NaN was met, of vectors of numbers; without it, NaNs are looked for.
    """
    vector = total = _joined(b, opcode, vectors)
    lanes = distance = lanes_of(vector.type)
    while distance := distance // 2:
        turned = b.shuffle(total, total, [at ^ distance for at in range(lanes)])
        total = _of_numbers(b, total, turned, _HOW[opcode])
    if nans is None:
        nans = b.cmpf("uno", vector, vector)
    return _or_nan(b, b.reduce("or", nans), total)


def _joined(b: FunctionBuilder, opcode: str, vectors: Sequence[SSAValue]) -> SSAValue:
    return functools.reduce(lambda x, y: of_numbers(b, opcode, x, y), vectors)


def _or_nan(b: FunctionBuilder, nan: SSAValue, total: SSAValue) -> SSAValue:
    return b.select(nan, b.constant(math.nan, total.type), total)


def _range(b: FunctionBuilder, x: SSAValue, y: SSAValue, how: int) -> SSAValue:
    found = _of_numbers(b, x, y, how)
    return b.select(b.cmpf("uno", x, y), b.addf(x, y), found)


def _of_numbers(b: FunctionBuilder, x: SSAValue, y: SSAValue, how: int) -> SSAValue:
    """What the instruction does: of a number and a NaN it gives the number."""
    every = b.constant(-1, _MASKS[lanes_of(x.type)])
    numbers = [b.constant(n, i32) for n in (how, 4)]
    return b.emit(MaskRangeOp, (x, x, y, every, *numbers), x.type)
