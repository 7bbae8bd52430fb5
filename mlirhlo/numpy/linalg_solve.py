"""Cholesky and LU factors, and what is solved with them; helpers of the `linalg` extension.

Source: Python array API standard 2024.12, "Linear algebra extension".
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, NamedTuple

from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy import ops
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.control_flow import fori_loop
from mlirhlo.numpy.creation import band
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.eager import kernel
from mlirhlo.numpy.elementwise import is_complex, magnitude
from mlirhlo.numpy.errors import HloValueError, problem
from mlirhlo.numpy.manipulation import astype, expand_dims, squeeze
from mlirhlo.numpy.operands import as_array, broadcast_shapes, checked, common_dtype

Shape = tuple[int, ...]


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


def matrices(x: Any, what: str, *, square: bool = False) -> Array:
    """Stacks of matrices of floats. Raises HLO0625 and HLO0626."""
    array = as_array(x, what)
    if array.ndim < 2:
        raise problem(HloValueError, "HLO0626", f"{what}: takes matrices, not {array.describe()}")
    if square and array.shape[-1] != array.shape[-2]:
        raise problem(
            HloValueError, "HLO0626", f"{what}: takes square matrices, not {array.describe()}"
        )
    dtype = checked(what, "float", array.dtype)
    if dtype not in dt.FLOATS + dt.COMPLEX:
        dtype = dt.float32  # LAPACK has no narrower type
    return astype(array, dtype)


def adjoint(x: Array) -> Array:
    """The conjugate transposes of matrices."""
    rank = x.ndim
    turned = ops.transpose(x, (*range(rank - 2), rank - 1, rank - 2))
    if not is_complex(x):
        return turned
    real = dt.real_of(x.dtype)
    parts = ops.unary("real", turned, real), ops.unary("imag", turned, real)
    return ops.complex_(parts[0], ops.unary("negate", parts[1]))


def masked(x: Array, direction: str, k: int = 0) -> Array:
    """Zeros where column - row does not compare with `k` as `direction` says."""
    return ops.select(band(x.shape, direction, k), x, ops.like(0, x))


@kernel
def _cholesky(x: Array, *, upper: bool) -> Array:
    # One triangle is read; the other one is filled from it, so that either may be given.
    factor = ops.cholesky(adjoint(x) if upper else x)
    return masked(adjoint(factor), "GE") if upper else masked(factor, "LE")


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """L with L Lᴴ = x, or U with Uᴴ U = x; NaN where x is not positive definite."""
    return _cholesky(matrices(x, "cholesky", square=True), upper=upper)


# ------------------------------------------------------------------ LU: det, solve, inv


def _lu(x: Array) -> tuple[Array, Array]:
    """LU factors and 1-based row exchanges."""
    batch, rows, columns = x.shape[:-2], x.shape[-2], x.shape[-1]
    factors, pivots, _ = ops.lapack(
        "getrf",
        (x,),
        [
            (x.dtype, x.shape, 2),
            (dt.int32, (*batch, min(rows, columns)), 1),
            (dt.int32, batch, 0),
        ],
    )
    return factors, pivots


def diagonal_of(x: Array, offset: int = 0) -> Array:
    """Diagonals of matrices."""
    rows, columns = x.shape[-2:]
    row, column = max(-offset, 0), max(offset, 0)
    size = max(0, min(rows - row, columns - column))
    batch, rank = x.shape[:-2], x.ndim
    if size == 0:
        return ops.splat(0, x.dtype, (*batch, 0))
    places = ops.iota(dt.int64, (size, 1), 0)
    starts = (ops.binary("add", places, ops.like(start, places)) for start in (row, column))
    return ops.gather(x, ops.concatenate(list(starts), 1), (rank - 2, rank - 1), rank - 2)


def _exchange_sign(pivots: Array, dtype: DType) -> Array:
    """-1 to the number of row exchanges."""
    places = ops.iota(dt.int32, pivots.shape, pivots.ndim - 1)
    own = ops.binary("add", places, ops.like(1, places))
    moved = ops.convert(ops.compare("NE", pivots, own), dt.int32)
    odd = ops.reduce("add", moved, (pivots.ndim - 1,))
    odd = ops.binary("and", odd, ops.like(1, odd))
    is_odd = ops.compare("NE", odd, ops.like(0, odd))
    return ops.select(is_odd, ops.splat(-1, dtype, odd.shape), ops.splat(1, dtype, odd.shape))


@kernel
def _det(x: Array) -> Array:
    if x.shape[-1] == 0:
        return ops.splat(1, x.dtype, x.shape[:-2])
    factors, pivots = _lu(x)
    product = ops.reduce("multiply", diagonal_of(factors), (x.ndim - 2,))
    return ops.binary("multiply", product, _exchange_sign(pivots, x.dtype))


def det(x: Any, /) -> Array:
    """Determinants."""
    return _det(matrices(x, "det", square=True))


@kernel
def _slogdet(x: Array) -> tuple[Array, Array]:
    real = dt.real_of(x.dtype)
    if x.shape[-1] == 0:
        return ops.splat(1, x.dtype, x.shape[:-2]), ops.splat(0, real, x.shape[:-2])
    factors, pivots = _lu(x)
    diagonal = diagonal_of(factors)
    axes = (x.ndim - 2,)
    signs = ops.reduce("multiply", ops.unary("sign", diagonal), axes)
    sign = ops.binary("multiply", signs, _exchange_sign(pivots, x.dtype))
    return sign, ops.reduce("add", ops.unary("log", magnitude(diagonal)), axes)


def slogdet(x: Any, /) -> SlogdetResult:
    """Signs and logarithms of the magnitudes of determinants."""
    return SlogdetResult(*_slogdet(matrices(x, "slogdet", square=True)))


def _exchanged(b: Array, pivots: Array) -> Array:
    """The rows of matrices after the exchanges `i <-> pivots[i] - 1`, one after the other."""
    rows, last = b.shape[-2], pivots.ndim - 1
    places = ops.iota(dt.int32, (*pivots.shape[:-1], rows), last)
    batch = pivots.shape[:-1]

    def exchange(row: Array, order: Array) -> Array:
        starts = [ops.constant(0, dt.int64)] * last + [row]
        other = ops.dynamic_slice(pivots, starts, (*batch, 1))
        other = ops.binary("subtract", other, ops.like(1, other))
        at_other = ops.compare("EQ", places, ops.broadcast_to(other, places.shape))
        mine = ops.broadcast_to(ops.dynamic_slice(order, starts, (*batch, 1)), places.shape)
        # The one element at the other place is picked by a sum over a mask.
        theirs = ops.reduce("add", ops.select(at_other, order, ops.like(0, order)), (last,))
        theirs = ops.broadcast(theirs, places.shape, tuple(range(last)))
        here = ops.broadcast(ops.convert(row, dt.int32), places.shape, ())
        at_mine = ops.compare("EQ", places, here)
        return ops.select(at_mine, theirs, ops.select(at_other, mine, order))

    order = fori_loop(0, pivots.shape[-1], exchange, places)
    index = ops.broadcast(order, b.shape, (*range(last), b.ndim - 2))
    vectors = [index if d == b.ndim - 2 else ops.iota(dt.int32, b.shape, d) for d in range(b.ndim)]
    parts = [ops.reshape(v, (*b.shape, 1)) for v in vectors]
    return ops.gather(b, ops.concatenate(parts, b.ndim), tuple(range(b.ndim)), 0)


@kernel
def _solve(a: Array, b: Array, *, batch: Shape, dtype: DType) -> Array:
    a = ops.broadcast_to(ops.convert(a, dtype), (*batch, *a.shape[-2:]))
    b = ops.broadcast_to(ops.convert(b, dtype), (*batch, *b.shape[-2:]))
    if 0 in b.shape:
        return b
    factors, pivots = _lu(a)
    below = ops.triangular_solve(factors, _exchanged(b, pivots), lower=True, unit_diagonal=True)
    return ops.triangular_solve(factors, below, lower=False)


def solve(x1: Any, x2: Any, /) -> Array:
    """x with x1 x = x2; x2 of rank 1 is one right-hand side, else a stack of matrices of them."""
    a = matrices(x1, "solve", square=True)
    b = as_array(x2, "solve")
    dtype = checked("solve", "float", common_dtype("solve", "float", (a, b)))
    is_vector = b.ndim == 1
    b = expand_dims(b, axis=-1) if is_vector else b
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise problem(
            HloValueError,
            "HLO0626",
            f"solve: {a.describe()} and right-hand sides {b.describe()} do not fit",
        )
    batch = broadcast_shapes("solve", a.shape[:-2], b.shape[:-2])
    found = _solve(a, b, batch=batch, dtype=dtype)
    return squeeze(found, -1) if is_vector else found


@kernel
def identities(x: Array) -> Array:
    """Identity matrices like those of a stack."""
    return ops.convert(band(x.shape, "EQ"), x.dtype)


def inv(x: Any, /) -> Array:
    """Inverses."""
    array = matrices(x, "inv", square=True)
    return solve(array, identities(array))
