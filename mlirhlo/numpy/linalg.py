"""The `linalg` extension: factorisations by HLO's own instructions and LAPACK's routines.

A matrix that has no factor (not positive definite, singular) gives NaN or infinities, as compiled
programs do; nothing is raised for values.
Source: Python array API standard 2024.12, "Linear algebra extension".
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops, statistical
from mlirhlo.numpy.array import Array, axes_of, axis_of
from mlirhlo.numpy.creation import band
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import is_complex, magnitude
from mlirhlo.numpy.errors import HloTypeError, HloValueError, problem
from mlirhlo.numpy.linalg_solve import (
    adjoint,
    cholesky,
    det,
    diagonal_of,
    identities,
    inv,
    masked,
    matrices,
    slogdet,
    solve,
)
from mlirhlo.numpy.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from mlirhlo.numpy.manipulation import astype, broadcast_arrays, roll
from mlirhlo.numpy.operands import as_array, checked, common_dtype

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

Shape = tuple[int, ...]


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values, right ones in rows."""

    U: Array
    S: Array
    Vh: Array


# ------------------------------------------------------------------ QR, SVD, eigenvalues


@kernel
def _qr(x: Array, *, complete: bool) -> tuple[Array, Array]:
    batch, rows, columns = x.shape[:-2], x.shape[-2], x.shape[-1]
    size = min(rows, columns)
    width = rows if complete else size
    if 0 in x.shape:
        shape = (*batch, rows, width)
        return ops.convert(band(shape, "EQ"), x.dtype), ops.splat(
            0, x.dtype, (*batch, width, columns)
        )
    factors, taus = ops.lapack("geqrf", (x,), [(x.dtype, x.shape, 2), (x.dtype, (*batch, size), 1)])
    upper = masked(factors, "GE")
    reflectors = factors
    rank = x.ndim
    if width > columns:
        zero = ops.constant(0, x.dtype)
        spread = [(0, 0, 0)] * (rank - 1) + [(0, width - columns, 0)]
        reflectors = ops.pad(factors, zero, spread)
    elif width < columns:
        reflectors = ops.slice_axis(factors, rank - 1, 0, width)
    routine = "ungqr" if is_complex(x) else "orgqr"
    (q,) = ops.lapack(routine, (reflectors, taus), [(x.dtype, reflectors.shape, 2)])
    return q, ops.slice_axis(upper, rank - 2, 0, width)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Q R = x with orthonormal columns Q and an upper triangle R; `reduced` or `complete`."""
    if mode not in ("reduced", "complete"):
        raise problem(
            HloValueError, "HLO0626", f"qr: mode is 'reduced' or 'complete', not {mode!r}"
        )
    return QRResult(*_qr(matrices(x, "qr"), complete=mode == "complete"))


@kernel
def _svd(x: Array, *, full: bool) -> tuple[Array, Array, Array]:
    batch, rows, columns = x.shape[:-2], x.shape[-2], x.shape[-1]
    size, real = min(rows, columns), dt.real_of(x.dtype)
    left, right = (rows, columns) if full else (size, size)
    shapes = (*batch, rows, left), (*batch, size), (*batch, right, columns)
    if 0 in x.shape:
        u, vh = (ops.convert(band(shape, "EQ"), x.dtype) for shape in (shapes[0], shapes[2]))
        return u, ops.splat(0, real, shapes[1]), vh
    _, s, u, vh, info = ops.lapack(
        "gesdd",
        (x,),
        [
            (x.dtype, x.shape, 2),
            (real, shapes[1], 1),
            (x.dtype, shapes[0], 2),
            (x.dtype, shapes[2], 2),
            (dt.int32, batch, 0),
        ],
        f"mode = {ord('A' if full else 'S')} : ui8",
    )
    return _or_nan(u, info), _or_nan(s, info), _or_nan(vh, info)


def _or_nan(x: Array, info: Array) -> Array:
    """The results of matrices for which a routine did its work, NaN for others."""
    works = ops.compare("EQ", info, ops.like(0, info))
    works = ops.broadcast(works, x.shape, tuple(range(info.ndim)))
    return ops.select(works, x, ops.like(math.nan, x))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """U S Vᴴ = x with singular values S in descending order."""
    return SVDResult(*_svd(matrices(x, "svd"), full=full_matrices))


def svdvals(x: Any, /) -> Array:
    """Singular values in descending order."""
    return _svd(matrices(x, "svdvals"), full=False)[1]


@kernel
def _eigh(x: Array) -> tuple[Array, Array]:
    batch, real = x.shape[:-2], dt.real_of(x.dtype)
    if 0 in x.shape:
        return ops.splat(0, real, x.shape[:-1]), x
    vectors, values, info = ops.lapack(
        "heevd" if is_complex(x) else "syevd",
        (x,),
        [(x.dtype, x.shape, 2), (real, x.shape[:-1], 1), (dt.int32, batch, 0)],
        f"mode = {ord('V')} : ui8, uplo = {ord('L')} : ui8",
    )
    return _or_nan(values, info), _or_nan(vectors, info)


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices; the lower triangle is read."""
    return EighResult(*_eigh(matrices(x, "eigh", square=True)))


