"""LAPACK's routines on small real matrices, as loops: a call of the library takes longer than they do.

Matrices stand in memory as LAPACK has them, column by column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import math
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import FunctionBuilder, Index, Loop
from mlirhlo.lowering.hlo_to_loops.lapack import Call

_MOST_PRODUCTS = 512
"""That loops over single numbers are quicker for than a call; more are worth the library's vectors."""


def is_small(c: Call, products: int) -> bool:
    """Whether loops are to do it: few products (order times order times columns), of real numbers."""
    return not c.is_complex and products <= _MOST_PRODUCTS


def _less(
    b: FunctionBuilder,
    start: SSAValue,
    first: Index,
    end: Index,
    pair: Callable[[Index], tuple[SSAValue, SSAValue]],
) -> SSAValue:
    """`start` less the sum of products of pairs."""
    with b.loop(first, end, 1, [start]) as loop:
        x, y = pair(loop.index)
        loop.carry(b.fma(b.negf(x), y, loop.carried[0]))
    return cast(Loop, loop).results[0]


def potrf(c: Call, n: int, a: SSAValue, info: SSAValue) -> None:
    """Cholesky's factor over one triangle; `info`: the order of the first minor that is not positive, or 0.

    for j:   l[j, j] = sqrt(a[j, j] - |l[j, :j]|^2)
             l[i, j] = (a[i, j] - l[i, :j] . l[j, :j]) / l[j, j]   for i below j
    """
    b = c.b
    is_lower = c.triangle == "L"

    def at(i: Index, j: Index) -> list[Index]:
        row, column = (i, j) if is_lower else (j, i)
        return [b.add(row, b.mul(column, n))]

    def rest(i: Index, j: Index) -> SSAValue:
        def pair(k: Index) -> tuple[SSAValue, SSAValue]:
            return b.load(a, at(i, k)), b.load(a, at(j, k))

        return _less(b, b.load(a, at(i, j)), 0, j, pair)

    zero = b.constant(0.0, c.real)
    b.store(b.constant(0, i64), info, [0])
    with b.loop(0, n) as j:
        pivot = rest(j, j)
        _note_first(b, b.cmpf("ogt", pivot, zero), j, info)
        root = b.one(math.SqrtOp, pivot)
        b.store(root, a, at(j, j))
        with b.loop(b.add(j, 1), n) as i:
            b.store(b.divf(rest(i, j), root), a, at(i, j))


def getrf(c: Call, m: int, n: int, a: SSAValue, pivots: SSAValue, info: SSAValue) -> None:
    """Factors of the matrix with its rows exchanged, the largest first; `info`: the first pivot that is 0.

    for j:   exchange rows j and p, whose |a[p, j]| is the largest from j on
             l[i, j] = a[i, j] / a[j, j];   a[i, j+1:] -= l[i, j] * a[j, j+1:]   for i below j
    """
    b = c.b

    def at(i: Index, j: Index) -> list[Index]:
        return [b.add(i, b.mul(j, m))]

    def size(i: Index, j: Index) -> SSAValue:
        return b.one(math.AbsFOp, b.load(a, at(i, j)))

    zero = b.constant(0.0, c.real)
    b.store(b.constant(0, i64), info, [0])
    with b.loop(0, min(m, n)) as j:
        with b.loop(b.add(j, 1), m, 1, [size(j, j), j]) as loop:
            most, place = loop.carried
            found = size(loop.index, j)
            is_more = b.cmpf("ogt", found, most)
            loop.carry(b.select(is_more, found, most), b.select(is_more, loop.index, place))
        row = cast(Loop, loop).results[1]
        b.store(b.cast_index(b.index(b.add(row, 1)), i64), pivots, [j])
        with b.loop(0, n) as k:
            x, y = b.load(a, at(j, k)), b.load(a, at(row, k))
            b.store(y, a, at(j, k))
            b.store(x, a, at(row, k))
        pivot = b.load(a, at(j, j))
        is_fine = b.cmpf("une", pivot, zero)
        _note_first(b, is_fine, j, info)
        with b.loop(b.add(j, 1), m) as i:
            value = b.load(a, at(i, j))
            factor = b.select(is_fine, b.divf(value, pivot), value)
            b.store(factor, a, at(i, j))
            with b.loop(b.add(j, 1), n) as k:
                b.store(
                    b.fma(b.negf(factor), b.load(a, at(j, k)), b.load(a, at(i, k))), a, at(i, k)
                )


def _note_first(b: FunctionBuilder, is_fine: SSAValue, j: Index, info: SSAValue) -> None:
    """`info` becomes j + 1 where that is not fine and all before were."""
    before = b.load(info, [0])
    order = b.cast_index(b.index(b.add(j, 1)), i64)
    first = b.select(b.cmpi("eq", before, b.constant(0, i64)), order, before)
    b.store(b.select(is_fine, before, first), info, [0])


def trsm(
    c: Call, letters: tuple[str, str, str, str], m: int, n: int, a: SSAValue, x: SSAValue
) -> None:
    """x with op(a) x = b or x op(a) = b, over b; `letters`: side, triangle, transposition, diagonal.

    for i in order:   x[i, :] = (b[i, :] - sum over known k of t[i, k] * x[k, :]) / t[i, i]
    """
    b = c.b
    side, triangle, transposition, diagonal = letters
    left = side == "L"
    order, columns = (m, n) if left else (n, m)
    turned = (transposition != "N") == left
    is_lower = (triangle == "L") != turned

    def factor(i: Index, k: Index) -> SSAValue:
        row, column = (k, i) if turned else (i, k)
        return b.load(a, [b.add(row, b.mul(column, order))])

    def at(i: Index, column: Index) -> list[Index]:
        row, other = (i, column) if left else (column, i)
        return [b.add(row, b.mul(other, m))]

    with b.loop(0, columns) as column, b.loop(0, order) as step:
        i = step if is_lower else b.sub(order - 1, step)
        first, end = (0, i) if is_lower else (b.add(i, 1), order)

        def pair(k: Index, i: Index = i, column: Index = column) -> tuple[SSAValue, SSAValue]:
            return factor(i, k), b.load(x, at(k, column))

        rest = _less(b, b.load(x, at(i, column)), first, end, pair)
        b.store(rest if diagonal == "U" else b.divf(rest, factor(i, i)), x, at(i, column))
