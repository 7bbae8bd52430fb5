"""cholesky and triangular-solve, batched, computed in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.interp.registry import Array, Frame, Value, evaluates

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.linear_algebra import CholeskyOp, TriangularSolveOp


def widened(array: Array) -> Array:
    """`array` in double precision: f64, or c128 for complex numbers."""
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    return array.astype(wide)


def adjoint(matrices: Array) -> Array:
    """Conjugate transposes of the last two dimensions."""
    return np.conj(np.swapaxes(matrices, -1, -2))


def cholesky_lower(matrices: Array) -> tuple[Array, Array]:
    """Lower factors of batches `[…, n, n]`, from the lower triangles, and where it failed.

    The second array `[…]` is 0, or the order of the first leading minor that is not positive.
    Columns from there on hold no defined values.
    """
    a = widened(matrices)
    size = a.shape[-1]
    factor = np.zeros_like(a)
    failed: Any = np.zeros(a.shape[:-2], dtype=np.int32)
    for j in range(size):
        row = factor[..., j, :j]
        pivot: Any = np.real(a[..., j, j]) - np.sum(np.abs(row) ** 2, axis=-1)
        failed = np.where((failed == 0) & ~(pivot > 0), j + 1, failed)
        root = np.sqrt(pivot)
        factor[..., j, j] = root
        # Not einsum: its sums over nothing are whatever the memory held (numpy 2.4).
        product = np.matmul(factor[..., j + 1 :, :j], np.conj(row)[..., None])
        below = a[..., j + 1 :, j] - product[..., 0]
        factor[..., j + 1 :, j] = below / root[..., None]
    return factor, failed


@evaluates("cholesky")
def cholesky(op: CholeskyOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """L with L * adjoint(L) = A from A's lower triangle, or U with adjoint(U) * U = A from its upper.

    The other triangle of the result is zero. A matrix that is not positive definite gives NaN in
    every element, as XLA's expansion does.
    """
    matrices = cast(Array, inputs[0])
    factor, failed = cholesky_lower(matrices if op.lower else adjoint(matrices))
    factor[failed != 0] = np.nan
    return (factor if op.lower else adjoint(factor)).astype(matrices.dtype)


def solve_triangular(
    a: Array,
    b: Array,
    *,
    left_side: bool = True,
    lower: bool = True,
    unit_diagonal: bool = False,
    transpose: str = "NO_TRANSPOSE",
) -> Array:
    """x with op(a) x = b, or x op(a) = b; batched, in double precision.

    Reads only the named triangle of `a`. A zero on the diagonal gives infinities and NaN.
    """
    a, b = widened(a), widened(b)
    dtype = np.result_type(a, b)
    if not left_side:
        # x op(a) = b is op(a)ᵀ xᵀ = bᵀ
        turned = {"NO_TRANSPOSE": "TRANSPOSE", "TRANSPOSE": "NO_TRANSPOSE"}.get(transpose)
        if turned is None:
            a, turned = np.conj(a), "NO_TRANSPOSE"
        result = solve_triangular(
            a,
            np.swapaxes(b, -1, -2),
            lower=lower,
            unit_diagonal=unit_diagonal,
            transpose=turned,
        )
        return np.swapaxes(result, -1, -2)
    if transpose != "NO_TRANSPOSE":
        a = np.swapaxes(a, -1, -2) if transpose == "TRANSPOSE" else adjoint(a)
        lower = not lower
    x = np.array(b, dtype=dtype)
    size = a.shape[-1]
    for i in range(size) if lower else reversed(range(size)):
        known = slice(0, i) if lower else slice(i + 1, size)
        product = np.matmul(a[..., i, None, known], x[..., known, :])
        rest = x[..., i, :] - product[..., 0, :]
        x[..., i, :] = rest if unit_diagonal else rest / a[..., i, i, None]
    return x


@evaluates("triangular-solve")
def triangular_solve(op: TriangularSolveOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """x with op(a) x = b (`left_side`) or x op(a) = b; `a` is triangular, its other half not read."""
    a, b = cast("tuple[Array, Array]", tuple(inputs))
    result = solve_triangular(
        a,
        b,
        left_side=op.left_side,
        lower=op.lower,
        unit_diagonal=op.unit_diagonal,
        transpose=op.transpose_a,
    )
    return result.astype(b.dtype)