def eigvalsh(x: Any, /) -> Array:
    """Eigenvalues of Hermitian matrices, ascending."""
    return _eigh(matrices(x, "eigvalsh", square=True))[0]


@kernel
def _matrix_rank(x: Array, rtol: Array) -> Array:
    _, values, _ = _svd(x, full=False)
    last = values.ndim - 1
    if values.shape[last] == 0:
        return ops.splat(0, dt.int64, values.shape[:-1])
    greatest = ops.reduce("maximum", values, (last,))
    limit = ops.binary("multiply", greatest, ops.broadcast_to(rtol, greatest.shape))
    limit = ops.broadcast(limit, values.shape, tuple(range(last)))
    counts = ops.convert(ops.compare("GT", values, limit), dt.int64)
    return ops.reduce("add", counts, (last,))


def _tolerance(array: Array, rtol: Any, what: str) -> Array:
    real = dt.real_of(array.dtype)
    if rtol is None:
        rtol = max(array.shape[-2:]) * dt.finfo(real).eps
    found = as_array(rtol, what, real)
    return astype(found, real)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """How many singular values lie above `rtol` times the greatest."""
    array = matrices(x, "matrix_rank")
    return _matrix_rank(array, _tolerance(array, rtol, "matrix_rank"))


@kernel
def _pinv(x: Array, rtol: Array) -> Array:
    if 0 in x.shape:
        return adjoint(x)
    u, values, vh = _svd(x, full=False)
    last = values.ndim - 1
    greatest = ops.reduce("maximum", values, (last,))
    limit = ops.binary("multiply", greatest, ops.broadcast_to(rtol, greatest.shape))
    limit = ops.broadcast(limit, values.shape, tuple(range(last)))
    counts = ops.compare("GT", values, limit)
    inverse = ops.binary("divide", ops.like(1, values), values)
    inverse = ops.convert(ops.select(counts, inverse, ops.like(0, values)), x.dtype)
    v = adjoint(vh)
    scaled = ops.binary("multiply", v, ops.broadcast(inverse, v.shape, (*range(last), v.ndim - 1)))
    rank = x.ndim
    dims = tuple(range(rank - 2))
    return ops.dot(scaled, adjoint(u), ((rank - 1,), (rank - 2,)), (dims, dims))


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """Pseudo-inverses; singular values up to `rtol` times the greatest count as 0."""
    array = matrices(x, "pinv")
    return _pinv(array, _tolerance(array, rtol, "pinv"))


def matrix_power(x: Any, n: int, /) -> Array:
    """Matrices to an integer power; negative ones of the inverse."""
    array = as_array(x, "matrix_power")
    floats = matrices(array, "matrix_power", square=True)
    array = array if n > 0 else floats
    if n < 0:
        array, n = inv(array), -n
    found: Array | None = None
    while n:
        if n & 1:
            found = array if found is None else matmul(found, array)
        n >>= 1
        if n:
            array = matmul(array, array)
    return identities(array) if found is None else found


# ------------------------------------------------------------------ norms


