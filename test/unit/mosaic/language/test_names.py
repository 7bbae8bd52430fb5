"""Names of `jax.lax` mean what they mean there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

X = np.linspace(0.1, 2.0, 8 * 128, dtype=np.float32).reshape(8, 128)
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "arithmetic": (
        lambda x: lax.sub(lax.mul(lax.add(x, x), lax.neg(x)), lax.abs(x)),
        lambda x: (x + x) * -x - abs(x),
    ),
    "functions": (
        lambda x: lax.tanh(x) + lax.sqrt(x) + lax.atan2(x, lax.log1p(x)),
        lambda x: np.tanh(x) + np.sqrt(x) + np.arctan2(x, np.log1p(x)),
    ),
    "comparisons": (
        lambda x: lax.select(lax.lt(x, 1.0), x, lax.pow(x, 2)),
        lambda x: np.where(x < 1, x, x**2),
    ),
    "shapes": (
        lambda x: lax.reshape(lax.concatenate([x[:4], x[4:]], 0), (8, 128)),
        lambda x: x,
    ),
    "reciprocal": (pl.reciprocal, np.reciprocal),
}


@pytest.mark.parametrize("name", CASES)
def test_lax(name: str) -> None:
    ours, numpys = CASES[name]

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = ours(x_ref[...])

    np.testing.assert_allclose(pl.kernel_call(kernel, X)(X), numpys(X), rtol=1e-5)


A, B = (np.random.default_rng(n).normal(size=(2, 8, 128)).astype(np.float32) for n in (0, 1))


@pytest.mark.parametrize(
    "equation", ["bqd,bkd->bqk", "bqd,bqd->bd", "bqd,ckd->qk", "bqd,bkd", "bqd,bkd->kbq"]
)
def test_einsum(equation: str) -> None:
    def kernel(a_ref: Any, b_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.einsum(equation, a_ref[...], b_ref[...])

    want = np.einsum(equation, A, B)
    found = pl.kernel_call(kernel, pl.ShapeDtypeStruct(want.shape, np.float32))(A, B)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3)


def test_einsum_of_one() -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.einsum("bqd->db", x_ref[...])

    found = pl.kernel_call(kernel, pl.ShapeDtypeStruct((128, 2), np.float32))(A)
    np.testing.assert_allclose(found, A.sum(1).T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("equation", ["bqd,bkd->bqx", "bbd,bkd->bk", "bqd->b", "bqd,bk->q"])
def test_what_is_no_einsum(equation: str) -> None:
    def kernel(a_ref: Any, b_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.einsum(equation, a_ref[...], b_ref[...])

    with pytest.raises(HloError, match="einsum"):
        pl.kernel_call(kernel, pl.ShapeDtypeStruct((8, 128), np.float32)).lower(A, B)


def test_random_numbers_have_their_distribution() -> None:
    def kernel(u_ref: Any, n_ref: Any, b_ref: Any) -> None:
        pltpu.prng_seed(7)
        u_ref[...] = pltpu.stateful_uniform((64, 128), minval=-1.0, maxval=3.0)
        n_ref[...] = pltpu.stateful_normal((64, 128))
        b_ref[...] = pltpu.stateful_bernoulli(0.25, (64, 128)).astype(np.int32)

    shape = pl.ShapeDtypeStruct((64, 128), np.float32)
    uniform, normal, chosen = pl.kernel_call(
        kernel, (shape, shape, pl.ShapeDtypeStruct((64, 128), np.int32))
    )()
    assert -1 <= uniform.min() < -0.99
    assert 2.99 < uniform.max() < 3
    assert abs(uniform.mean() - 1) < 0.06
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    assert abs(chosen.mean() - 0.25) < 0.03


def test_erf_inv() -> None:
    x = np.array([0.0, 0.5, -0.5, 0.99, -0.9999, 1.0, -1.0, 1e-3] * 128, np.float32).reshape(8, 128)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = lax.erf_inv(x_ref[...])

    found = pl.kernel_call(kernel, x)(x)
    assert list(found[0, 5:7]) == [np.inf, -np.inf]
    finite = np.abs(x) < 1
    erf = np.vectorize(math.erf)
    np.testing.assert_allclose(erf(found[finite]), x[finite], rtol=1e-5)


@pytest.mark.parametrize("module", [pl, pltpu, lax, jnp])
def test_all_that_is_named_is_there(module: Any) -> None:
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
