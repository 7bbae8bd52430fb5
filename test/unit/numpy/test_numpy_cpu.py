"""`jit(platform="cpu")`: machine code has the interpreter's results, and says what it leaves to it."""

# A traced function is written out even where it is one call.
# ruff: noqa: PLW0108
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import SEED

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.numpy.tracing.tree import flatten

RNG = np.random.default_rng(SEED)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
C = (X + 1j * Y).astype("complex64")
N = RNG.integers(1, 9, (3, 4))
POSITIVE = X @ X.T + 3 * np.eye(3)


def _update(x: Any) -> Any:
    x = x * 1
    x[1, :] = 7.0
    x[x > 0] = 0.5
    return x


COMPILED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x, y: hnp.exp(x / (1 + y * y)) - hnp.copysign(y, x), (X, Y)),
    "inverse": (lambda x: hnp.asinh(x) + hnp.atan2(x, hnp.tanh(x)), (X,)),
    "complex": (lambda z: hnp.acos(z) * hnp.conj(z) / hnp.sqrt(z), (C,)),
    "integers": (lambda n, m: (n // 3) ** 2 % (m << 1) ^ n, (N, N)),
    "narrow": (lambda x: hnp.sum(hnp.astype(x, hnp.bfloat16), axis=0), (X,)),
    "reductions": (lambda x: (hnp.var(x, axis=0), hnp.max(x), hnp.all(x > -9, axis=1)), (X,)),
    "positions": (lambda x: (hnp.argmax(x, axis=1), hnp.argsort(x, axis=0)), (X,)),
    "running": (lambda x: hnp.cumulative_sum(x, axis=1, include_initial=True), (X,)),
    "products": (lambda x, y: hnp.tensordot(x @ y.T, x, axes=1), (X, Y)),
    "shapes": (
        lambda x, y: hnp.tile(hnp.roll(hnp.concat([x, y]), 1, axis=1)[::-1], (2, 1)),
        (X, Y),
    ),
    "gathers": (lambda x, n: (x[n % 3, n % 4], hnp.take_along_axis(x, n % 4, axis=1)), (X, N)),
    "updates": (_update, (X,)),
    "searches": (lambda x, y: hnp.searchsorted(x, y), (np.sort(X[0]), Y)),
    "loops": (lambda x: hnp.fori_loop(0, 5, lambda i, s: s * 2 + i, x), (X,)),
    "choices": (lambda x: hnp.cond(hnp.sum(x) > 0, lambda s: s + 1, lambda s: s - 1, x), (X,)),
    "scans": (lambda x: hnp.scan(lambda s, row: (s + row, s * row), hnp.zeros(4), x), (X,)),
    "no elements": (lambda x: (x[:0], hnp.sum(x[:0], axis=0)), (X,)),
    "nothing": (lambda: hnp.arange(3), ()),
    "solve": (lambda a, b: hnp.linalg.solve(a, b), (POSITIVE, X)),
    "qr": (lambda x: tuple(hnp.linalg.qr(x)), (X,)),
    "svd": (lambda x: hnp.linalg.svdvals(x), (X,)),
}


def agree(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    wants = flatten(mlirhlo.jit(function, platform="interpreter")(*arguments))[0]
    jitted = mlirhlo.jit(function, platform="cpu")
    for _ in range(2):  # arguments are as they were, and so are the results
        for got, want in zip(flatten(jitted(*arguments))[0], wants, strict=True):
            one, other = np.asarray(got), np.asarray(want)
            eps = float(np.finfo(other.dtype).eps) if other.dtype.kind in "fc" else 0.0
            np.testing.assert_allclose(one, other, rtol=32 * eps, atol=32 * eps, strict=True)


@pytest.mark.parametrize("name", COMPILED)
def test_machine_code_has_the_interpreters_results(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    agree(*COMPILED[name])
    assert "HLO0438" not in caplog.text, "called back"


def test_a_lowered_function_compiles_for_either_platform() -> None:
    double = mlirhlo.jit(lambda x: x + x)
    assert double.platform == "cpu"
    for platform in ("interpreter", "cpu"):
        compiled = double.lower(X).compile(platform=platform)
        np.testing.assert_array_equal(np.asarray(compiled(X)), X + X)
