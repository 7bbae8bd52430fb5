"""Names of `jax.lax` mean what they mean there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax, random
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


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_blocks_of_random_numbers_are_the_same_however_they_are_cut(platform: str) -> None:
    found: list[Any] = []
    for block in ((16, 128), (8, 256)):

        def kernel(key_ref: Any, o_ref: Any, block: Any = block) -> None:
            sizes = {"block_size": block, "tile_size": (8, 128), "total_size": (16, 256)}
            o_ref[...] = pltpu.sample_block(
                random.uniform, key_ref, **sizes, minval=1.0, maxval=3.0
            )

        call = pl.kernel_call(
            kernel,
            pl.ShapeDtypeStruct((16, 256), np.float32),
            grid=(16 // block[0], 256 // block[1]),
            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
            out_specs=pl.BlockSpec(block, lambda i, j: (i, j)),
            platform=platform,
        )
        found.append(call(pltpu.to_pallas_key(np.array([0, 7], np.uint32))))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert len(np.unique(found[0])) > 4000
    assert 1 <= found[0].min() < found[0].max() < 3


def test_draws_of_one_key_are_the_same() -> None:
    shape = (2, 8, 128)

    def kernel(key_ref: Any, u_ref: Any, n_ref: Any, b_ref: Any, w_ref: Any) -> None:
        for at, key in enumerate((key_ref, random.fold_in(key_ref, 5))):
            u_ref[at] = random.uniform(key, shape[1:])
            n_ref[at] = random.normal(key, shape[1:])
            b_ref[at] = random.bernoulli(key, 0.25, shape[1:]).astype(np.int32)
            w_ref[at] = random.bits(key, shape[1:])

    results = [pl.ShapeDtypeStruct(shape, t) for t in (np.float32, np.float32, np.int32, np.uint32)]
    smem = pl.BlockSpec(memory_space=pltpu.SMEM)
    call = pl.kernel_call(kernel, results, in_specs=[smem])
    uniform, normal, chosen, words = call(np.array([[3, 4]], np.uint32))
    np.testing.assert_array_equal(chosen, uniform < 0.25)
    np.testing.assert_array_equal(uniform.view(np.uint32) != 0, words >> 9 != 0)
    np.testing.assert_array_equal(uniform, (words >> 9) * np.float32(2**-23))
    assert np.corrcoef(uniform.ravel(), normal.ravel())[0, 1] > 0.9
    assert (uniform[0] != uniform[1]).mean() > 0.99


def test_keys_are_those_of_pallas() -> None:
    # What JAX 0.10.2's to_pallas_key makes of the keys 0 and 7.
    keys = np.array([[0, 0], [0, 7]], np.uint32)
    want = [[[4070199207, 4202968722]], [[2895194379, 4185947648]]]
    np.testing.assert_array_equal(pltpu.to_pallas_key(keys), np.array(want, np.uint32))
    np.testing.assert_array_equal(pltpu.to_pallas_key(keys[1]), np.array(want[1], np.uint32))
    with pytest.raises(HloError, match="key_data") as caught:
        pltpu.to_pallas_key(np.zeros(3, np.uint32))
    assert caught.value.code == "HLO0721"


def test_mistakes_in_what_is_made_of_others_are_at_the_users_line() -> None:
    def kernel(o_ref: Any) -> None:
        o_ref[...] = random.normal(3, (8, 128))

    with pytest.raises(HloError, match="a key is a reference") as caught:
        pl.kernel_call(kernel, X).lower()
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert place.file == __file__


def test_indices_out_of_bounds_have_one_meaning() -> None:
    def kernel(x_ref: Any, i_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.take_along_axis(x_ref[...], i_ref[...], axis=1, mode=mode)

    places = np.random.default_rng(0).integers(0, 128, X.shape, np.int32)
    for mode in ("promise_in_bounds", "clip"):
        call = pl.kernel_call(kernel, X)
        if mode == "clip":
            with pytest.raises(HloError, match="mode='clip'"):
                call.lower(X, places)
        else:
            np.testing.assert_array_equal(call(X, places), np.take_along_axis(X, places, 1))


def test_erf_inv() -> None:
    x = np.array([0.0, 0.5, -0.5, 0.99, -0.9999, 1.0, -1.0, 1e-3] * 128, np.float32).reshape(8, 128)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = lax.erf_inv(x_ref[...])

    found = pl.kernel_call(kernel, x)(x)
    assert list(found[0, 5:7]) == [np.inf, -np.inf]
    finite = np.abs(x) < 1
    erf = np.vectorize(math.erf)
    np.testing.assert_allclose(erf(found[finite]), x[finite], rtol=1e-5)


@pytest.mark.parametrize("module", [pl, pltpu, lax, jnp, random])
def test_all_that_is_named_is_there(module: Any) -> None:
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
