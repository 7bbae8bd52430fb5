"""Tridiagonal systems that may be singular, as JAX solves them for inverse iteration.

Elimination with scaled row exchanges; a pivot too small to divide by is moved away from zero by a multiple
of eps * max |U|. Source: LAPACK's `xLAGTF` and `xLAGTS`, which jaxlib follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.interp.custom_calls import computes
from mlirhlo.interp.linear_algebra.linalg_factor import batched
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@computes(
    "tridiagonal_solve_perturbed_ffi",
    "cu_tridiagonal_solve_perturbed",
    "hip_tridiagonal_solve_perturbed",
)
def solve_perturbed(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """x with T x = b; the first of `dl` and the last of `du` are not read."""
    (x,) = batched(_solve, *inputs, ranks=(1, 1, 1, 2))
    return x.astype(inputs[3].dtype)


def _solve(below: Array, diagonal: Array, above: Array, b: Array) -> tuple[Array]:
    """One system, in the precision of its numbers: how far pivots move depends on it."""
    size = len(diagonal)
    x: Any = b.copy()
    u: Any = np.zeros((size, 3), diagonal.dtype)
    u[:, 0] = diagonal
    if size > 1:
        u[:-1, 1] = above[:-1]
    greatest: Any = np.max(np.abs(u[:1]), initial=0)
    scale = np.sum(np.abs(u[:1]))
    for k in range(size - 1):
        low = below[k + 1]
        row = np.abs(low) + np.abs(u[k + 1, 0]) + np.abs(u[k + 1, 1])
        if low == 0:
            scale = row
        elif np.abs(low) / row <= (np.abs(u[k, 0]) / scale if u[k, 0] else 0):
            scale, factor = row, low / u[k, 0]
            u[k + 1, 0] -= factor * u[k, 1]
            x[k + 1] -= factor * x[k]
        else:
            factor = u[k, 0] / low
            upper = [low, u[k + 1, 0], u[k + 1, 1]]
            u[k + 1, 0] = u[k, 1] - factor * upper[1]
            u[k + 1, 1] = -factor * upper[2]
            u[k] = upper
            x[[k, k + 1]] = x[[k + 1, k]]
            x[k + 1] -= factor * x[k]
            scale = np.abs(u[k + 1, 0]) + np.abs(u[k + 1, 1])
        if k < size - 2:
            greatest = max(greatest, np.max(np.abs(u[k])))
    greatest = max(greatest, np.max(np.abs(u[-1:, 0]), initial=0))
    least = np.finfo(diagonal.dtype).eps * greatest
    for k in reversed(range(size)):
        for beyond in (1, 2):
            if k + beyond < size:
                x[k] -= u[k, beyond] * x[k + beyond]
        pivot, x[k] = _away_from_zero(least, u[k, 0], x[k])
        x[k] /= pivot
    return (x,)


def _away_from_zero(least: Any, pivot: Any, row: Any) -> tuple[Any, Any]:
    """Pivot and right-hand sides, changed until their quotient does not overflow."""
    limits = np.finfo(row.dtype)
    safe = limits.tiny
    greatest = 1 / safe
    step = np.copysign(max(least, safe), pivot.real)
    top: Any = np.max(np.abs(row), initial=0)
    while np.abs(pivot) < 1:
        magnitude = np.abs(pivot)
        if magnitude >= safe and top <= magnitude * greatest:
            break
        if magnitude and magnitude < safe and top * safe <= magnitude:
            return pivot * greatest, row * greatest
        pivot = pivot + step
        step = step * 2
    return pivot, row
