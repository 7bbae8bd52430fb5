"""XLA:TPU's linear algebra calls: whole matrices, matrices in parts, symmetric ones in quarters."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module

ROOT = Path(__file__).parents[3]
N = 5


def call(target: str, results: Sequence[str], operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    shapes = [f"f32[{','.join(map(str, a.shape))}]" for a in operands]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    parameters = "".join(f"p{k} = {s} parameter({k})\n" for k, s in enumerate(shapes))
    names = ", ".join(f"p{k}" for k in range(len(shapes)))
    text = (
        f"HloModule m\nENTRY e {{ {parameters} "
        f'ROOT r = {result} custom-call({names}), custom_call_target="{target}" }}\n'
    )
    return run_module(parse_module(text), operands, check=True)


def parts_of(value: np.ndarray) -> list[np.ndarray]:
    """As XLA:TPU splits them: real before imaginary, the nearest f32 before the rest."""
    if value.dtype.kind == "c":
        return [*parts_of(value.real), *parts_of(value.imag)]
    near = value.astype(np.float32)
    return [near] if value.dtype == np.float32 else [near, (value - near).astype(np.float32)]


def whole(parts: Sequence[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    if np.dtype(dtype).kind == "c":
        half = len(parts) // 2
        real = np.float32 if half == 1 else np.float64
        return whole(parts[:half], real) + 1j * whole(parts[half:], real)
    return np.sum([p.astype(dtype) for p in parts], axis=0)


def drawn(dtype: type[np.generic]) -> np.ndarray:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(N, N))
    return (a + 1j * rng.normal(size=(N, N)) if np.dtype(dtype).kind == "c" else a).astype(dtype)


F = f"f32[{N},{N}]"
TOLERANCE = {np.float32: 1e-5, np.complex64: 1e-5, np.float64: 1e-12, np.complex128: 1e-12}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_lu_block(dtype: type[np.generic]) -> None:
    """P A = L U, of one, two or four f32."""
    a = drawn(dtype)
    parts = parts_of(a)
    target = f"Lu{'Complex' if np.dtype(dtype).kind == 'c' else 'Real'}DecompositionBlock"
    results = [F] * len(parts) + [f"s32[{N}]"] * 2
    *factors, _, rows = call(target, results, parts)
    lu = whole(factors, dtype)
    product = (np.tril(lu, -1) + np.eye(N)) @ np.triu(lu)
    np.testing.assert_allclose(product, a[rows], atol=TOLERANCE[dtype])


def test_complex_cholesky_qr_and_inverse() -> None:
    a = drawn(np.complex64)
    s = (a @ a.conj().T + 5 * np.eye(N)).astype(np.complex64)
    c = whole(call("Cholesky", [F, F], parts_of(s)), np.complex64)
    np.testing.assert_allclose(c @ c.conj().T, s, atol=1e-4)
    inverse = call("InvertDiagBlocksLowerTriangular", [F, F], parts_of(np.tril(c)))
    np.testing.assert_allclose(whole(inverse, np.complex64) @ np.tril(c), np.eye(N), atol=1e-5)
    vector = f"f32[{N}]"
    *rs, re, im = call("QrDecompositionBlock", [F, F, vector, vector], parts_of(a))
    packed, taus = whole(rs, np.complex64), re + 1j * im
    y = np.tril(packed, -1) + np.eye(N)
    m = (np.triu(y.conj().T @ y, 1) + np.eye(N)) * -taus
    w = call("CompactWyHelper", [F, F], parts_of(m.astype(np.complex64)))
    q = np.eye(N) + y @ whole(w, np.complex64) @ y.conj().T
    np.testing.assert_allclose(q @ np.triu(packed), a, atol=1e-5)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(N), atol=1e-5)


@pytest.mark.parametrize("padded", [False, True])
def test_eigh_in_quarters(padded: bool) -> None:
    """The padding's value and vector stay where XLA cuts them off."""
    rng = np.random.default_rng(4)
    a = rng.normal(size=(2, 6, 6)).astype(np.float32)
    a = a + np.swapaxes(a, -1, -2)
    if padded:
        a[:, -1], a[:, :, -1] = 0, 0
    quarters = [a[:, :3, :3], a[:, :3, 3:], a[:, 3:, :3], a[:, 3:, 3:]]
    first, second, tl, tr, bl, br = call(
        "EighTpu", ["f32[2,3]"] * 2 + ["f32[2,3,3]"] * 4, [q.copy() for q in quarters]
    )
    n = 5 if padded else 6
    values = np.concatenate([first, second], axis=-1)[:, :n]
    rows = np.block([[tl, tr], [bl, br]])[:, :n, :n]
    again = np.swapaxes(rows, -1, -2) * values[:, None, :] @ rows
    np.testing.assert_allclose(again, a[:, :n, :n], atol=1e-5)


