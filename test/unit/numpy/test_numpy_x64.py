"""`JAX_ENABLE_X64=0`: types of 64 bits are those of 32, in every function, eager and under jit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import mlirhlo
import mlirhlo.numpy as h
from mlirhlo.diagnostics import HloError

X, N, Z = np.arange(1.0, 7.0).reshape(2, 3), np.array([3, 1, 2]), np.array([1 + 2j])
U, S = np.array([1, 2], np.uint64), X @ X.T + 9 * np.eye(2)


def functions():
    yield lambda: (h.asarray([1, 2]), h.asarray([1.5]), h.asarray(2j), h.asarray(3), h.asarray(X))
    yield lambda: (h.zeros(2), h.ones(2, dtype=h.float64), h.full((2,), 3), h.eye(2), h.arange(3))
    yield lambda: (h.linspace(0, 1, 3), h.fft.fftfreq(4), h.zeros(2, dtype=np.int64), h.ones_like(X))
    yield lambda x: (x + 1, x * np.float64(2), x / 2, x**2, x // 2, h.astype(x, np.int64)), X
    yield lambda n: (n + 1, n / 2, n * 1.5, n * 1j, h.sum(n), h.prod(n), h.mean(h.astype(n, float))), N
    yield lambda x, n: (x + n, h.where(x > 2, x, 1), x[:, n - 1], h.take(x, n - 1, axis=1)), X, N
    yield lambda x: (h.sum(x), h.mean(x), h.var(x), h.std(x), h.max(x), h.argmax(x), h.sort(x)), X
    yield lambda x: (h.argsort(x), h.cumulative_sum(x, axis=0), h.count_nonzero(x), h.sin(x)), X
    yield lambda z: (h.real(z), h.imag(z), h.abs(z), z * z, h.exp(z)), Z
    yield lambda u: (u + u, h.sum(u), u * 2), U
    yield lambda x: (h.fft.fft(x), h.fft.rfft(x), h.linalg.svdvals(x), h.linalg.matrix_rank(x)), X
    yield lambda s: (h.linalg.cholesky(s), h.linalg.inv(s), h.linalg.det(s), h.linalg.qr(s)[1]), S
    yield lambda x: (h.searchsorted(x[0, :], x[1, :]), h.reshape(x, (3, 2)), h.concat([x, x])), X


def leaves(value):
    return list(value) if isinstance(value, tuple) else [value]


seen = set()
for function, *arguments in ((f, *a) for f, *a in (one if isinstance(one, tuple) else (one,) for one in functions())):
    eager = leaves(function(*map(h.asarray, arguments)))
    jitted = mlirhlo.jit(function, platform="interpreter")
    for one, other in zip(eager, leaves(jitted(*arguments)), strict=True):
        assert one.dtype == other.dtype, (one, other)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-5, 1e-5)
        seen.add(str(one.dtype))
    for word in ("f64[", "s64[", "u64[", "c128["):
        assert word not in jitted.lower(*arguments).as_text(), word
print(*sorted(seen - {"bool"}))
np.testing.assert_allclose(np.asarray(h.linalg.cholesky(h.asarray(S))), np.linalg.cholesky(S), 1e-5)
print(*h.__array_namespace_info__().dtypes())
try:
    h.asarray(2**40)
except HloError as problem:
    print(problem.code)
"""

NARROW = ["complex64 float32 int32 uint32",
          "bool int8 int16 int32 uint8 uint16 uint32 float32 complex64", "HLO0625"]  # fmt: skip


def run(value: str | None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    if value is not None:
        environment["JAX_ENABLE_X64"] = value
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_without_types_of_64_bits() -> None:
    done = run("0")
    assert done.stdout.splitlines() == NARROW, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, "1"])
def test_with_them(value: str | None) -> None:
    done = run(value)
    assert "f64[" in done.stderr


def test_a_value_that_does_not_fit() -> None:
    assert "HLO0520" in run("maybe").stderr
