"""Dense factorisations by the textbook (LAPACK's unblocked) algorithms, with LAPACK's conventions.

Functions take one matrix in double precision and return new arrays; `batched` applies them to
batches. Householder reflectors are H = I - tau v vᴴ with v[0] = 1 (source: LAPACK's `larfg`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirhlo.interp.linear_algebra.linalg import widened
from mlirhlo.interp.registry import Array


def batched(
    function: Callable[..., Any], *arrays: Array, ranks: Sequence[int]
) -> tuple[Array, ...]:
    """`function` on each member of a batch; `ranks` are those of one member's arrays.

    Results are stacked in the batch's dimensions. An empty batch is tried on a zero member.
    """
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    count = int(np.prod(batch, dtype=np.int64))
    flat = [a.reshape((count, *a.shape[a.ndim - r :])) for a, r in zip(arrays, ranks, strict=True)]
    if count == 0:
        parts = function(*(np.zeros(a.shape[1:], a.dtype) for a in flat))
        return tuple(np.zeros((*batch, *np.shape(p)), np.asarray(p).dtype) for p in parts)
    rows = [function(*(a[k] for a in flat)) for k in range(count)]
    stacked = (np.stack([np.asarray(part) for part in parts]) for parts in zip(*rows, strict=True))
    return tuple(s.reshape((*batch, *s.shape[1:])) for s in stacked)


def reflector(x: Array) -> tuple[Array, Any, Any]:
    """`(v, tau, beta)` with Hᴴ x = (beta, 0, …, 0)."""
    v: Any = np.array(x)
    alpha = v[0] if len(v) else 0.0
    tail = np.linalg.norm(v[1:])
    if len(v) == 0 or (tail == 0 and np.imag(alpha) == 0):
        if len(v):
            v[0] = 1
        return v, v.dtype.type(0), alpha
    norm = np.hypot(np.abs(alpha), tail)
    beta = -norm if np.real(alpha) >= 0 else norm
    tau = (beta - alpha) / beta
    v = v / (alpha - beta)
    v[0] = 1
    return v, tau, beta


def qr_factor(matrix: Array) -> tuple[Array, Array]:
    """`geqrf`: R in the upper triangle, reflectors below; and their tau."""
    a: Any = widened(matrix)
    rows, columns = a.shape
    taus = np.zeros(min(rows, columns), a.dtype)
    for k in range(len(taus)):
        v, tau, beta = reflector(a[k:, k])
        block = a[k:, k + 1 :]
        block -= np.conj(tau) * np.outer(v, np.conj(v) @ block)
        a[k, k] = beta
        a[k + 1 :, k] = v[1:]
        taus[k] = tau
    return a, taus


def qr_factor_pivoted(matrix: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """`geqp3`: QR with the longest remaining column first; columns with a non-zero entry in
    `pivots` go to the front. Gives the factors, 1-based pivots and tau.
    """
    a: Any = widened(matrix)
    rows, columns = a.shape
    given: Any = np.asarray(pivots)
    order: Any = np.concatenate([np.flatnonzero(given != 0), np.flatnonzero(given == 0)])
    fixed = int(np.count_nonzero(given))
    a = a[:, order]
    taus = np.zeros(min(rows, columns), a.dtype)
    for k in range(len(taus)):
        if k >= fixed:
            longest = k + int(np.argmax(np.linalg.norm(a[k:, k:], axis=0)))
            if longest != k:
                a[:, [k, longest]] = a[:, [longest, k]]
                order[[k, longest]] = order[[longest, k]]
        v, tau, beta = reflector(a[k:, k])
        block = a[k:, k + 1 :]
        block -= np.conj(tau) * np.outer(v, np.conj(v) @ block)
        a[k, k] = beta
        a[k + 1 :, k] = v[1:]
        taus[k] = tau
    return a, (order + 1).astype(np.int32), taus


def apply_reflectors(
    reflectors: Array, taus: Array, c: Array, *, left: bool = True, conjugated: bool = False
) -> Array:
    """`Q c` or `c Q` for Q = H₀ H₁ …, or with its adjoint (`conjugated`); `ormqr`."""
    result: Any = widened(c)
    vs, taus = widened(reflectors), widened(taus)
    result = result.astype(np.result_type(result, vs))
    order = range(len(taus))
    for k in order if left == conjugated else reversed(order):
        v: Any = np.concatenate([np.zeros(k, vs.dtype), [1], vs[k + 1 :, k]])
        tau = np.conj(taus[k]) if conjugated else taus[k]
        if left:
            result -= tau * np.outer(v, np.conj(v) @ result)
        else:
            result -= tau * np.outer(result @ v, np.conj(v))
    return result


def householder_product(reflectors: Array, taus: Array) -> tuple[Array]:
    """`orgqr`: the first columns of Q = H₀ H₁ …, as many as the operand has."""
    eye = np.eye(*reflectors.shape, dtype=widened(reflectors).dtype)
    return (apply_reflectors(reflectors, taus, eye),)


def lu_factor(matrix: Array) -> tuple[Array, Array, Array]:
    """`getrf`: L below, U above; 0-based pivots; order of the first zero pivot or 0."""
    a: Any = widened(matrix)
    count = min(a.shape)
    pivots = np.zeros(count, np.int32)
    info = 0
    for k in range(count):
        size = np.abs(a[k:, k].real) + np.abs(a[k:, k].imag)
        pivot = k + int(np.argmax(size))
        pivots[k] = pivot
        if a[pivot, k] == 0:
            info = info or k + 1
            continue
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, pivots, np.array(info, np.int32)


def hessenberg(matrix: Array, low: int, high: int) -> tuple[Array, Array]:
    """`gehrd` on rows and columns `low…high` (1-based, inclusive): H, reflectors below it; tau."""
    a: Any = widened(matrix)
    size = a.shape[0]
    taus = np.zeros(max(size - 1, 0), a.dtype)
    for k in range(low - 1, high - 1):
        v, tau, beta = reflector(a[k + 1 : high, k])
        right = a[:high, k + 1 : high]
        right -= tau * np.outer(right @ v, np.conj(v))
        left = a[k + 1 : high, k + 1 :]
        left -= np.conj(tau) * np.outer(v, np.conj(v) @ left)
        a[k + 1, k] = beta
        a[k + 2 : high, k] = v[1:]
        taus[k] = tau
    return a, taus


def tridiagonal(matrix: Array, lower: bool) -> tuple[Array, Array, Array, Array]:
    """`sytrd`, `hetrd`: factored matrix, diagonal, off-diagonal, tau; reads one triangle."""
    a: Any = widened(matrix)
    if not lower:
        # The upper form is the lower one of the matrix turned by 180 degrees.
        turned, d, e, taus = tridiagonal(a[::-1, ::-1], True)
        return turned[::-1, ::-1], d[::-1], e[::-1], taus[::-1]
    size = a.shape[0]
    full: Any = np.tril(a) + np.conj(np.tril(a, -1)).T
    np.fill_diagonal(full, np.real(np.diagonal(a)))
    out = np.array(a)
    e, taus = np.zeros(max(size - 1, 0)), np.zeros(max(size - 1, 0), a.dtype)
    for k in range(size - 1):
        v, tau, beta = reflector(full[k + 1 :, k])
        block = full[k + 1 :, k + 1 :]
        block -= np.conj(tau) * np.outer(v, np.conj(v) @ block)
        block -= tau * np.outer(block @ v, np.conj(v))
        out[k + 1 :, k] = v
        out[k + 1, k] = e[k] = np.real(beta)
        taus[k] = tau
    diagonal = np.real(np.diagonal(full)).copy()
    np.fill_diagonal(out, diagonal)
    return out, diagonal, e, taus


def solve_tridiagonal(
    lower: Array, diagonal: Array, upper: Array, b: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """`gtsv`: elimination with row exchanges.

    `lower`, `upper` have n - 1 elements. Gives them (second upper diagonal, diagonal, upper of U),
    the solution, and the order of the first zero pivot or 0.
    """
    dl: Any = widened(lower)
    d: Any = widened(diagonal)
    du: Any = widened(upper)
    x: Any = widened(b)
    size, info = len(d), 0
    for k in range(size - 1):
        if abs(d[k]) >= abs(dl[k]):
            if d[k] == 0:
                info = info or k + 1
                continue
            factor = dl[k] / d[k]
            d[k + 1] -= factor * du[k]
            x[k + 1] -= factor * x[k]
            dl[k] = 0
        else:
            factor = d[k] / dl[k]
            d[k] = dl[k]
            d[k + 1], du[k] = du[k] - factor * d[k + 1], d[k + 1]
            if k < size - 2:
                dl[k] = du[k + 1]
                du[k + 1] = -factor * dl[k]
            else:
                dl[k] = 0
            x[[k, k + 1]] = x[[k + 1, k]]
            x[k + 1] -= factor * x[k]
    if size and d[-1] == 0:
        info = info or size
    for k in reversed(range(size)):
        rest = x[k]
        if k < size - 1:
            rest = rest - du[k] * x[k + 1]
        if k < size - 2:
            rest = rest - dl[k] * x[k + 2]
        x[k] = rest / d[k]
    return dl, d, du, x, np.array(info, np.int32)
