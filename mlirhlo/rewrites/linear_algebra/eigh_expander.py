"""`eigh_expander`: eigenvalues of Hermitian matrices by Jacobi rotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_to_call
from mlirhlo.rewrites.legalize.indexed_loops import S32
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import (
    diagonal,
    identity,
    over_batch,
    triangle,
    with_diagonal,
)
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_Quadrants: TypeAlias = tuple[Value, Value, Value, Value]
"""Top left, top right, bottom left, bottom right of a matrix, all square."""


@rule(CustomCallOp, contract="rounding")
def eigh_by_rotations(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(a), "Eigh" => call(a), Jacobi rotations of n / 2 pairs of rows at a time"""
    shape = op.input_shapes[0] if len(op.inputs) == 1 else None
    if op.custom_call_target != "Eigh" or not isinstance(shape, ArrayShape):
        return
    if shape.is_dynamic or shape.rank < 2 or 0 in shape.dimensions:
        return
    if not isinstance(op.shape, TupleShape) or len(op.shape.elements) != 2:
        return
    options = _options(op)

    def build(graph: Graph) -> Value:
        return graph.tuple(*eigh(graph, graph.parameter(shape), *options))

    expand_to_call(op, rewriter, (str(shape), options), "eigh", build)


def _options(op: CustomCallOp) -> tuple[bool, bool, int, float]:
    """Which triangle is read, whether values are sorted, most sweeps, tolerance. Raises HLO0410."""
    try:
        lower, sort, sweeps, tolerance = op.backend_config.split(",")
        return bool(int(lower)), bool(int(sort)), int(sweeps), float(tolerance)
    except ValueError as problem:
        raise error(
            "HLO0410",
            f"eigh_expander: %{op.instruction_name} has the options {op.backend_config!r}",
            help="they are: lower (0 or 1), sorted (0 or 1), most sweeps, tolerance; as '1,1,100,1e-6'",
        ) from problem