@kernel
def _vector_norm(x: Array, *, axes: Shape, keepdims: bool, order: float) -> Array:
    size = magnitude(x)
    if order == math.inf:
        found = ops.reduce("maximum", size, axes)
    elif order == -math.inf:
        found = ops.reduce("minimum", size, axes)
    elif order == 0:
        found = ops.reduce(
            "add", ops.convert(ops.compare("NE", size, ops.like(0, size)), size.dtype), axes
        )
    elif order == 1:
        found = ops.reduce("add", size, axes)
    elif order == 2:
        found = ops.unary("sqrt", ops.reduce("add", ops.binary("multiply", size, size), axes))
    else:
        powers = ops.binary("power", size, ops.like(order, size))
        total = ops.reduce("add", powers, axes)
        found = ops.binary("power", total, ops.like(1 / order, total))
    if not keepdims:
        return found
    return ops.reshape(found, tuple(1 if d in axes else s for d, s in enumerate(x.shape)))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """(sum |x|^ord)^(1/ord), over axes; the extremes for infinite orders, a count for 0."""
    array = as_array(x, "vector_norm")
    array = astype(array, checked("vector_norm", "float", array.dtype))
    axes = axes_of(axis, array.ndim, "vector_norm")
    order = float(ord)
    if math.isinf(order) and any(array.shape[d] == 0 for d in axes):
        if order < 0:
            raise problem(HloValueError, "HLO0626", "vector_norm: nothing to choose from")
        order = 1  # the greatest of no magnitudes is 0
    return _vector_norm(array, axes=axes, keepdims=keepdims, order=order)


@kernel
def _singular_norm(x: Array, *, order: str, keepdims: bool) -> Array:
    _, values, _ = _svd(x, full=False)
    last = values.ndim - 1
    opcode = {"nuc": "add", "max": "maximum", "min": "minimum"}[order]
    if values.shape[last] == 0:
        opcode = "add"
    found = ops.reduce(opcode, values, (last,))
    return ops.reshape(found, (*found.shape, 1, 1)) if keepdims else found


@kernel
def _line_norm(x: Array, *, along: int, largest: bool, keepdims: bool) -> Array:
    sums = ops.reduce("add", magnitude(x), (x.ndim - 2 + along,))
    last = sums.ndim - 1
    opcode = "maximum" if largest else "minimum"
    found = ops.reduce(opcode if sums.shape[last] else "add", sums, (last,))
    return ops.reshape(found, (*found.shape, 1, 1)) if keepdims else found


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norms of matrices: 'fro', 'nuc', 1, 2, inf, and -1, -2, -inf for the least."""
    array = matrices(x, "matrix_norm")
    if ord is None or ord == "fro":
        return vector_norm(array, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        order = {"nuc": "nuc", 2: "max", -2: "min"}[ord]
        return _singular_norm(array, order=order, keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        along = 0 if abs(ord) == 1 else 1
        return _line_norm(array, along=along, largest=ord > 0, keepdims=keepdims)
    raise problem(
        HloValueError,
        "HLO0626",
        f"matrix_norm: no order {ord!r}",
        help="one of 'fro', 'nuc', 1, -1, 2, -2, inf, -inf",
    )


# ------------------------------------------------------------------ diagonals and products


@kernel
def _diagonal(x: Array, *, offset: int) -> Array:
    return diagonal_of(x, offset)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices; positive offsets lie above the main one."""
    array = as_array(x, "diagonal")
    if array.ndim < 2:
        raise problem(HloValueError, "HLO0626", f"diagonal: takes matrices, not {array.describe()}")
    return _diagonal(array, offset=int(offset))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of diagonals."""
    return statistical.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1: Any, x2: Any, /) -> Array:
    """Products of all pairs of elements of two lists."""
    a, b = as_array(x1, "outer"), as_array(x2, "outer")
    if a.ndim != 1 or b.ndim != 1:
        raise problem(
            HloValueError, "HLO0626", f"outer: takes lists, not {a.describe()}, {b.describe()}"
        )
    return a[:, None] * b[None, :]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Cross products of vectors of three elements along an axis."""
    a, b = as_array(x1, "cross"), as_array(x2, "cross")
    common_dtype("cross", "numeric", (a, b))
    rank = max(a.ndim, b.ndim)
    dim = axis_of(axis, rank, "cross")
    # The axis of the vectors does not broadcast; one that an array lacks counts as 1.
    sizes = [((1,) * (rank - x.ndim) + x.shape)[dim] for x in (a, b)]
    if sizes != [3, 3]:
        raise problem(
            HloTypeError,
            "HLO0626",
            f"cross: takes vectors of 3 elements, not {sizes[0]} and {sizes[1]}",
        )
    if a.ndim != b.ndim:
        a, b = broadcast_arrays(a, b)
    return roll(a, -1, axis=dim) * roll(b, -2, axis=dim) - (
        roll(a, -2, axis=dim) * roll(b, -1, axis=dim)
    )
