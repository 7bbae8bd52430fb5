"""LAPACK's routines behind JAX's linear algebra against jaxlib, where the answer is unique; where it
is not (signs of vectors), by what the answer must satisfy.
"""

from __future__ import annotations

import numpy as np
import pytest
from jax_linear_algebra import programs
from xla_execution import SEED

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("jaxlib")


def close(got: np.ndarray, want: np.ndarray, eps: float, what: str) -> None:
    assert got.shape == want.shape, what
    scale = max(1.0, float(np.nanmax(np.abs(want), initial=0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=200 * eps * scale, err_msg=what)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def unitary(q: np.ndarray, eps: float, what: str) -> None:
    size = q.shape[-1]
    eye = np.broadcast_to(np.eye(size), (*q.shape[:-2], size, size))
    close(adjoint(q) @ q, eye, eps, what)


def in_order(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Each row's values in the order in which they come nearest to `like`."""
    rows = []
    size = values.shape[-1]
    for row, wanted in zip(values.reshape(-1, size), like.reshape(-1, size), strict=True):
        free = list(row)
        rows.append([free.pop(int(np.argmin([abs(v - w) for v in free]))) for w in wanted])
    return np.array(rows).reshape(values.shape)


def compare(name: str, a: np.ndarray, ours: list, theirs: list, eps: float) -> None:
    kind = name.rsplit(" ", 1)[0]
    for got, want in zip(ours, theirs, strict=True):
        assert got.dtype == want.dtype, name
        assert got.shape == want.shape, name
    if kind == "eigh":
        vectors, values = ours
        close(values, theirs[1], eps, name)
        close(vectors * values[..., None, :] @ adjoint(vectors), a, eps, name)
        unitary(vectors, eps, name)
    elif kind in ("svd", "svd thin"):
        u, values, vt = ours
        close(values, theirs[1], eps, name)
        rank = values.shape[-1]
        close(u[..., :rank] * values[..., None, :] @ vt[..., :rank, :], a, eps, name)
        unitary(u, eps, name)
        unitary(adjoint(vt), eps, name)
    elif kind == "eig":
        values, left, right = ours
        close(in_order(values, theirs[0]), theirs[0], 20 * eps, name)
        close(a @ right, right * values[..., None, :], 20 * eps, name)
        close(adjoint(left) @ a, values[..., :, None] * adjoint(left), 20 * eps, name)
        close(np.linalg.norm(left, axis=-2), np.ones(values.shape), 20 * eps, name)
    elif kind == "schur":
        t, q = ours
        close(q @ t @ adjoint(q), a, 20 * eps, name)
        unitary(q, 20 * eps, name)
        assert np.abs(np.tril(t, -2)).max() == 0 or np.abs(np.tril(t, -2)).max() < 20 * eps
        mine, other = np.linalg.eigvals(t), np.linalg.eigvals(theirs[0])
        close(in_order(mine, other), other, 50 * eps, name)
    else:
        for got, want in zip(ours, theirs, strict=True):
            close(got, want, 5 * eps, name)


def test_linear_algebra_agrees_with_jax() -> None:
    print(f"seed {SEED}")
    found = programs(SEED)
    targets = set()
    for name, text, inputs, outputs in found:
        targets |= {w.split('"')[1] for w in text.split() if w.startswith("custom_call_target=")}
        ours = run_module(parse_module(text), inputs, check=True)
        eps = float(np.finfo(np.dtype(name.rsplit(" ", 1)[1])).eps)
        compare(name, inputs[0], ours, outputs, eps)
    print(f"{len(found)} programs, {len(targets)} targets")
    assert len([t for t in targets if t.startswith("lapack_")]) >= 50
