"""`qr_expander`: QR decompositions by Householder reflections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_to_call
from mlirhlo.rewrites.legalize.indexed_loops import S32
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import identity, over_batch, triangle
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

BLOCK = 64
"""Reflections that are applied together."""


def _is_matrix(op: CustomCallOp, operands: int) -> bool:
    shape = op.input_shapes[0] if len(op.inputs) == operands else None
    return (
        isinstance(shape, ArrayShape)
        and shape.rank >= 2
        and not shape.is_dynamic
        and 0 not in shape.dimensions
        and (shape.element_type.is_float or shape.element_type.is_complex)
    )


@rule(CustomCallOp, contract="rounding")
def qr_by_reflections(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(a), "Qr" => call(a), (R above reflectors, tau), a reflection a column"""
    if op.custom_call_target not in ("Qr", "QrDecompositionBlock") or not _is_matrix(op, 1):
        return
    shape = op.input_shapes[0]
    assert isinstance(shape, ArrayShape)
    if not isinstance(op.shape, TupleShape) or len(op.shape.elements) != 2:
        return

    def build(graph: Graph) -> Value:
        return graph.tuple(*qr_factor(graph, graph.parameter(shape)))

    expand_to_call(op, rewriter, ("qr", str(shape)), "qr", build)


@rule(CustomCallOp, contract="rounding")
def product_of_reflectors(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(v, tau), "ProductOfElementaryHouseholderReflectors" => call(v, tau), reflections of 1"""
    if op.custom_call_target != "ProductOfElementaryHouseholderReflectors":
        return
    if not _is_matrix(op, 2):
        return
    shapes = op.input_shapes

    def build(graph: Graph) -> Value:
        return householder_product(graph, graph.parameter(shapes[0]), graph.parameter(shapes[1]))

    expand_to_call(op, rewriter, ("product", *map(str, shapes)), "householder_product", build)


def qr_factor(graph: Graph, a: Value) -> tuple[Value, Value]:
    """R above the reflectors, and tau.

    Many columns go in blocks: what stands beside a block is multiplied by all its reflections at once.

        (1 - tau_0 v_0 v_0ᴴ) (1 - tau_1 v_1 v_1ᴴ) … = 1 - V T Vᴴ       Source: Schreiber and Van Loan, compact WY
    """
    (m, n), count = a.sizes[-2:], min(a.sizes[-2:])
    if count <= BLOCK:
        return _factor_columns(graph, a)
    columns: list[Value] = []
    taus: list[Value] = []
    above: list[Value] = []
    """Finished rows, from the block's own columns on."""
    rest = a
    for start in range(0, count, BLOCK):
        width = min(BLOCK, count - start)
        panel, beside = (
            rest.slice_minor((0, m - start), part) for part in ((0, width), (width, n - start))
        )
        panel, tau = _factor_columns(graph, panel)
        taus.append(tau)
        if start + width < n:
            v = _reflectors(panel, width)
            t = _compact(graph, v, tau)
            along = t.conjugate().matmul(
                v.conjugate().matmul(beside, transpose=True), transpose=True
            )
            beside = beside - v.matmul(along)
        columns.append(panel)
        above.append(beside.slice_minor((0, width), (0, n - start - width)))
        rest = beside.slice_minor((width, m - start), (0, n - start - width))
    return _assembled(graph, columns, above, rest), graph.concatenate(taus, a.rank - 2)


def _assembled(
    graph: Graph, columns: Sequence[Value], above: Sequence[Value], rest: Value
) -> Value:
    """A matrix of its panels, each lower by a block than the one before, what is beside their first rows, and the
    columns behind the last of them."""
    last = rest.rank - 1
    found = rest
    for panel, beside in zip(reversed(columns), reversed(above), strict=True):
        found = graph.concatenate([beside, found], last - 1)
        found = graph.concatenate([panel, found], last)
    return found


def _reflectors(panel: Value, width: int) -> Value:
    """The columns of reflectors below ones on the diagonal, above which are zeros."""
    sizes = (*panel.sizes[:-1], width)
    part = panel.slice_minor((0, sizes[-2]), (0, width))
    zeros = panel.graph.full(panel.type, sizes)
    return triangle(part, "EQ").select(1, triangle(part, "GT").select(part, zeros))


def _compact(graph: Graph, v: Value, taus: Value) -> Value:
    """T of columns of reflectors: its column j is -tau_j T Vᴴ v_j above tau_j."""
    *batch, width = taus.sizes
    sizes = (*batch, width, width)
    gram = v.conjugate().matmul(v, transpose=True)

    def column(inner: Graph, j: Value, state: Sequence[Value]) -> list[Value]:
        t, gram, taus = state
        tau = taus.dynamic_slice_minor([j], (1,)).reshape(*batch)
        own = gram.dynamic_slice_minor([inner.scalar(S32, 0), j], (width, 1))
        found = -t.matmul(own) * over_batch(tau, (*batch, width, 1))
        row = inner.iota(S32, found.sizes, found.rank - 2)
        found = row.compare("EQ", j).select(over_batch(tau, found.sizes), found)
        found = row.compare("GT", j).select(0, found)
        return [t.update_minor(found, [0, j]), gram, taus]

    return graph.for_each(width, [graph.full(v.type, sizes), gram, taus], column)[0]


def _factor_columns(graph: Graph, a: Value) -> tuple[Value, Value]:
    batch, (m, n) = a.sizes[:-2], a.sizes[-2:]
    taus = graph.full(a.type, (*batch, min(m, n)))

    def column(inner: Graph, j: Value, state: Sequence[Value]) -> list[Value]:
        matrix, so_far = state
        return list(reflect_column(inner, matrix, so_far, j))

    found, taus = graph.for_each(min(m, n), [a, taus], column)
    return found, taus


def reflect_column(graph: Graph, a: Value, taus: Value, j: Value) -> tuple[Value, Value]:
    """One step of QR: the reflection of column j taken from the columns behind it, and tau written."""
    batch, m = a.sizes[:-2], a.sizes[-2]
    zero = graph.scalar(S32, 0)
    x = a.dynamic_slice_minor([zero, j], (m, 1)).reshape(*batch, m)
    v, tau, beta = reflection(graph, x, j)
    rows = graph.iota(S32, (*batch, m), len(batch))
    columns = graph.iota(S32, a.sizes, a.rank - 1)
    # a[:, j+1:] -= conj(tau) v (vᴴ a[:, j+1:])
    right = columns.compare("GT", j).select(a, graph.full(a.type, a.sizes))
    along = v.conjugate().reshape(*batch, 1, m).matmul(right)
    taken = v.reshape(*batch, m, 1).matmul(along) * over_batch(tau.conjugate(), a.sizes)
    # Column j is beta, and below it the reflector, better than the update would give them.
    own = rows.compare("LT", j).select(x, v)
    own = rows.compare("EQ", j).select(over_batch(beta, own.sizes), own)
    spread = own.broadcast_in_dim(a.sizes, range(a.rank - 1))
    a = columns.compare("EQ", j).select(spread, a - taken)
    return a, taus.update_minor(tau.reshape(*batch, 1), [j])


def reflection(graph: Graph, x: Value, j: Value) -> tuple[Value, Value, Value]:
    """v with v[j] = 1, tau and beta: (1 - tau v vᴴ)ᴴ x is beta at j and 0 after it."""
    batch, rank = x.sizes[:-1], x.rank
    places = graph.iota(S32, x.sizes, rank - 1)
    after = places.compare("GT", j).select(x, graph.full(x.type, x.sizes))
    alpha = x.dynamic_slice_minor([j], (1,)).reshape(*batch)
    # Squares neither overflow nor vanish when divided by the largest magnitude first.
    sizes = after.abs()
    real = sizes.type
    largest = sizes.reduce("maximum", (rank - 1,)).maximum(alpha.real().abs())
    if x.type.is_complex:
        largest = largest.maximum(alpha.imag().abs())
    ones = graph.full(real, batch, 1)
    scale = largest.compare("EQ", 0).select(ones, largest)
    part = sizes / over_batch(scale, sizes.sizes)
    head = alpha.abs() / scale
    below = (part * part).reduce("add", (rank - 1,))
    norm = scale * (below + head * head).sqrt()
    nothing = below.compare("EQ", 0)
    if x.type.is_complex:
        nothing = nothing & alpha.imag().compare("EQ", 0)
    beta = alpha.real().compare("LT", 0).select(norm, -norm)
    beta = nothing.select(alpha.real(), beta)
    zeros = graph.full(real, batch)
    divisor = nothing.select(ones, beta)
    tau = nothing.select(zeros, (beta - alpha.real()) / divisor)
    if x.type.is_complex:
        tau = tau.complex(nothing.select(zeros, -alpha.imag() / divisor))
        beta = beta.complex(zeros)
    by = nothing.select(graph.full(x.type, batch, 1), alpha - beta)
    v = places.compare("EQ", j).select(1, after / over_batch(by, x.sizes))
    return v, tau, beta


def householder_product(graph: Graph, a: Value, taus: Value) -> Value:
    """Q, of as many columns as the reflectors have; many reflections in blocks, as `qr_factor`."""
    batch, (m, n) = a.sizes[:-2], a.sizes[-2:]
    count = taus.sizes[-1]
    if count > BLOCK:
        q = identity(graph, a.type, (*batch, m, n))
        for start in reversed(range(0, count, BLOCK)):
            end = min(start + BLOCK, count)
            v = _reflectors(a.slice_minor((start, m), (start, end)), end - start)
            v = v.pad([*((0, 0) for _ in batch), (start, 0), (0, 0)])
            t = _compact(graph, v, taus.slice_minor((start, end)))
            q = q - v.matmul(t.matmul(v.conjugate().matmul(q, transpose=True)))
        return q

    def reflect(inner: Graph, number: Value, state: Sequence[Value]) -> list[Value]:
        a, taus, q = state
        j = inner.scalar(S32, count - 1) - number
        x = a.dynamic_slice_minor([inner.scalar(S32, 0), j], (m, 1)).reshape(*batch, m)
        places = inner.iota(S32, x.sizes, x.rank - 1)
        v = places.compare("GT", j).select(x, inner.full(x.type, x.sizes))
        v = places.compare("EQ", j).select(1, v)
        tau = over_batch(taus.dynamic_slice_minor([j], (1,)).reshape(*batch), q.sizes)
        along = v.conjugate().reshape(*batch, 1, m).matmul(q)
        return [a, taus, q - v.reshape(*batch, m, 1).matmul(along) * tau]

    q = identity(graph, a.type, (*batch, m, n))
    return graph.for_each(count, [a, taus, q], reflect)[2]


@dataclass(frozen=True)
class QrExpanderPass(ExpanderPass):
    """Writes QR decompositions, as JAX asks TPUs for them, by Householder reflections.

    Before and after:

        %q = (f32[4,3], f32[3]) custom-call(%a), custom_call_target="Qr"
          =>   %q = (f32[4,3], f32[3]) call(%a), to_apply=%qr

    `Qr` gives LAPACK's `geqrf`: R, below it the reflectors without their leading 1, and their factors tau;
    `ProductOfElementaryHouseholderReflectors` multiplies them to Q. A loop of one reflection a column.
    Source: XLA's pass, which works in blocks of 128 columns.
    """

    name = "qr_expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (qr_by_reflections, product_of_reflectors)
