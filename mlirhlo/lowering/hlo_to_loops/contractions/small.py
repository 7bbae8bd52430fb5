"""Contractions of few products for each place of a batch (points times rotations, states times Jacobians):
written out, without loops, packing or masks. Sums are vectors of a result's columns where operands have
those side by side, or can be turned in registers, and numbers else.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.builder import FunctionBuilder, vector_of
from mlirhlo.lowering.hlo_to_loops.contractions.finish import Finisher
from mlirhlo.lowering.hlo_to_loops.contractions.function import KernelFunction, shares
from mlirhlo.lowering.hlo_to_loops.contractions.inner import plus_product
from mlirhlo.lowering.hlo_to_loops.contractions.operands import Reader, places_of, transposed
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction
from mlirhlo.lowering.hlo_to_loops.elements import register_type
from mlirhlo.lowering.hlo_to_loops.kernel_frame import values_between
from mlirhlo.lowering.hlo_to_loops.work import is_plain

_MOST_PRODUCTS = 128
"""Instructions that a place of the batch may take: what is written out costs compile time."""
_MOST_IN_TURN = 16
"""Products that one number is the sum of: vectors along the depth have more of them at a time."""
_FEWEST_PLACES = 16
_PRODUCT_NS = 0.15


def is_small(c: Contraction, function: KernelFunction, lanes: int) -> bool:
    """Whether these kernels are the right ones for it; `lanes`: of a whole vector.

    Neither for complex numbers, nor for factors that are computed, padded or dilated, nor where what is
    fused after single sums is dear.
    """
    width = _width(c, lanes)
    results = c.count(c.rows) * c.count(c.columns)
    products = results * c.count(c.depth) // max(width, 1)
    after = values_between([o.value for o in function.outputs], [*function.memory, c.result.value])
    is_cheap = all(is_plain(v.owner) for v in after if isinstance(v.owner, Instruction))
    return (
        products <= _MOST_PRODUCTS
        and c.count(c.batch) >= _FEWEST_PLACES
        and c.arithmetic.parts == 1
        and c.lhs.is_linear
        and c.rhs.is_linear
        and (width > 0 or (is_cheap and c.count(c.depth) <= _MOST_IN_TURN))
    )


def small_kernel(function: KernelFunction, c: Contraction, lanes: int) -> FuncOp:
    """The function, filled and finished, of a contraction that `is_small`."""
    b, memory, buffers = function.b, function.memory, function.buffers
    width = _width(c, lanes)
    finisher = Finisher(function, c, width)
    count = c.count(c.batch)
    products = c.count(c.rows) * c.count(c.columns) * c.count(c.depth)
    left = Reader.of(b, c, c.lhs, c.arithmetic.lhs, memory, buffers)
    right = Reader.of(b, c, c.rhs, c.arithmetic.rhs, memory, buffers)
    with shares(b, count, _PRODUCT_NS * products * count) as (low, high), b.loop(low, high) as task:
        batch = places_of(b, c, c.batch, task)
        for row, sums in enumerate(_sums(b, c, left.at(batch), right.at(batch), width)):
            for number, value in enumerate(sums):
                finisher.finish_sums(batch, row, number, (value,))
    return b.finish()


def _width(c: Contraction, lanes: int) -> int:
    """Columns in a vector: all of them, or 0."""
    columns = c.count(c.columns)
    if columns not in (4, 8, 16) or columns > lanes:
        return 0
    (column,) = c.columns
    _, strides = c.rhs.strides() if c.rhs.is_linear else (0, {})
    return columns if _stride(c, strides, column) == 1 or _turns(c, strides) else 0


def _turns(c: Contraction, strides: dict[int, int]) -> bool:
    """Whether the right factors of a place are a square whose rows are columns of the result."""
    is_square = len(c.depth) == 1 and c.sizes[c.depth[0]] == c.count(c.columns)
    return is_square and _stride(c, strides, c.depth[0]) == 1


def _stride(c: Contraction, strides: dict[int, int], axis: int) -> int:
    return strides.get(c.origins.get(axis, (axis,))[-1], 0)


def _sums(
    b: FunctionBuilder, c: Contraction, left: Reader, right: Reader, width: int
) -> Sequence[Sequence[SSAValue]]:
    """For each row the sums of its columns, one vector or numbers."""
    depth = [places_of(b, c, c.depth, d) for d in range(c.count(c.depth))]
    rights = _right(b, c, right, width)
    total = register_type(c.arithmetic.total)
    zero = b.constant(0, vector_of(total, width) if width else total)
    found: list[Sequence[SSAValue]] = []
    for row in range(c.count(c.rows)):
        reader = left.at(places_of(b, c, c.rows, row))
        sums = [zero] * len(rights[0])
        for place, factors in zip(depth, rights, strict=True):
            (x,) = reader.at(place).load(-1, 0, 0)
            x = b.broadcast(x, width) if width else x
            sums = [plus_product(b, c, x, y, s) for y, s in zip(factors, sums, strict=True)]
        found.append(sums)
    return found


def _right(
    b: FunctionBuilder, c: Contraction, reader: Reader, width: int
) -> Sequence[Sequence[SSAValue]]:
    """For each unit of the depth its right factors, one vector or numbers."""
    depth = [places_of(b, c, c.depth, d) for d in range(c.count(c.depth))]
    columns = [places_of(b, c, c.columns, n) for n in range(c.count(c.columns))]
    if not width:
        return [[reader.at(d | n).load(-1, 0, 0)[0] for n in columns] for d in depth]
    (column,) = c.columns
    _, strides = c.rhs.strides()
    if _stride(c, strides, column) == 1:
        return [list(reader.at(d).load(column, 0, width)) for d in depth]
    (axis,) = c.depth
    return [[v] for v in transposed(b, [reader.at(n).load(axis, 0, width)[0] for n in columns])]
