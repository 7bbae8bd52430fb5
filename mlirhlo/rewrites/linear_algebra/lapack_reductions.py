"""Routines of `lapack-expander` that reduce matrices column by column: `geqp3`, `gehrd`, `sytrd`, and `gtsv`."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.rewrites.legalize.indexed_loops import S32
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import (
    diagonal,
    over_batch,
    triangle,
    with_diagonal,
)
from mlirhlo.rewrites.linear_algebra.qr_expander import reflect_column, reflection


def pivoted_qr(graph: Graph, a: Value, pivots: Value) -> tuple[Value, Value, Value]:
    """`geqp3`: R above the reflectors, 1-based pivots, tau; columns of non-zero `pivots` come first."""
    batch, (m, n) = a.sizes[:-2], a.sizes[-2:]
    is_free = pivots.compare("EQ", 0)
    places = graph.iota(S32, pivots.sizes, len(batch))
    order = graph.sort([is_free.convert(S32), places], len(batch))[1]
    fixed = is_free.select(0, graph.full(S32, pivots.sizes, 1)).reduce("add", (len(batch),))
    # Column k of the result is column order[k] of the matrix.
    sizes = (*batch, m, n, n)
    rank = len(sizes)
    from_ = graph.iota(S32, sizes, rank - 2)
    to = order.broadcast_in_dim(sizes, (*range(len(batch)), rank - 1))
    moved = a.broadcast_in_dim(sizes, range(rank - 1))
    zeros = graph.full(a.type, sizes)
    a = from_.compare("EQ", to).select(moved, zeros).reduce("add", (rank - 2,))
    taus = graph.full(a.type, (*batch, min(m, n)))

    def column(inner: Graph, k: Value, state: Sequence[Value]) -> list[Value]:
        a, order, taus, fixed = state
        longest = _longest(inner, a, k)
        longest = fixed.compare("GT", k).select(k, longest)
        a = _swapped(inner, a, k, longest, a.rank - 1)
        order = _swapped(inner, order, k, longest, order.rank - 1)
        return [*_in_order(reflect_column(inner, a, taus, k), order), fixed]

    a, order, taus, _ = graph.for_each(min(m, n), [a, order, taus, fixed], column)
    return a, order + 1, taus


def _in_order(reflected: tuple[Value, Value], order: Value) -> list[Value]:
    a, taus = reflected
    return [a, order, taus]


def _longest(graph: Graph, a: Value, k: Value) -> Value:
    """The first of the columns from k on that are longest below row k."""
    rank, n = a.rank, a.sizes[-1]
    sizes = a.abs()
    below = graph.iota(S32, a.sizes, rank - 2).compare("GE", k)
    sizes = below.select(sizes, graph.full(sizes.type, a.sizes))
    # Squares neither overflow nor vanish when divided by the largest magnitude first.
    largest = sizes.reduce("maximum", (rank - 2, rank - 1))
    scale = largest.compare("EQ", 0).select(1, largest)
    part = sizes / over_batch(scale, sizes.sizes)
    lengths = (part * part).reduce("add", (rank - 2,))
    places = graph.iota(S32, lengths.sizes, rank - 2)
    lengths = places.compare("LT", k).select(-1, lengths)
    top = over_batch(lengths.reduce("maximum", (rank - 2,), -1), lengths.sizes)
    found = lengths.compare("EQ", top).select(places, graph.full(S32, places.sizes, n))
    first = found.reduce("minimum", (rank - 2,), n)
    return first.compare("EQ", n).select(k, first)


def _swapped(graph: Graph, a: Value, k: Value, other: Value, dim: int) -> Value:
    """With two slices exchanged along the last dimension; `other` is one number a batch element."""
    places = graph.iota(S32, a.sizes, dim)
    there = over_batch(other, a.sizes)
    zeros = graph.full(a.type, a.sizes)

    def taken(where: Value) -> Value:
        slice_ = where.select(a, zeros).reduce("add", (dim,))
        return slice_.broadcast_in_dim(a.sizes, range(dim))

    is_here, is_there = places.compare("EQ", k), places.compare("EQ", there)
    return is_here.select(taken(is_there), is_there.select(taken(is_here), a))


def hessenberg(graph: Graph, a: Value, low: int, high: int) -> tuple[Value, Value]:
    """`gehrd` on rows and columns `low…high`, 1-based: H above the reflectors, tau."""
    batch, n = a.sizes[:-2], a.sizes[-1]
    taus = graph.full(a.type, (*batch, max(n - 1, 0)))

    def column(inner: Graph, number: Value, state: Sequence[Value]) -> list[Value]:
        a, taus = state
        k = number + (low - 1)
        j = k + 1
        x = a.dynamic_slice_minor([inner.scalar(S32, 0), k], (n, 1)).reshape(*batch, n)
        row = inner.iota(S32, x.sizes, len(batch))
        is_inside = row.compare("LT", high)
        v, tau, beta = reflection(inner, is_inside.select(x, inner.full(x.type, x.sizes)), j)
        rows = inner.iota(S32, a.sizes, a.rank - 2)
        columns = inner.iota(S32, a.sizes, a.rank - 1)
        zeros = inner.full(a.type, a.sizes)
        upright, flat = v.reshape(*batch, n, 1), v.conjugate().reshape(*batch, 1, n)
        taken = rows.compare("LT", high).select(a, zeros).matmul(upright).matmul(flat)
        a = a - taken * over_batch(tau, a.sizes)
        taken = upright.matmul(flat.matmul(columns.compare("GT", k).select(a, zeros)))
        a = a - taken * over_batch(tau.conjugate(), a.sizes)
        own = row.compare("EQ", j).select(over_batch(beta, x.sizes), v)
        own = (row.compare("GT", k) & is_inside).select(own, x)
        a = columns.compare("EQ", k).select(own.broadcast_in_dim(a.sizes, range(a.rank - 1)), a)
        return [a, taus.update_minor(tau.reshape(*batch, 1), [k])]

    a, taus = graph.for_each(max(high - low, 0), [a, taus], column)
    return a, taus


def tridiagonal(graph: Graph, a: Value, lower: bool) -> tuple[Value, Value, Value, Value]:
    """`sytrd`, `hetrd`: the factored matrix, diagonal, off-diagonal, tau; reads one triangle."""
    rank, batch, n = a.rank, a.sizes[:-2], a.sizes[-1]
    if not lower:
        # The upper form is the lower one of the matrix rotated by 180 degrees.
        out, d, e, taus = tridiagonal(graph, a.reverse(rank - 2, rank - 1), True)
        last = rank - 2
        return out.reverse(rank - 2, rank - 1), d.reverse(last), e.reverse(last), taus.reverse(last)
    below = triangle(a, "GT").select(a, graph.full(a.type, a.sizes))
    real = diagonal(a).real()
    zeros = graph.full(real.type, real.sizes)
    full = with_diagonal(below + below.swap().conjugate(), _typed(real, zeros, a))
    e = graph.full(real.type, (*batch, max(n - 1, 0)))
    taus = graph.full(a.type, e.sizes)

    def column(inner: Graph, k: Value, state: Sequence[Value]) -> list[Value]:
        full, out, e, taus = state
        j = k + 1
        x = full.dynamic_slice_minor([inner.scalar(S32, 0), k], (n, 1)).reshape(*batch, n)
        v, tau, beta = reflection(inner, x, j)
        upright, flat = v.reshape(*batch, n, 1), v.conjugate().reshape(*batch, 1, n)
        full = full - upright.matmul(flat.matmul(full)) * over_batch(tau.conjugate(), full.sizes)
        full = full - full.matmul(upright).matmul(flat) * over_batch(tau, full.sizes)
        row = inner.iota(S32, x.sizes, len(batch))
        old = out.dynamic_slice_minor([inner.scalar(S32, 0), k], (n, 1)).reshape(*batch, n)
        own = row.compare("EQ", j).select(over_batch(beta, x.sizes), v)
        own = row.compare("GT", k).select(own, old)
        columns = inner.iota(S32, out.sizes, out.rank - 1)
        spread = own.broadcast_in_dim(out.sizes, range(out.rank - 1))
        out = columns.compare("EQ", k).select(spread, out)
        e = e.update_minor(beta.real().reshape(*batch, 1), [k])
        return [full, out, e, taus.update_minor(tau.reshape(*batch, 1), [k])]

    full, out, e, taus = graph.for_each(max(n - 1, 0), [full, a, e, taus], column)
    d = diagonal(full).real()
    return with_diagonal(out, _typed(d, graph.full(d.type, d.sizes), a)), d, e, taus


def _typed(real: Value, zeros: Value, like: Value) -> Value:
    return real.complex(zeros) if like.type.is_complex else real


def solve_tridiagonal(
    graph: Graph, dl: Value, d: Value, du: Value, b: Value
) -> tuple[Value, Value, Value, Value, Value]:
    """`gtsv`: the second upper diagonal, diagonal and upper of U, the solution, info.

    The first of `dl` and the last of `du` are not read.
    """
    batch, n, count = d.sizes[:-1], d.sizes[-1], b.sizes[-1]
    rank = len(batch)

    def shifted(value: Value, first: int) -> Value:
        kept = value.slice_minor((first, first + n - 1))
        return kept.pad([*((0, 0) for _ in batch), (0, 1)])

    dl, du = shifted(dl, 1), shifted(du, 0)
    x = b.pad([*((0, 0) for _ in batch), (0, 2), (0, 0)])

    def at(value: Value, k: Value) -> Value:
        return value.dynamic_slice_minor([k], (1,))

    def row(graph: Graph, value: Value, k: Value) -> Value:
        return value.dynamic_slice_minor([k, graph.scalar(S32, 0)], (1, count))

    def over_row(value: Value) -> Value:
        return value.broadcast_in_dim((*batch, 1, count), range(rank + 1))

    def eliminate(inner: Graph, k: Value, state: Sequence[Value]) -> list[Value]:
        dl, d, du, x, info = state
        after = k + 1
        below, own, above = at(dl, k), at(d, k), at(du, k)
        next_, beyond = at(d, after), at(du, after)
        mine, other = row(inner, x, k), row(inner, x, after)
        stays = own.abs().compare("GE", below.abs())
        is_zero = stays & own.compare("EQ", 0)
        top = stays.select(below, own)
        bottom = stays.select(own, below)
        bottom = bottom.compare("EQ", 0).select(1, bottom)
        factor = top / bottom
        zeros = inner.full(d.type, below.sizes)
        factor = is_zero.select(zeros, factor)
        d = d.update_minor(stays.select(own, below), [k])
        d = d.update_minor(stays.select(next_ - factor * above, above - factor * next_), [after])
        du = du.update_minor(stays.select(above, next_), [k])
        du = du.update_minor(stays.select(beyond, -(factor * beyond)), [after])
        kept = is_zero.select(below, zeros)
        dl = dl.update_minor(stays.select(kept, beyond), [k])
        times, wide = over_row(factor), over_row(stays)
        x = x.update_minor(wide.select(mine, other), [k, 0])
        solved = wide.select(other - times * mine, mine - times * other)
        x = x.update_minor(solved, [after, 0])
        flat = is_zero.reshape(*batch) & info.compare("EQ", 0)
        return [dl, d, du, x, flat.select(after, info)]

    info = graph.full(S32, batch)
    dl, d, du, x, info = graph.for_each(n - 1, [dl, d, du, x, info], eliminate)
    last = d.slice_minor((n - 1, n)).reshape(*batch).compare("EQ", 0) & info.compare("EQ", 0)
    info = last.select(n, info)

    def substitute(inner: Graph, number: Value, state: Sequence[Value]) -> list[Value]:
        dl, d, du, x = state
        k = inner.scalar(S32, n - 1) - number
        rest = row(inner, x, k) - over_row(at(du, k)) * row(inner, x, k + 1)
        rest = rest - over_row(at(dl, k)) * row(inner, x, k + 2)
        return [dl, d, du, x.update_minor(rest / over_row(at(d, k)), [k, 0])]

    dl, d, du, x = graph.for_each(n, [dl, d, du, x], substitute)
    x = x.slice_minor((0, n), (0, count))
    # The last of the upper diagonal may have become a negative zero.
    places = graph.iota(S32, du.sizes, rank)
    du = places.compare("LT", n - 1).select(du, graph.full(du.type, du.sizes))
    return dl, d, du, x, info
