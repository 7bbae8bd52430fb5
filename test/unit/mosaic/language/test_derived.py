"""What is made of other functions is numpy's (`jax.lax`'s), at extremes too."""

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

_SOME = [0.0, -0.0, 1e-30, 1e-6, 0.3, 0.99, 1.0, 1.01, 1.9, 2.1, 3.5, 9.0, 20.0, 50.0, 88.9, 95.0]
_SOME += [1e10, 3e38, np.inf, np.nan]
EXTREMES = np.resize(np.array([*_SOME, *(-x for x in _SOME)], np.float32), (8, 128))
OTHERS = np.random.default_rng(0).permutation(EXTREMES.ravel()).reshape(8, 128)
PLAIN = np.random.default_rng(1).normal(0, 2, (8, 128)).astype(np.float32)

_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sinh": (jnp.sinh, np.sinh),
    "cosh": (jnp.cosh, np.cosh),
    "erfc": (lax.erfc, np.vectorize(math.erfc, otypes=[np.float64])),
    "log10": (jnp.log10, np.log10),
    "logaddexp": (jnp.logaddexp, np.logaddexp),
    "hypot": (jnp.hypot, np.hypot),
    "copysign": (jnp.copysign, np.copysign),
    "isinf": (lambda x: jnp.where(jnp.isinf(x), 1.0, 0.0), np.isinf),
    "nan_to_num": (jnp.nan_to_num, lambda x: np.nan_to_num(x, posinf=_MOST, neginf=-_MOST)),
    "clamp": (lambda x: lax.clamp(-1.0, x, 2.0), lambda x: np.clip(x, -1, 2)),
    "integer_pow": (lambda x: lax.integer_pow(x, 3), lambda x: x.astype(np.float32) ** 3),
}
_MOST = float(np.finfo(np.float32).max)


def _run(function: Callable[..., Any], *arrays: np.ndarray, dtype: Any = np.float32) -> Any:
    def kernel(*refs: Any) -> None:
        *inputs, result = refs
        result[...] = function(*(ref[...] for ref in inputs)).astype(dtype)

    shape = np.asarray(arrays[0]).shape
    return pl.kernel_call(kernel, pl.ShapeDtypeStruct(shape, dtype))(*arrays)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_elementwise(name: str) -> None:
    ours, numpys = _FUNCTIONS[name]
    arrays = [EXTREMES, OTHERS][: 2 if name in ("logaddexp", "hypot", "copysign") else 1]
    with np.errstate(all="ignore"):
        wanted = numpys(*(a.astype(np.float64) for a in arrays)).astype(np.float32)
    found = _run(ours, *arrays)
    # What is less than normal is nothing on a TPU.
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-38, err_msg=name)
    if name == "copysign":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


_SHAPES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "moveaxis": (lambda x: jnp.moveaxis(x, 0, 1), lambda x: np.moveaxis(x, 0, 1)),
    "vstack": (lambda x: jnp.vstack([x, x]), lambda x: np.vstack([x, x])),
    "hstack": (lambda x: jnp.hstack([x, x]), lambda x: np.hstack([x, x])),
    "tril": (lambda x: jnp.tril(x, -1), lambda x: np.tril(x, -1)),
    "triu": (lambda x: jnp.triu(x, 1), lambda x: np.triu(x, 1)),
    "outer": (lambda x: jnp.outer(x[0], x[1]), lambda x: np.outer(x[0], x[1])),
    "arange": (
        lambda x: x + jnp.arange(3, 259, 2, np.float32),
        lambda x: x + np.arange(3, 259, 2).astype(np.float32),
    ),
    "iota": (
        lambda x: x + lax.iota(np.int32, 128).astype(np.float32),
        lambda x: x + np.arange(128, dtype=np.float32),
    ),
    "slice": (lambda x: lax.slice(x, (2, 0), (6, 64)), lambda x: x[2:6, :64]),
    "slice_in_dim": (lambda x: lax.slice_in_dim(x, 1, 5, axis=0), lambda x: x[1:5]),
    "broadcast": (lambda x: lax.broadcast(x, (2,)), lambda x: np.stack([x, x])),
    "broadcast_in_dim": (
        lambda x: lax.broadcast_in_dim(x[0], (8, 128), (1,)),
        lambda x: np.broadcast_to(x[0], (8, 128)),
    ),
    "pad": (
        lambda x: lax.pad(x, 1.0, ((0, 8, 0), (128, 0, 0))),
        lambda x: np.pad(x, ((0, 8), (128, 0)), constant_values=1),
    ),
    "reduce": (
        lambda x: jnp.vstack([lax.reduce_max(x, [0]), lax.reduce_min(x, [0])]),
        lambda x: np.stack([x.max(0), x.min(0)]),
    ),
    "select": (
        lambda x: jnp.select([x > 2, x > 0], [x * 2, x * 3], -1.0),
        lambda x: np.select([x > 2, x > 0], [x * 2, x * 3], -1.0),
    ),
    "einshape": (
        lambda x: pltpu.einshape("(ab)c->b(ac)", x, a=2),
        lambda x: x.reshape(2, 4, 128).transpose(1, 0, 2).reshape(4, 256),
    ),
    "scan": (
        lambda x: lax.scan(lambda c, _: (c * 0.5 + 1.0, None), x, length=3)[0],
        lambda x: ((x * 0.5 + 1) * 0.5 + 1) * 0.5 + 1,
    ),
    "logical_xor": (
        lambda x: jnp.where(jnp.logical_xor(x > 0, x > 1), 1.0, 0.0),
        lambda x: ((x > 0) ^ (x > 1)).astype(np.float32),
    ),
}


@pytest.mark.parametrize("name", _SHAPES)
def test_shapes(name: str) -> None:
    ours, numpys = _SHAPES[name]
    wanted = numpys(PLAIN)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = ours(x_ref[...])

    call = pl.kernel_call(kernel, pl.ShapeDtypeStruct(wanted.shape, np.float32))
    np.testing.assert_allclose(call(PLAIN), wanted, rtol=1e-6)


def test_shifts_keep_the_sign() -> None:
    numbers = np.arange(-512, 512, dtype=np.int32).reshape(8, 128) << 20
    found = _run(lambda x: lax.shift_right_arithmetic(x, 7), numbers, dtype=np.int32)
    np.testing.assert_array_equal(found, numbers >> 7)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: jnp.arange(3, 3),
        lambda x: jnp.pad(x, -1),
        lambda x: lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 0))),
        lambda x: jnp.tril(x[0]),
        lambda x: jnp.select([x > 0], []),
        lambda x: lax.slice(x, (0, 0), (8, 128), (2, 1)),
        lambda x: pltpu.einshape("(ab)c->bc", x, a=2),
        lambda x: pltpu.einshape("(ab)c->abc", x, a=3),
        lambda x: lax.scan(lambda c, _: (c, None), x, xs=x),
        lambda x: lax.shift_right_arithmetic(x, 1),
    ],
)
def test_refused(wrong: Callable[[Any], Any]) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = wrong(x_ref[...])

    with pytest.raises(HloError) as caught:
        pl.kernel_call(kernel, PLAIN)(PLAIN)
    assert caught.value.code.startswith("HLO07")