def eigh(
    graph: Graph, a: Value, lower: bool, sort: bool, sweeps: int, tolerance: float
) -> tuple[Value, Value]:
    """Vectors as columns, and values."""
    batch, n = a.sizes[:-2], a.sizes[-1]
    if n == 1:
        return graph.full(a.type, a.sizes, 1), a.real().reshape(*batch, 1)
    a = _symmetric(a, lower)
    parts = a.real().abs()
    if a.type.is_complex:
        parts = parts.maximum(a.imag().abs())
    largest = parts.reduce("maximum", (a.rank - 2, a.rank - 1))
    scale = largest.compare("EQ", 0).select(1, largest)
    a = a / over_batch(_as(scale, a), a.sizes)
    half = -(-n // 2)
    if n % 2:  # a row and a column of zeros, which no rotation moves
        a = a.pad([*((0, 0) for _ in batch), (0, 1), (0, 1)])
    w = _quarters(a, half)
    eye = identity(graph, a.type, (*batch, half, half))
    zeros = graph.full(a.type, eye.sizes)
    state = [graph.scalar(S32, 0), *w, eye, zeros, zeros, eye]

    def goes_on(inner: Graph, state: Sequence[Value]) -> Value:
        count, *blocks = state
        whole, off = _norms(inner, (blocks[0], blocks[1], blocks[2], blocks[3]))
        bound = whole * (tolerance * tolerance)
        pred = PRIMITIVE_TYPES["pred"]
        rest = bound.compare("LT", off)
        some = rest.reduce("or", range(rest.rank), False) if rest.rank else rest
        assert some.type is pred
        return count.compare("LT", sweeps) & some

    def sweep(inner: Graph, state: Sequence[Value]) -> list[Value]:
        count, *blocks = state
        return [count + 1, *inner.for_each(2 * half - 1, blocks, lambda g, _, s: _round(g, s))]

    _, *blocks = graph.while_loop(state, goes_on, sweep)
    values = graph.concatenate([diagonal(blocks[0].real()), diagonal(blocks[3].real())], a.rank - 2)
    vectors = _joined(graph, blocks[4:])
    if n % 2:
        values = values.slice_minor((0, n))
        vectors = vectors.slice_minor((0, n), (0, n))
    vectors = vectors.swap().conjugate()
    values = values * over_batch(scale, values.sizes)
    if sort:
        at = (*range(len(batch)), a.rank - 1)
        spread = values.broadcast_in_dim(vectors.sizes, at)
        ordered, vectors = _sorted(graph, spread, vectors)
        values = diagonal(ordered)
    return vectors, values


def _sorted(graph: Graph, values: Value, vectors: Value) -> tuple[Value, Value]:
    first, second = graph.sort([values, vectors], vectors.rank - 1)
    return first, second


def _as(real: Value, like: Value) -> Value:
    """A real value in the type of another."""
    return real.complex(real.graph.full(real.type, real.sizes)) if like.type.is_complex else real


def _symmetric(a: Value, lower: bool) -> Value:
    """One triangle of `a`, and the other as its mirror."""
    mirrored = a.swap().conjugate()
    found = triangle(a, "GE" if lower else "LE").select(a, mirrored)
    return with_diagonal(found, _as(diagonal(a.real()), a)) if a.type.is_complex else found


def _quarters(a: Value, half: int) -> _Quadrants:
    low, high = (0, half), (half, 2 * half)
    return (
        a.slice_minor(low, low),
        a.slice_minor(low, high),
        a.slice_minor(high, low),
        a.slice_minor(high, high),
    )


def _joined(graph: Graph, parts: Sequence[Value]) -> Value:
    last = parts[0].rank - 1
    rows = [graph.concatenate(parts[k : k + 2], last) for k in (0, 2)]
    return graph.concatenate(rows, last - 1)


def _norms(graph: Graph, w: _Quadrants) -> tuple[Value, Value]:
    """Sums of squares, of all elements and of those off the diagonal."""

    def squares(x: Value) -> Value:
        return (x * x.conjugate()).real()

    def off(x: Value) -> Value:
        return triangle(x, "EQ").select(0, x)

    tl, tr, bl, br = w
    dims = (tl.rank - 2, tl.rank - 1)
    whole = squares(tl) + squares(tr) + squares(bl) + squares(br)
    rest = squares(off(tl)) + squares(tr) + squares(bl) + squares(off(br))
    return whole.reduce("add", dims), rest.reduce("add", dims)


def _round(graph: Graph, state: Sequence[Value]) -> list[Value]:
    """Rotates the pairs on the quadrants' diagonals, then lets the next ones meet there."""
    tl, tr, bl, br, *v = state
    first, second, c, s = _rotations(graph, tl, tr, br)
    rank = tl.rank
    by_rows, by_columns = range(rank - 1), (*range(rank - 2), rank - 1)
    cr, sr = (x.broadcast_in_dim(tl.sizes, by_rows) for x in (c, s))
    cc, sc = (x.broadcast_in_dim(tl.sizes, by_columns) for x in (c, s))

    def rows(a: Value, b: Value, p: Value, q: Value) -> _Quadrants:
        turned = sr.conjugate()
        return a * cr - p * turned, b * cr - q * turned, a * sr + p * cr, b * sr + q * cr

    tl, tr, bl, br = rows(tl, tr, bl, br)
    turned = sc.conjugate()
    tl, tr = tl * cc - tr * sc, tl * turned + tr * cc
    bl, br = bl * cc - br * sc, bl * turned + br * cc
    zeros = graph.full(first.type, first.sizes)
    tl, br = with_diagonal(tl, first), with_diagonal(br, second)
    tr, bl = with_diagonal(tr, zeros), with_diagonal(bl, zeros)
    tl, tr = _moved(graph, tl, tr, rank - 1)
    bl, br = _moved(graph, bl, br, rank - 1)
    tl, bl = _moved(graph, tl, bl, rank - 2)
    tr, br = _moved(graph, tr, br, rank - 2)
    vtl, vtr, vbl, vbr = rows(*v)
    vtl, vbl = _moved(graph, vtl, vbl, rank - 2)
    vtr, vbr = _moved(graph, vtr, vbr, rank - 2)
    return [tl, tr, bl, br, vtl, vtr, vbl, vbr]


def _rotations(graph: Graph, tl: Value, tr: Value, br: Value) -> _Quadrants:
    """Both eigenvalues, cosine and sine of each 2x2 matrix of diagonal elements."""
    a, b, d = diagonal(tl.real()), diagonal(tr), diagonal(br.real())
    phase: Value | None = None
    if b.type.is_complex:
        size = b.abs()
        ones = graph.full(b.type, b.sizes, 1)
        # A zero needs no turning; it must not be divided by.
        phase = size.compare("EQ", 0).select(ones, b.conjugate() / _as(size, b))
        b = size
    import ml_dtypes

    tau = (d - a) / (b + b)
    root = (tau * tau + 1).sqrt()
    one = graph.full(tau.type, tau.sizes, 1)
    t = one / (tau + tau.compare("GE", 0).select(root, -root))
    tiny = 0.1 * float(cast(Any, ml_dtypes).finfo(tau.type.dtype).eps)
    small = b.abs().compare("LE", a.abs().minimum(d.abs()) * tiny)
    t = small.select(0, t)
    c = one / (t * t + 1).sqrt()
    s = t * c
    first, second = a - t * b, d + t * b
    if phase is not None:
        return _as(first, tl), _as(second, tl), _as(c, tl), _as(s, tl) * phase
    return first, second, c, s


def _moved(graph: Graph, one: Value, other: Value, dim: int) -> tuple[Value, Value]:
    """The players' next places in a tournament in which everyone meets everyone."""
    k = one.sizes[dim]
    if k <= 1:
        return one, other

    def cut(value: Value, start: int, end: int) -> Value:
        parts = [(0, n) for n in value.sizes]
        parts[dim] = (start, end)
        return value.slice(*parts)

    top = [cut(one, 0, 1), cut(other, 0, 1), cut(one, 1, k - 1)]
    bottom = [cut(other, 1, k), cut(one, k - 1, k)]
    return graph.concatenate(top, dim), graph.concatenate(bottom, dim)


@dataclass(frozen=True)
class EighExpanderPass(ExpanderPass):
    """Writes eigendecompositions of Hermitian matrices by Jacobi rotations.

    Before and after:

        %e = (f32[4,4], f32[4]) custom-call(%a), custom_call_target="Eigh", backend_config="1,1,100,1e-6"
          =>   %e = (f32[4,4], f32[4]) call(%a), to_apply=%eigh

    Sweeps over all pairs of rows, n / 2 of them at a time, until what is off the diagonal is smaller than the
    tolerance times the whole. A vector's sign, or phase, is as the rotations leave it. Options that are not
    four numbers are error HLO0410. Source: XLA's pass; Brent and Luk, "The solution of singular-value and
    symmetric eigenvalue problems on multiprocessor arrays".
    """

    name = "eigh_expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (eigh_by_rotations,)
