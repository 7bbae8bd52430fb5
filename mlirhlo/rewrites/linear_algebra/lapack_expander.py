"""`lapack-expander`: calls of LAPACK and cuSOLVER as instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from mlirhlo.dialects.hlo.attributes.base import boolean, string
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls.lapack_signature import is_lower, letter, routine_of
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_to_call
from mlirhlo.rewrites.legalize.indexed_loops import S32, plain
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.linear_algebra.client_matrices import diagonal, over_batch
from mlirhlo.rewrites.linear_algebra.eigh_expander import eigh
from mlirhlo.rewrites.linear_algebra.lapack_reductions import (
    hessenberg,
    pivoted_qr,
    solve_tridiagonal,
    tridiagonal,
)
from mlirhlo.rewrites.linear_algebra.qr_expander import householder_product, qr_factor
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

Options: TypeAlias = "Mapping[str, Any]"
Routine: TypeAlias = (
    "Callable[[Graph, Sequence[Value], Options, Sequence[ArrayShape]], Sequence[Value]]"
)

_SWEEPS = 100
_TOLERANCES = {32: 1e-7, 64: 1e-15}
"""By bits of the real type: what is off the diagonal in the end, relative to the whole."""
_TRANSPOSITIONS = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


@rule(CustomCallOp, contract="rounding")
def routine_of_a_library(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(a, …), a routine of LAPACK => call(a, …), the routine's results by matrices and loops"""
    operands = [s for s in op.input_shapes if isinstance(s, ArrayShape)]
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    results = [s for s in parts if isinstance(s, ArrayShape)]
    if len(operands) != len(op.inputs) or len(results) != len(parts):
        return
    target = op.custom_call_target
    called = "gtsv" if target in _TRIDIAGONAL else routine_of(target, operands, results)
    if called is None or called not in _ROUTINES:
        return
    options = options_of(op)

    def build(graph: Graph) -> Value:
        parameters = [graph.parameter(s) for s in operands]
        inputs = [
            v.in_layout(plain(s.element_type, s.dimensions))
            for v, s in zip(parameters, operands, strict=True)
        ]
        found = _ROUTINES[called](graph, inputs, options, results)
        values = [v.in_layout(s) for v, s in zip(found, results, strict=True)]
        return graph.tuple(*values) if isinstance(op.shape, TupleShape) else values[0]

    key = (called, *map(str, (*operands, *results)), op.backend_config)
    expand_to_call(op, rewriter, key, called, build)


