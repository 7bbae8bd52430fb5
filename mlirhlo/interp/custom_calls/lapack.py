"""LAPACK routines that JAX calls: `lapack_<s|d|c|z><routine>_ffi`, `cusolver_<routine>_ffi`, `cuhybrid_<routine>`.

Operands are batches of matrices in logical order; attributes are those of the FFI handlers, letters
given as numbers (`uplo = 76 : ui8` is 'L'). Results that LAPACK leaves to the algorithm (signs of
eigenvectors and of singular vectors) may differ from one library to the other.
Source: the lowerings in JAX's linear algebra and LAPACK's documentation of each routine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.interp.custom_calls import options_of, register_custom_call, unfit
from mlirhlo.interp.custom_calls.lapack_signature import is_lower, letter
from mlirhlo.interp.linear_algebra import linalg_factor as factor
from mlirhlo.interp.linear_algebra.linalg import adjoint, cholesky_lower, solve_triangular, widened
from mlirhlo.interp.linear_algebra.linalg_factor import batched
from mlirhlo.interp.linear_algebra.linalg_schur import schur
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp

Routine = Callable[..., Sequence[Any]]
"""`routine(inputs, options, result shapes)`."""
Eig = Callable[[Any], "tuple[Any, Any]"]
"""Eigenvalues and right eigenvectors of square matrices, as `numpy.linalg.eig`."""

ROUTINES: dict[str, Routine] = {}
"""Routines by their name without the letter of the type."""


def routine(*names: str) -> Callable[[Routine], Routine]:
    """Decorator: registers `function(inputs, options, result shapes)` under LAPACK names."""

    def register(function: Routine) -> Routine:
        for name in names:
            ROUTINES[name] = function
        return function

    return register


@routine("potrf")
def potrf(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """Cholesky factor over the operand's own other triangle; info is the order of the failing minor."""
    matrix = inputs[0]
    if is_lower(options):
        lower, info = cholesky_lower(matrix)
        return np.tril(lower) + np.triu(widened(matrix), 1), info
    lower, info = cholesky_lower(adjoint(matrix))
    return np.triu(adjoint(lower)) + np.tril(widened(matrix), -1), info


