"""Schur forms by the shifted QR iteration; one matrix at a time, in double precision.

Sources: Golub and Van Loan, "Matrix Computations", algorithms 7.5.1 and 7.5.2; the standard form of
2×2 blocks is that of LAPACK's `lanv2`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from mlirhlo.interp.linear_algebra.linalg import widened
from mlirhlo.interp.linear_algebra.linalg_factor import hessenberg, householder_product, reflector
from mlirhlo.interp.registry import Array

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_STEPS = 60
"""QR steps tried for one eigenvalue."""


def schur(matrix: Array) -> tuple[Array, Array, Array, Array]:
    """`(T, Q, eigenvalues, info)` with A = Q T Qᴴ.

    T is upper triangular, for real matrices with 2×2 blocks of equal diagonals for complex pairs.
    `info` is 0, or one more than the number of eigenvalues that were not reached.
    """
    a = widened(matrix)
    size = a.shape[0]
    factored, taus = hessenberg(a, 1, size)
    t: Any = np.triu(factored, -1)
    q: Any = np.eye(size, dtype=t.dtype)
    if size > 1:
        q[1:, 1:] = householder_product(factored[1:, :-1], taus)[0]
    is_complex = t.dtype.kind == "c"
    end, steps, info = size - 1, 0, 0
    while end > 0:
        start = _split(t, end)
        if start == end:
            end, steps = end - 1, 0
        elif start == end - 1 and not is_complex:
            _standardise(t, q, start)
            end, steps = end - 2, 0
        elif steps == _MOST_STEPS or not np.all(np.isfinite(t)):
            info = end + 1
            break
        else:
            steps += 1
            (_complex_step if is_complex else _real_step)(t, q, start, end, steps)
    return t, q, _eigenvalues(t), np.array(info, np.int32)


def _split(t: Any, end: int) -> int:
    """First row of the block that ends at `end`; negligible subdiagonal elements become zero."""
    for k in range(end, 0, -1):
        scale = abs(t[k - 1, k - 1]) + abs(t[k, k])
        if abs(t[k, k - 1]) <= _EPSILON * (scale or np.max(np.abs(t))):
            t[k, k - 1] = 0
            return k
    return 0


def _complex_step(t: Any, q: Any, start: int, end: int, steps: int) -> None:
    block = slice(start, end + 1)
    corner = t[end - 1 : end + 1, end - 1 : end + 1]
    values = cast(Any, np.linalg.eigvals(corner))
    shift = values[np.argmin(np.abs(values - corner[1, 1]))]
    if steps % 10 == 0:
        shift = shift + abs(t[end, end - 1])
    turn: Any = np.linalg.qr(t[block, block] - shift * np.eye(end + 1 - start))[0]
    t[block, start:] = np.conj(turn).T @ t[block, start:]
    t[: end + 1, block] = t[: end + 1, block] @ turn
    q[:, block] = q[:, block] @ turn
    for k in range(start + 2, end + 1):
        t[k, start : k - 1] = 0


def _real_step(t: Any, q: Any, start: int, end: int, steps: int) -> None:
    total = t[end - 1, end - 1] + t[end, end]
    product = t[end - 1, end - 1] * t[end, end] - t[end - 1, end] * t[end, end - 1]
    if steps % 10 == 0:
        size = abs(t[end, end - 1]) + abs(t[end - 1, end - 2])
        total, product = 1.5 * size, size * size
    first = t[start, start]
    bulge = np.array(
        [
            first * first + t[start, start + 1] * t[start + 1, start] - total * first + product,
            t[start + 1, start] * (first + t[start + 1, start + 1] - total),
            t[start + 2, start + 1] * t[start + 1, start],
        ]
    )
    for k in range(start, end):
        width = min(3, end + 1 - k)
        v, tau, _ = reflector(bulge[:width])
        rows, left = slice(k, k + width), max(start, k - 1)
        t[rows, left:] -= tau * np.outer(v, v @ t[rows, left:])
        upper = min(k + 3, end) + 1
        t[:upper, rows] -= tau * np.outer(t[:upper, rows] @ v, v)
        q[:, rows] -= tau * np.outer(q[:, rows] @ v, v)
        if k > start:
            t[k + 1 : k + width, k - 1] = 0
        bulge = t[k + 1 : k + 4, k].copy() if k + 1 < end else bulge


def _standardise(t: Any, q: Any, k: int) -> None:
    """Turns the 2×2 block at `k` triangular, or gives it equal diagonal elements."""
    a, b, c, d = t[k, k], t[k, k + 1], t[k + 1, k], t[k + 1, k + 1]
    difference = a - d
    half = 0.5 * difference
    is_real = half * half + b * c >= 0
    if is_real:
        # One eigenvector of the block becomes the first basis vector.
        z = half + np.copysign(np.sqrt(half * half + b * c), half)
        length = np.hypot(c, z)
        cosine, sine = (z / length, c / length) if length else (1.0, 0.0)
    elif difference == 0:
        return
    else:
        sigma = b + c
        length = np.hypot(sigma, difference)
        cosine = np.sqrt(0.5 * (1 + abs(sigma) / length))
        sine = -(half / (length * cosine)) * (np.sign(sigma) or 1.0)
    turn = np.array([[cosine, sine], [-sine, cosine]])
    both = slice(k, k + 2)
    t[both, k:] = turn @ t[both, k:]
    t[: k + 2, both] = t[: k + 2, both] @ turn.T
    q[:, both] = q[:, both] @ turn.T
    if is_real:
        t[k + 1, k] = 0
    else:
        t[k, k] = t[k + 1, k + 1] = 0.5 * (a + d)


def _eigenvalues(t: Any) -> Array:
    values: Any = np.diagonal(t).astype(np.complex128)
    if t.dtype.kind != "c":
        for k in np.flatnonzero(np.diagonal(t, -1)):
            root = np.sqrt(complex(t[k, k + 1] * t[k + 1, k]))
            values[k : k + 2] += (root, -root) if root.imag >= 0 else (-root, root)
    return values
