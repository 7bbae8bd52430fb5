"""`cholesky_expander`: Cholesky factors by loops over columns, in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.attributes.base import boolean, string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import CholeskyOp
from mlirhlo.rewrites.algsimp.common import array
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_to_call
from mlirhlo.rewrites.legalize.indexed_loops import S32, plain
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import over_batch, triangle
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_BLOCK = 128
"""Columns that are factored before those after them are updated."""


@rule(CholeskyOp, contract="rounding")
def cholesky_by_columns(op: CholeskyOp, rewriter: Rewriter) -> None:
    """cholesky(a) => call(a), column by column: sqrt on the diagonal, divisions below it"""
    shape = array(op.inputs[0])
    if shape.is_dynamic:
        return
    lower = op.lower

    def build(graph: Graph) -> Value:
        a = graph.parameter(shape)
        factor = _factor(graph, a if lower else a.swap())
        return factor if lower else factor.swap()

    name = f"cholesky_{'lower' if lower else 'upper'}"
    expand_to_call(op, rewriter, (str(shape), lower), name, build)


def _factor(graph: Graph, a: Value) -> Value:
    """The lower factor, from the lower triangles; NaN where a matrix is not positive definite."""
    n, batch = a.sizes[-1], a.sizes[:-2]
    found = graph.full(a.type, a.sizes)
    failed = graph.full(PRIMITIVE_TYPES["pred"], (*batch, 1, 1))
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        panel = a.slice_minor((start, n), (start, end))
        if start:
            rows = found.slice_minor((start, n), (0, start))
            block = found.slice_minor((start, end), (0, start))
            panel = panel - rows.matmul(block.conjugate(), transpose_other=True)
        size = end - start
        factor, is_bad = _factor_block(graph, panel.slice_minor((0, size), (0, size)))
        failed = failed | is_bad
        found = found.update_minor(factor, [start, start])
        if end < n:
            below = graph.make(
                "triangular-solve",
                factor,
                panel.slice_minor((size, n - start), (0, size)),
                shape=plain(a.type, (*batch, n - end, size)),
                lower=boolean(True),
                transpose_a=string("ADJOINT"),
            )
            found = found.update_minor(below, [end, start])
    everywhere = failed.reshape(*batch)
    return over_batch(everywhere, a.sizes).select(float("nan"), found)


def _factor_block(graph: Graph, a: Value) -> tuple[Value, Value]:
    """The factor, and whether there is none."""
    rank, batch = a.rank, a.sizes[:-2]

    def column(inner: Graph, number: Value, state: list[Value]) -> list[Value]:
        given, found, failed = state
        columns = inner.iota(S32, given.sizes, rank - 1)
        wanted = triangle(given, "GE") & columns.compare("EQ", number)
        # All columns but the number-th are thrown away; that is cheaper than a loop in the loop.
        left = given - found.matmul(found.conjugate(), transpose_other=True)
        root = left.dynamic_slice_minor([number, number], (1, 1)).real().sqrt()
        failed = failed | root.is_nan()
        divisor = root
        if given.type.is_complex:
            divisor = root.complex(inner.full(root.type, root.sizes))
        divisor = over_batch(divisor.reshape(*batch), given.sizes)
        found = wanted.select(left / divisor, inner.full(given.type, given.sizes)) + found
        return [given, found, failed]

    start = [a, graph.full(a.type, a.sizes), graph.full(PRIMITIVE_TYPES["pred"], (*batch, 1, 1))]
    _, found, failed = graph.for_each(
        a.sizes[-1], start, lambda inner, number, state: column(inner, number, list(state))
    )
    return found, failed


@dataclass(frozen=True)
class CholeskyExpanderPass(ExpanderPass):
    """Writes Cholesky factorisations by loops over columns.

    Before and after:

        %l = f32[4,4] cholesky(%a), lower=true   =>   %l = f32[4,4] call(%a), to_apply=%cholesky_lower

    Blocks of 128 columns; what is below a block is solved for by triangular-solve, which
    `triangular_solve_expander` expands. A matrix that has no factor gives NaN everywhere, the others of its
    batch their own. Source: XLA's pass.
    """

    name = "cholesky_expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (cholesky_by_columns,)
