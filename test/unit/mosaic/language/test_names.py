"""Names of `jax.lax` mean what they mean there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
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


@pytest.mark.parametrize("module", [pl, pltpu, lax, jnp])
def test_all_that_is_named_is_there(module: Any) -> None:
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
