"""Calls of GPU libraries about factors of matrices, and those that go with them, written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlirhlo.dialects.hlo.attributes.base import boolean, string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.rewrites.gpu_libraries.library_results import finished, parts_of
from mlirhlo.rewrites.legalize.expander import expand_in_place
from mlirhlo.rewrites.legalize.indexed_loops import S32, plain
from mlirhlo.rewrites.legalize.rng_bit_generator_expander import threefry_rounds
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import triangle
from mlirhlo.rewrites.rules import Rewriter, rule

_F64 = PRIMITIVE_TYPES["f64"]

Build: TypeAlias = "Callable[[CustomCallOp, Graph, Sequence[Value]], Sequence[Value]]"
_BUILDERS: dict[str, tuple[Build, Sequence[int], int]] = {}
"""By target: what writes the call, the least ranks of operands, and how many results there are at least."""


def _writes(*targets: str, ranks: Sequence[int], results: int) -> Callable[[Build], Build]:
    def register(function: Build) -> Build:
        for target in targets:
            _BUILDERS[target] = function, ranks, results
        return function

    return register


@rule(CustomCallOp, contract="rounding")
def factor_of_a_library(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(a, …), what surrounds factors in a library => instructions, and calls of LAPACK's routines"""
    found = _BUILDERS.get(op.custom_call_target)
    if found is None:
        return
    build, ranks, results = found
    shapes = [s for s in op.input_shapes if isinstance(s, ArrayShape) and not s.is_dynamic]
    if len(shapes) != len(op.inputs) or len(shapes) != len(ranks) or len(parts_of(op)) < results:
        return
    if any(s.rank < rank or 0 in s.dimensions for s, rank in zip(shapes, ranks, strict=True)):
        return

    def write(graph: Graph, *operands: Value) -> Value:
        inputs = [v.in_layout(plain(v.type, v.sizes)) for v in operands]
        return finished(op, graph, build(op, graph, inputs))

    expand_in_place(op, rewriter, write)


def _routine(
    graph: Graph, target: str, operand: Value, parts: Sequence[ArrayShape], options: str = ""
) -> list[Value]:
    """The results of a routine of LAPACK, by its name for GPUs."""
    properties = {"backend_config": string(options)} if options else {}
    call = graph.make(
        "custom-call",
        operand,
        shape=TupleShape(tuple(parts)),
        custom_call_target=string(target),
        api_version=string("API_VERSION_TYPED_FFI"),
        **properties,
    )
    return [graph.element(call, number) for number in range(len(parts))]


@_writes("__cusolver$cholesky", ranks=[2], results=3)
def _cholesky(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    """The factor, a workspace, and the order of the first minor that is not positive."""
    (a,) = inputs
    is_lower = bool(options_of(op).get("lower", False))
    parts = [plain(a.type, a.sizes), plain(S32, a.sizes[:-2])]
    letter = ord("L" if is_lower else "U")
    factor, info = _routine(graph, "cusolver_potrf_ffi", a, parts, f"{{uplo = {letter} : ui8}}")
    inside = triangle(factor, "GE" if is_lower else "LE")
    workspace = parts_of(op)[1]
    empty = graph.full(workspace.element_type, workspace.dimensions)
    return inside.select(factor, graph.full(a.type, a.sizes)), empty, info


@_writes("LuDecomposition", ranks=[2], results=3)
def _lu(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    """Factors, exchanged rows counted from 0, and the order of rows that they lead to."""
    (a,) = inputs
    *batch, m, n = a.sizes
    parts = [plain(a.type, a.sizes), plain(S32, (*batch, min(m, n))), plain(S32, batch)]
    factors, pivots, _ = _routine(graph, "cusolver_getrf_ffi", a, parts)
    pivots = pivots - 1
    return factors, pivots, _permutation(graph, pivots, m)


@_writes(
    "LuPivotsToPermutation",
    "cu_lu_pivots_to_permutation",
    "hip_lu_pivots_to_permutation",
    ranks=[1],
    results=1,
)
def _order(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    return [_permutation(graph, inputs[0], parts_of(op)[0].dimensions[-1])]


def _permutation(graph: Graph, pivots: Value, size: int) -> Value:
    """The order of rows after the exchanges of row k with row `pivots[k]`."""
    *batch, count = pivots.sizes
    sizes = (*batch, size)

    def exchange(inner: Graph, k: Value, state: Sequence[Value]) -> list[Value]:
        order, pivots = state
        at = inner.iota(S32, sizes, len(batch))

        def along(value: Value) -> Value:
            return value.broadcast_in_dim(sizes, range(len(batch)))

        other = along(pivots.dynamic_slice_minor([k], (1,)).reshape(*batch))
        own = along(order.dynamic_slice_minor([k], (1,)).reshape(*batch))
        is_other = at.compare("EQ", other)
        found = is_other.select(order, inner.full(S32, sizes)).reduce("add", (len(batch),))
        order = is_other.select(own, order)
        return [at.compare("EQ", k).select(along(found), order), pivots]

    return graph.for_each(count, [graph.iota(S32, sizes, len(batch)), pivots], exchange)[0]


@_writes("cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi", ranks=[2], results=5)
def _gesvdj(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    """The operand, singular values, u, v itself and not its adjoint, info."""
    (a,), parts = inputs, list(parts_of(op))
    (rows, columns), least = a.sizes[-2:], parts[1].dimensions[-1]
    is_full = parts[2].dimensions[-1] == rows and parts[3].dimensions[-1] == columns
    v = parts[3].dimensions
    shapes = [plain(p.element_type, p.dimensions) for p in parts]
    shapes[3] = plain(a.type, (*v[:-2], v[-1], v[-2]))
    mode = ord("A" if is_full and least < max(rows, columns) else "S")
    found = _routine(graph, "cusolver_gesdd_ffi", a, shapes, f"{{mode = {mode} : ui8}}")
    found[3] = found[3].swap().conjugate()
    return found


@_writes("cusolver_syrk_ffi", "hipsolver_syrk_ffi", ranks=[2, 2, 0, 0], results=1)
def _syrk(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    """alpha a a^T + beta c (`transpose`: alpha a^T a + beta c) on and below the diagonal, c above it."""
    a, c, alpha, beta = inputs
    is_transposed = bool(options_of(op).get("transpose"))
    product = a.matmul(a, transpose=is_transposed, transpose_other=not is_transposed)
    return [triangle(c, "GE").select(product * alpha + c * beta, c)]


@_writes("cu_cholesky_update_ffi", ranks=[2, 1], results=2)
def _update(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    """The factor of r^T r + w w^T, in double precision, and w as it is."""
    r, w = (v.convert(_F64) for v in inputs)
    rows = w.reshape(*w.sizes[:-1], 1, w.sizes[-1])
    total = r.matmul(r, transpose=True) + rows.matmul(rows, transpose=True)
    factor = graph.make("cholesky", total, shape=plain(_F64, total.sizes), lower=boolean(True))
    return factor.swap(), inputs[1]


@_writes("cu_threefry2x32_ffi", "hip_threefry2x32_ffi", ranks=[0, 0, 0, 0], results=2)
def _threefry(op: CustomCallOp, graph: Graph, inputs: Sequence[Value]) -> Sequence[Value]:
    first, second, x, y = inputs
    return threefry_rounds((x, y), (first, second))