def _geqrf(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    del options, results
    return qr_factor(graph, inputs[0])


def _orgqr(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    del options, results
    return [householder_product(graph, *inputs)]


def _ormqr(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    """The square product of the reflectors, or its adjoint, times a matrix."""
    del results
    reflectors, taus, c = inputs
    q = householder_product(graph, _square(reflectors), taus)
    if options.get("transpose", False):
        q = q.swap().conjugate()
    return [q.matmul(c) if options.get("left", True) else c.matmul(q)]


def _square(a: Value) -> Value:
    """With columns of zeros, or without the columns that are too many."""
    m, n = a.sizes[-2:]
    if n > m:
        return a.slice_minor((0, m), (0, m))
    return a.pad([*((0, 0) for _ in a.sizes[:-1]), (0, m - n)])


def _trsm(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    del results
    said: dict[str, bool] = {
        "left_side": letter(options, "side", "L") == "L",
        "lower": is_lower(options),
        "unit_diagonal": letter(options, "diag", "N") == "U",
    }
    solution = graph.make(
        "triangular-solve",
        *inputs,
        shape=None,
        **{key: boolean(True) for key, holds in said.items() if holds},
        transpose_a=string(_TRANSPOSITIONS[letter(options, "trans_x", "N")]),
    )
    return [solution]


def _syevd(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    """Eigenvectors, ascending eigenvalues, info: 1 where numbers are not finite."""
    del results
    a, failed = _finite(graph, inputs[0])
    vectors, values = eigh(graph, a, is_lower(options), True, _SWEEPS, _tolerance(a.type))
    return vectors, values, _info(graph, failed, 1)


def _tolerance(type_: PrimitiveType) -> float:
    return _TOLERANCES[type_.real.bits]


def _finite(graph: Graph, a: Value) -> tuple[Value, Value]:
    """Zeros in the place of matrices in which not all numbers are finite, and which these are."""
    zero = graph.full(a.type.real, a.sizes)
    parts = [a.real(), a.imag()] if a.type.is_complex else [a]
    odd = graph.full(PRIMITIVE_TYPES["pred"], a.sizes)
    for part in parts:
        odd = odd | (part * zero).is_nan()
    failed = odd.reduce("or", (a.rank - 2, a.rank - 1), False)
    return over_batch(failed, a.sizes).select(0, a), failed


def _info(graph: Graph, failed: Value, number: int) -> Value:
    s32 = PRIMITIVE_TYPES["s32"]
    return failed.select(number, graph.full(s32, failed.sizes))


def _gesdd(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    """The operand, singular values, u, adjoint of v, info: -4 where numbers are not finite.

    In double precision; of a matrix with as many rows as columns or more

        adj(a) a = v w adj(v);   a v = q r, where r is nearly diagonal;   values = |r|, u = q sign(r)
    """
    (a,) = inputs
    mode = letter(options, "mode", "A")
    if "compute_uv" in options:
        mode = "A" if options.get("full_matrices") else "S"
        mode = mode if options["compute_uv"] else "N"
    wide = PRIMITIVE_TYPES["c128" if a.type.is_complex else "f64"]
    clean, failed = _finite(graph, a.convert(wide))
    m, n = a.sizes[-2:]
    is_wide = m < n
    if is_wide:
        clean = clean.swap().conjugate()
    gram = clean.swap().conjugate().matmul(clean)
    v, _ = eigh(graph, gram, True, True, _SWEEPS, _tolerance(wide))
    v = v.reverse(v.rank - 1)
    factors, taus = qr_factor(graph, clean.matmul(v))
    least = min(m, n)
    found = diagonal(factors.slice_minor((0, least), (0, least)))
    values = found.abs()
    u = householder_product(graph, _square(factors), taus)
    signs = found.real().compare("LT", 0).select(-1, graph.full(wide.real, found.sizes, 1))
    signs = signs.pad([*((0, 0) for _ in signs.sizes[:-1]), (0, u.sizes[-1] - least)], 1)
    signs = signs.complex(graph.full(wide.real, signs.sizes)) if wide.is_complex else signs
    u = u * signs.broadcast_in_dim(u.sizes, (*range(u.rank - 2), u.rank - 1))
    left, right = (v, u) if is_wide else (u, v)
    pair = [left, right.swap().conjugate()]
    if options.get("transposed"):
        pair.reverse()
    vectors: list[Value] = []
    for value, shape in zip(pair, results[2:4], strict=True):
        rows, columns = shape.dimensions[-2:]
        narrow = value.slice_minor((0, rows), (0, columns)).convert(a.type)
        vectors.append(narrow if mode != "N" else graph.full(a.type, shape.dimensions))
    return a, values.convert(a.type.real), *vectors, _info(graph, failed, -4)


def _geqp3(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    del options, results
    return pivoted_qr(graph, *inputs)


def _gehrd(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    (a,) = inputs
    bounds = int(options.get("low", 1)), int(options.get("high", a.sizes[-1]))
    return *hessenberg(graph, a, *bounds), graph.full(S32, results[-1].dimensions)


def _sytrd(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    found = tridiagonal(graph, inputs[0], is_lower(options))
    return *found, graph.full(S32, results[-1].dimensions)


def _gtsv(
    graph: Graph, inputs: Sequence[Value], options: Options, results: Sequence[ArrayShape]
) -> Sequence[Value]:
    """All that LAPACK's gives, or the solution alone, as cuSPARSE's."""
    del options
    found = solve_tridiagonal(graph, *inputs)
    return found if len(results) > 1 else found[3:4]


_TRIDIAGONAL = ("cusparse_gtsv2_ffi", "hipsparse_gtsv2_ffi")


_ROUTINES: Mapping[str, Routine] = {
    "gehrd": _gehrd,
    "geqp3": _geqp3,
    "geqrf": _geqrf,
    "gesdd": _gesdd,
    "orgqr": _orgqr,
    "ormqr": _ormqr,
    "gtsv": _gtsv,
    "syevd": _syevd,
    "sytrd": _sytrd,
    "trsm": _trsm,
}


@dataclass(frozen=True)
class LapackExpanderPass(ExpanderPass):
    """Writes routines of LAPACK and cuSOLVER, as JAX calls them, by matrix products and loops.

    Before and after:

        %q = (f32[4,3], f32[3]) custom-call(%a), custom_call_target="lapack_sgeqrf_ffi"
          =>   %q = (f32[4,3], f32[3]) call(%a), to_apply=%geqrf

    Householder reflections make `geqrf`, `geqp3`, `gehrd`, `sytrd`, `orgqr`, `ormqr`, Jacobi rotations `syevd`, and in
    double precision `gesdd`; triangular-solve is `trsm`, elimination `gtsv`. Arrays that do not fit the routine, and
    other routines, stay calls.
    Signs, or phases, of eigenvectors and singular vectors may be others than LAPACK's.
    """

    name = "lapack-expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (routine_of_a_library,)