@routine("trsm")
def trsm(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """x with op(a) x = b or x op(a) = b."""
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
    return (
        solve_triangular(
            inputs[0],
            inputs[1],
            left_side=letter(options, "side", "L") == "L",
            lower=is_lower(options),
            unit_diagonal=letter(options, "diag", "N") == "U",
            transpose=transpose[letter(options, "trans_x", "N")],
        ),
    )


@routine("getrf")
def getrf(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """LU factors, 1-based pivots, info."""
    factors, pivots, info = batched(factor.lu_factor, inputs[0], ranks=(2,))
    return factors, pivots + 1, info


@routine("geqrf")
def geqrf(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """R and reflectors, tau."""
    return batched(factor.qr_factor, inputs[0], ranks=(2,))


@routine("geqp3")
def geqp3(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """R and reflectors, 1-based column pivots, tau."""
    return batched(factor.qr_factor_pivoted, inputs[0], inputs[1], ranks=(2, 1))


@routine("orgqr", "ungqr")
def orgqr(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """The product of the reflectors."""
    return batched(factor.householder_product, inputs[0], inputs[1], ranks=(2, 1))


@routine("ormqr", "unmqr")
def ormqr(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """The product of the reflectors, or its adjoint, times a matrix."""
    left, conjugated = bool(options.get("left", True)), bool(options.get("transpose", False))

    def apply(vs: Array, taus: Array, c: Array) -> tuple[Array]:
        return (factor.apply_reflectors(vs, taus, c, left=left, conjugated=conjugated),)

    return batched(apply, *inputs, ranks=(2, 1, 2))


@routine("syevd", "heevd")
def syevd(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """Eigenvectors, ascending eigenvalues, info; from one triangle."""
    matrix = inputs[0]
    info = np.zeros(matrix.shape[:-2], np.int32)
    finite: Any = np.isfinite(matrix).all(axis=(-1, -2))
    values, vectors = np.linalg.eigh(
        np.where(finite[..., None, None], matrix, 0), "L" if is_lower(options) else "U"
    )
    return vectors, values, np.where(finite, info, 1)


@routine("gesdd", "gesvd")
def gesdd(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """The operand (undefined), singular values, u, adjoint of v, info; `transposed`: these two change places."""
    matrix = inputs[0]
    finite: Any = np.isfinite(matrix).all(axis=(-1, -2))
    clean = np.where(finite[..., None, None], matrix, 0)
    info = np.where(finite, 0, -4).astype(np.int32)
    mode = letter(options, "mode", "A")
    if "compute_uv" in options:
        mode = "A" if options.get("full_matrices") else "S"
        mode = mode if options["compute_uv"] else "N"
    if mode == "N":
        values = np.linalg.svd(clean, compute_uv=False)
        return matrix, values, _zeros(shapes[2]), _zeros(shapes[3]), info
    u, values, vt = np.linalg.svd(clean, full_matrices=mode == "A")
    return (
        (matrix, values, vt, u, info)
        if options.get("transposed")
        else (matrix, values, u, vt, info)
    )


def _zeros(shape: ArrayShape) -> Array:
    return np.zeros(shape.dimensions, shape.element_type.dtype)


@routine("geev")
def geev(
    inputs: Sequence[Array],
    options: Mapping[str, Any],
    shapes: Sequence[ArrayShape],
    eig: Eig = np.linalg.eig,
) -> Sequence[Any]:
    """Eigenvalues (real matrices: real and imaginary parts), left and right eigenvectors, info.

    Eigenvectors have length 1 and a real largest component.
    """
    values, left, right, info = _eigen(inputs[0], options, eig)
    parts = (values.real, values.imag) if inputs[0].dtype.kind != "c" else (values,)
    return (*parts, left, right, info)


@routine("geev_packed")
def geev_packed(
    inputs: Sequence[Array],
    options: Mapping[str, Any],
    shapes: Sequence[ArrayShape],
    eig: Eig = np.linalg.eig,
) -> Sequence[Any]:
    """The operand (undefined), eigenvalues, left and right eigenvectors, info.

    Of real matrices, two conjugate vectors are the real and the imaginary part of the first of them.
    """
    values, left, right, info = _eigen(inputs[0], options, eig)
    if inputs[0].dtype.kind != "c":
        # The first of a pair has the positive imaginary part.
        second = np.broadcast_to((values.imag < 0)[..., None, :], left.shape)
        left, right = (cast(Any, np.where(second, -v.imag, v.real)) for v in (left, right))
    return inputs[0], values, left, right, info


def _eigen(matrix: Array, options: Mapping[str, Any], eig: Eig) -> tuple[Any, Any, Any, Any]:
    """Eigenvalues, left and right eigenvectors (zeros unless asked for), info."""

    def wanted(side: str) -> bool:
        if side in options:
            return bool(options[side])
        return letter(options, f"compute_{side}", "N") == "V"

    finite: Any = np.isfinite(matrix).all(axis=(-1, -2))
    clean = np.where(finite[..., None, None], matrix, 0)
    values, right = eig(widened(clean))
    left = _left_eigenvectors(clean, values) if wanted("left") else np.zeros_like(right)
    if not wanted("right"):
        right = np.zeros_like(right)
    return values, left, right, np.where(finite, 0, -4).astype(np.int32)


def _left_eigenvectors(matrix: Array, values: Array) -> Array:
    """Left eigenvectors in the order of `values`."""
    others, vectors = cast("tuple[Any, Any]", np.linalg.eig(adjoint(widened(matrix))))
    result: Any = np.zeros(vectors.shape, np.complex128)
    for index in np.ndindex(values.shape[:-1]):
        free = list(range(values.shape[-1]))
        for k, value in enumerate(cast(Any, values[index])):
            nearest = min(free, key=lambda j: abs(np.conj(others[index][j]) - value))
            free.remove(nearest)
            vector = vectors[(*index, slice(None), nearest)].astype(np.complex128)
            largest = vector[np.argmax(np.abs(vector))]
            phase = np.conj(largest) / abs(largest) if largest.imag else 1.0
            result[(*index, slice(None), k)] = vector * phase
    return result


@routine("gehrd")
def gehrd(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """Hessenberg form and reflectors, tau, info."""
    low, high = int(options.get("low", 1)), int(options.get("high", inputs[0].shape[-1]))

    def reduce(matrix: Array) -> tuple[Array, Array]:
        return factor.hessenberg(matrix, low, high)

    return *batched(reduce, inputs[0], ranks=(2,)), np.zeros(inputs[0].shape[:-2], np.int32)


@routine("sytrd", "hetrd")
def sytrd(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """Factored matrix, diagonal, off-diagonal, tau, info."""
    lower = is_lower(options)

    def reduce(matrix: Array) -> tuple[Array, ...]:
        return factor.tridiagonal(matrix, lower)

    return *batched(reduce, inputs[0], ranks=(2,)), np.zeros(inputs[0].shape[:-2], np.int32)


@routine("gees")
def gees(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """Schur form, Schur vectors, eigenvalues (real matrices: two parts), number selected, info."""
    t, q, values, info = cast("tuple[Any, ...]", batched(schur, inputs[0], ranks=(2,)))
    parts = (values.real, values.imag) if inputs[0].dtype.kind != "c" else (values,)
    return t, q, *parts, np.zeros(info.shape, np.int32), info


@routine("gtsv")
def gtsv(
    inputs: Sequence[Array], options: Mapping[str, Any], shapes: Sequence[ArrayShape]
) -> Sequence[Any]:
    """The diagonals of U, the solution, info. The first of `dl` and the last of `du` are not read."""

    def solve(dl: Array, d: Array, du: Array, b: Array) -> tuple[Array, ...]:
        lower, diagonal, upper, x, info = factor.solve_tridiagonal(dl[1:], d, du[:-1], b)
        return np.append(lower, 0), diagonal, np.append(upper, 0), x, info

    return batched(solve, *inputs, ranks=(1, 1, 1, 2))


def call_routine(name: str, op: CustomCallOp, inputs: Sequence[Any], **more: Any) -> Value:
    """Result of a routine in the types of `op`'s shape; `more`: further arguments of it."""
    shapes = [shape for _, shape in leaves(op.shape) if isinstance(shape, ArrayShape)]
    results = run_routine(name, inputs, options_of(op), shapes, **more)
    if len(results) != len(shapes):
        raise unfit(op, f"gives {len(results)} results, but its shape is {op.shape}")
    values = tuple(typed(result, shape) for result, shape in zip(results, shapes, strict=True))
    return values[0] if len(values) == 1 else values


def run_routine(
    name: str,
    inputs: Sequence[Any],
    options: Mapping[str, Any],
    shapes: Sequence[ArrayShape],
    **more: Any,
) -> Sequence[Any]:
    """Results of a routine, in types of its own."""
    with np.errstate(all="ignore"):
        return ROUTINES[name](inputs, options, shapes, **more)


def typed(value: Any, shape: ArrayShape) -> Array:
    """A routine's result in the element type that a call asks for; real parts for real types."""
    array: Any = np.asarray(value)
    dtype = shape.element_type.dtype
    return cast(
        Array,
        (array.real if array.dtype.kind == "c" and dtype.kind != "c" else array).astype(dtype),
    )


def _meaning(name: str) -> Callable[[CustomCallOp, Sequence[Any], Frame], Value]:
    def meaning(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
        return call_routine(name, op, inputs)

    return meaning


_COMPLEX_ONLY = {"heevd": "syevd", "ungqr": "orgqr", "unmqr": "ormqr", "hetrd": "sytrd"}
_REAL_ONLY = frozenset(_COMPLEX_ONLY.values())

for _name in ROUTINES.keys() - {"geev_packed"}:
    for _type in "cz" if _name in _COMPLEX_ONLY else "sd" if _name in _REAL_ONLY else "sdcz":
        register_custom_call(f"lapack_{_type}{_name}_ffi", _meaning(_name))

_SOLVER = ("potrf", "getrf", "geqrf", "orgqr", "ormqr", "syevd", "gesvd", "gesdd", "sytrd")

for _vendor in ("cu", "hip"):
    for _name in _SOLVER:
        register_custom_call(f"{_vendor}solver_{_name}_ffi", _meaning(_name))
    register_custom_call(f"{_vendor}solver_geev_ffi", _meaning("geev_packed"))
    for _name, _called in (("eig_real", "geev"), ("eig_comp", "geev"), ("geqp3", "geqp3")):
        register_custom_call(f"{_vendor}hybrid_{_name}", _meaning(_called))