def test_results_that_do_not_fit_are_refused() -> None:
    """What a target gives has to be what the call says."""
    with pytest.raises(HloError, match=r"HLO0355.*gives float32\[5,5\].*not \(f32"):
        call("Cholesky", [F, F], [np.eye(N, dtype=np.float32)])
    with pytest.raises(HloError, match=r"HLO0355.*3 operands"):
        call("Cholesky", [F, F, F], [np.eye(N, dtype=np.float32)] * 3)


def test_random_bits_without_a_state() -> None:
    """XLA:TPU leaves the new state out where nobody reads it."""
    text = (
        "HloModule m\nENTRY e { s = u64[2] parameter(0)\n"
        "ROOT r = {} rng-bit-generator(s), algorithm=rng_default }\n"
    )
    state = [np.array([1, 2], np.uint64)]
    (bits,) = run_module(parse_module(text.replace("{}", "u32[9]", 1)), state, check=True)
    _, expected = run_module(parse_module(text.replace("{}", "(u64[2], u32[9])", 1)), state)
    np.testing.assert_array_equal(bits, expected)


PROGRAM = """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp, numpy as np
from mlirhlo.jax import capture

rng = np.random.default_rng(0)
for dtype in ("float32", "float64", "complex64", "complex128"):
    def drawn(*shape):
        x = rng.normal(size=shape)
        return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)
    def adjoint(x):
        return np.conj(np.swapaxes(x, -1, -2))
    a = drawn(2, 7, 7)
    s = (a @ adjoint(a) + 5 * np.eye(7)).astype(dtype)
    t, b = np.triu(a[0]) + 4 * np.eye(7, dtype=dtype), drawn(7, 3)
    def run(f, *given):
        return capture(f, topology="v5e:2x2")(*given).optimized(*given)
    p, l, u = run(lambda x: jax.scipy.linalg.lu(x), a[0])
    found = [("lu", p @ l @ u, a[0])]
    if dtype in ("float32", "complex64"):  # the others are not calls, but loops
        c = run(jnp.linalg.cholesky, s)
        w, v = run(lambda x: tuple(jnp.linalg.eigh(x)), s)
        q, r = run(lambda x: tuple(jnp.linalg.qr(x)), a)
        x = run(lambda t, b: jax.scipy.linalg.solve_triangular(t, b), t, b)
        found += [
            ("cholesky", c @ adjoint(c), s), ("eigh", v * w[..., None, :] @ adjoint(v), s),
            ("qr", q @ r, a), ("unitary", adjoint(q) @ q, np.eye(7)), ("solve", t @ x, b)]
    for name, got, expected in found:
        error = np.abs(got - expected).max() / np.abs(expected).max()
        assert error < (1e-5 if dtype in ("float32", "complex64") else 1e-12), (dtype, name, error)
print("all")
"""


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs libtpu")
def test_programs_of_the_tpu_compiler() -> None:
    """Factorisations, as libtpu compiles them, factor."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    assert done.stdout == "all\n", done.stderr
