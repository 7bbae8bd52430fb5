"""`triangular_solve_expander`: triangular systems by substitution, in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.ops import TriangularSolveOp
from mlirhlo.rewrites.algsimp.common import array
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_to_call
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import diagonal, triangle
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_BLOCK = 64
"""Rows that are solved for before they are taken off the others."""


@rule(TriangularSolveOp, contract="rounding")
def triangular_solve_by_substitution(op: TriangularSolveOp, rewriter: Rewriter) -> None:
    """triangular-solve(a, b) => call(a, b), x_i = (b_i - a_i x) / a_ii row by row"""
    a_shape, b_shape = array(op.a), array(op.b)
    if a_shape.is_dynamic or b_shape.is_dynamic:
        return
    kind, left, lower, unit = op.transpose_a, op.left_side, op.lower, op.unit_diagonal

    def build(graph: Graph) -> Value:
        a, b = graph.parameter(a_shape), graph.parameter(b_shape)
        if 0 in b.sizes:
            return b
        if kind == "ADJOINT":
            a = a.conjugate()
        # x a = b is aᵀ xᵀ = bᵀ.
        is_turned = (kind in ("TRANSPOSE", "ADJOINT")) == left
        if is_turned:
            a = a.swap()
        x = _solve(graph, a, b if left else b.swap(), lower=lower != is_turned, unit=unit)
        return x if left else x.swap()

    key = (str(a_shape), str(b_shape), kind, left, lower, unit)
    expand_to_call(op, rewriter, key, "triangular_solve", build)


def _solve(graph: Graph, a: Value, b: Value, *, lower: bool, unit: bool) -> Value:
    """x with a x = b; what is not in the triangle is not read."""
    n, width = a.sizes[-1], b.sizes[-1]
    # The other triangle may hold anything, NaN too.
    strict = triangle(a, "GT" if lower else "LT").select(a, graph.full(a.type, a.sizes))
    divisors = graph.full(a.type, a.sizes[:-1], 1) if unit else diagonal(a)
    blocks = [(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    found: Value | None = None
    for start, end in blocks if lower else reversed(blocks):
        rest = b.slice_minor((start, end), (0, width))
        if found is not None:
            known = (0, start) if lower else (end, n)
            rest = rest - strict.slice_minor((start, end), known).matmul(found)
        square = strict.slice_minor((start, end), (start, end))
        part = _substitute(graph, square, divisors.slice_minor((start, end)), rest, lower=lower)
        if found is None:
            found = part
        else:
            both = [found, part] if lower else [part, found]
            found = graph.concatenate(both, b.rank - 2)
    assert found is not None
    return found


def _substitute(graph: Graph, a: Value, divisors: Value, b: Value, *, lower: bool) -> Value:
    """One block, a row at a time; rows that are not known yet are zeros."""
    size, width = a.sizes[-1], b.sizes[-1]

    def row(inner: Graph, number: Value, state: list[Value]) -> list[Value]:
        matrix, scale, given, found = state
        at = number if lower else inner.scalar(number.type, size - 1) - number
        zero = inner.scalar(number.type, 0)
        taken = matrix.dynamic_slice_minor([at, zero], (1, size)).matmul(found)
        left = given.dynamic_slice_minor([at, zero], (1, width)) - taken
        divisor = scale.dynamic_slice_minor([at], (1,))
        solved = left / divisor.broadcast_in_dim(left.sizes, range(left.rank - 1))
        return [matrix, scale, given, found.update_minor(solved, [at, zero])]

    start = [a, divisors, b, graph.full(b.type, b.sizes)]
    *_, found = graph.for_each(
        size, start, lambda inner, number, state: row(inner, number, list(state))
    )
    return found


@dataclass(frozen=True)
class TriangularSolveExpanderPass(ExpanderPass):
    """Writes solutions of triangular systems by substitution.

    Before and after:

        %x = f32[4,2] triangular-solve(%a, %b), left_side=true, lower=true
          =>   %x = f32[4,2] call(%a, %b), to_apply=%triangular_solve

    Blocks of 64 rows; a block is taken off those after it by one product. The triangle that is not named, and
    a unit diagonal, are not read. Source: XLA's pass, which inverts blocks instead where that is quicker.
    """

    name = "triangular_solve_expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (triangular_solve_by_substitution,)
