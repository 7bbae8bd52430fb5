"""Linear algebra custom calls beside LAPACK's: XLA's own expansions, TPU helpers, cuSOLVER, cuBLAS.

Source: XLA's expanders for `Qr`, `Eigh`, `LuDecomposition`; JAX's lowerings; for the TPU helpers
the modules around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import computes, options_of, unfit
from mlirhlo.interp.custom_calls.tpu_parts import computes_in_parts
from mlirhlo.interp.linear_algebra.linalg import cholesky_lower, solve_triangular, widened
from mlirhlo.interp.linear_algebra.linalg_factor import (
    batched,
    householder_product,
    lu_factor,
    qr_factor,
    solve_tridiagonal,
)
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.ops.random_bits import threefry_rounds
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes("Qr")
@computes_in_parts("QrDecompositionBlock")
def qr(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(R and reflectors, tau)` as LAPACK's `geqrf`."""
    dtype = inputs[0].dtype
    factors, taus = batched(qr_factor, inputs[0], ranks=(2,))
    return factors.astype(dtype), taus.astype(dtype)


@computes("ProductOfElementaryHouseholderReflectors")
def product_of_reflectors(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Q from reflectors and tau, as LAPACK's `orgqr`."""
    (q,) = batched(householder_product, inputs[0], inputs[1], ranks=(2, 1))
    return q.astype(inputs[0].dtype)


@computes_in_parts("CompactWyHelper")
def compact_wy(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """W with H₀ H₁ … = I + Y W Yᴴ, from M = (I + strict upper triangle of Yᴴ Y) · diag(-tau)."""
    m = widened(inputs[0])
    w = np.zeros_like(m)
    for j in range(m.shape[-1]):
        w[..., :j, j] = np.matmul(w[..., :j, :j], m[..., :j, j, None])[..., 0]
        w[..., j, j] = m[..., j, j]
    return w.astype(inputs[0].dtype)


@computes_in_parts("InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular")
def invert_blocks(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Inverses of triangular matrices."""
    blocks = cast(Array, inputs[0])
    eye = np.broadcast_to(np.eye(blocks.shape[-1]), blocks.shape)
    lower = "Lower" in op.custom_call_target
    return solve_triangular(blocks, eye, lower=lower).astype(blocks.dtype)


@computes_in_parts("Cholesky")
def cholesky(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Lower Cholesky factor; NaN where the matrix is not positive definite."""
    factor, failed = cholesky_lower(inputs[0])
    factor[failed != 0] = np.nan
    return factor.astype(inputs[0].dtype)


@computes("__cusolver$cholesky")
def cusolver_cholesky(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(factor, workspace, info)`; the factor is transposed for `lower: false`."""
    factor, failed = cholesky_lower(inputs[0])
    if not options_of(op).get("lower", False):
        factor = np.conj(np.swapaxes(factor, -1, -2))
    parts = cast(TupleShape, op.shape).elements
    return factor.astype(inputs[0].dtype), zeros(parts[1]), failed


@computes("__cublas$triangularSolve")
def cublas_triangular_solve(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(x, workspace)` of a triangular-solve with its attributes in the options."""
    options = options_of(op)
    x = solve_triangular(
        inputs[0],
        inputs[1],
        left_side=bool(options.get("left_side", False)),
        lower=bool(options.get("lower", False)),
        unit_diagonal=bool(options.get("unit_diagonal", False)),
        transpose=str(options.get("transpose_a", "NO_TRANSPOSE")),
    ).astype(inputs[1].dtype)
    if not isinstance(op.shape, TupleShape):
        return x
    return (x, *map(zeros, op.shape.elements[1:]))


@computes("Eigh")
def eigh(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(eigenvectors, ascending eigenvalues)`; `backend_config` begins with `lower` as 0 or 1."""
    matrix = cast(Array, inputs[0])
    is_lower = not op.backend_config.lstrip().startswith("0")
    finite: Any = np.isfinite(matrix).all(axis=(-1, -2))
    clean = np.where(finite[..., None, None], matrix, 0)
    values, vectors = cast("tuple[Any, Any]", np.linalg.eigh(clean, "L" if is_lower else "U"))
    values, vectors = np.array(values), np.array(vectors)
    values[~finite], vectors[~finite] = np.nan, np.nan
    types = [cast(ArrayShape, s).element_type.dtype for s in cast(TupleShape, op.shape).elements]
    return vectors.astype(types[0]), values.astype(types[1])


@computes("EighTpu")
def eigh_tpu(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Eigenvalues of a symmetric matrix in four quarters, in any order, and eigenvectors as rows.

    `(top left, top right, bottom left, bottom right)`, [..., k, k] each, to `(first half of the
    values, second half, four quarters of the vectors)`. A last row and column of zeros is what XLA
    pads a matrix of odd size by, and cuts off the result: its value and its vector stay the last.
    Source: XLA's expander of `Eigh`, whose loop this call replaces; modules around it.
    """
    tl, tr, bl, br = (cast(Array, a) for a in inputs)
    matrix: Any = np.block([[tl, tr], [bl, br]])
    is_padded = not matrix[..., -1, :].any() and not matrix[..., -1].any()
    n = matrix.shape[-1] - is_padded
    finite: Any = np.isfinite(matrix).all(axis=(-1, -2))
    clean = np.where(finite[..., None, None], matrix, 0)[..., :n, :n]
    found, columns = cast("tuple[Any, Any]", np.linalg.eigh(widened(clean)))
    values = np.zeros(matrix.shape[:-1], matrix.dtype)
    rows: Any = np.broadcast_to(np.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape).copy()
    values[..., :n], rows[..., :n, :n] = found, np.swapaxes(columns, -1, -2)
    values[~finite], rows[~finite] = np.nan, np.nan
    k = tl.shape[-1]
    return (
        *(values[..., :k], values[..., k:]),
        *(rows[..., :k, :k], rows[..., :k, k:], rows[..., k:, :k], rows[..., k:, k:]),
    )


def permutation_of(pivots: Array, size: int) -> Array:
    """The rows' order after the exchanges `i <-> pivots[i]` (0-based), batched, as s32."""

    def one(row: Array) -> tuple[Array]:
        order = np.arange(size, dtype=np.int32)
        for k, pivot in enumerate(np.asarray(row)):
            order[[k, pivot]] = order[[pivot, k]]
        return (order,)

    return batched(one, pivots, ranks=(1,))[0]


@computes("LuDecomposition")
@computes_in_parts("LuRealDecompositionBlock", "LuComplexDecompositionBlock")
def lu_decomposition(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(factors, 0-based pivots, permutation)`."""
    factors, pivots, _ = batched(lu_factor, inputs[0], ranks=(2,))
    permutation = permutation_of(pivots, inputs[0].shape[-2])
    return factors.astype(inputs[0].dtype), pivots, permutation


@computes("LuPivotsToPermutation", "cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation")
def pivots_to_permutation(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The permutation that 0-based pivots stand for."""
    return permutation_of(inputs[0], cast(ArrayShape, op.shape).dimensions[-1])


@computes("cusparse_gtsv2_ffi", "hipsparse_gtsv2_ffi")
def gtsv2(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Solution of tridiagonal systems; the first of `dl` and the last of `du` are not read."""

    def solve(dl: Array, d: Array, du: Array, b: Array) -> tuple[Array]:
        return (solve_tridiagonal(dl[1:], d, du[:-1], b)[3],)

    (x,) = batched(solve, *inputs, ranks=(1, 1, 1, 2))
    return x.astype(inputs[3].dtype)


@computes("cusolver_gesvdj_ffi", "cusolver_gesvdp_ffi")
def gesvdj(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(operand, singular values, u, v, info)`; v is not transposed."""
    matrix = cast(Array, inputs[0])
    parts = [cast(ArrayShape, s) for s in cast(TupleShape, op.shape).elements]
    if len(parts) != 5:
        raise unfit(op, f"its shape is {op.shape}")
    full = (
        parts[2].dimensions[-1] == matrix.shape[-2] and parts[3].dimensions[-1] == matrix.shape[-1]
    )
    u, values, vt = cast("tuple[Any, Any, Any]", np.linalg.svd(matrix, full_matrices=full))
    v = np.conj(np.swapaxes(vt, -1, -2))
    results = (matrix, values, u, v, np.zeros(matrix.shape[:-2], np.int32))
    return tuple(
        cast(Array, np.asarray(value).astype(part.element_type.dtype))
        for value, part in zip(results, parts, strict=True)
    )


@computes("cusolver_syrk_ffi", "hipsolver_syrk_ffi")
def symmetric_product(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """alpha A Aᵀ + beta C (`transpose`: alpha Aᵀ A + beta C) below and on the diagonal; above it C."""
    a, c, alpha, beta = (widened(value) for value in inputs)
    turned = np.swapaxes(a, -1, -2)
    product = np.matmul(turned, a) if options_of(op).get("transpose") else np.matmul(a, turned)
    lower = np.tril(alpha * product + beta * c)
    return (lower + np.triu(c, 1)).astype(inputs[1].dtype)


@computes("cu_cholesky_update_ffi")
def cholesky_update(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(R', undefined)` with R'ᵀ R' = Rᵀ R + w wᵀ."""
    r, w = widened(inputs[0]), widened(inputs[1])
    total = np.matmul(np.swapaxes(r, -1, -2), r) + w[..., :, None] * w[..., None, :]
    factor, failed = cholesky_lower(total)
    factor[failed != 0] = np.nan
    return np.swapaxes(factor, -1, -2).astype(inputs[0].dtype), inputs[1]


@computes("cu_threefry2x32_ffi", "hip_threefry2x32_ffi")
def threefry(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Threefry-2x32 of key words 0 and 1 on counter words 2 and 3, element by element."""
    return threefry_rounds(inputs[0], inputs[1], inputs[2], inputs[3])
