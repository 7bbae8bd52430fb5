"""Functions of JAX that call Pallas kernels: the kernels run, wherever they stand in the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.oracle

jax = pytest.importorskip("jax")
jnp = jax.numpy
pl = pytest.importorskip("jax.experimental.pallas")

X = np.linspace(-1, 1, 32 * 128, dtype=np.float32).reshape(32, 128)


def body(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = jnp.tanh(x_ref[...]) * 2 + pl.program_id(0)


def kernel(x: Any, **options: Any) -> Any:
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(
        body, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=shape, **options
    )(x)


def plain(x: Any, **options: Any) -> Any:
    rows = jnp.repeat(jnp.arange(4, dtype=x.dtype), 8)[:, None]
    return jnp.tanh(x) * 2 + rows


def with_linear_algebra(call: Callable[..., Any], x: Any) -> Any:
    square = call(x)[:16] @ call(x)[:16].T + 40 * jnp.eye(16)
    values = jnp.linalg.eigvalsh(square), jnp.linalg.cholesky(square), jnp.linalg.inv(square)
    return *values, jax.random.normal(jax.random.key(1), (3,)), jax.lax.top_k(call(x), 3)


def with_callback(call: Callable[..., Any], x: Any) -> Any:
    return call(jax.pure_callback(lambda a: np.asarray(a) / 2, jax.typeof(x), x))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "alone": lambda call, x: call(x),
    "twice": lambda call, x: call(call(x)) + 1,
    "jitted": lambda call, x: jax.jit(call)(x),
    "loop": lambda call, x: jax.lax.fori_loop(0, 3, lambda i, y: call(y), x),
    "branch": lambda call, x: jax.lax.cond(x.sum() > -5, call, lambda y: y, x),
    "vmap": lambda call, x: jax.vmap(call)(jnp.stack([x, 2 * x])),
    "interpreted": lambda call, x: call(x, interpret=True) + call(x),
    "linear algebra": with_linear_algebra,
    "callback": with_callback,
}


CASES = [(name, "cpu") for name in PROGRAMS]
CASES += [(name, "interpreter") for name in ("alone", "vmap", "callback")]


@pytest.mark.parametrize(("name", "platform"), CASES)
def test_kernels_run(name: str, platform: str) -> None:
    from mlirhlo.jax import jit

    program = PROGRAMS[name]
    got = jit(lambda x: program(kernel, x), platform=platform)(X)
    want = jax.jit(lambda x: program(plain, x))(X)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), 2e-4, 2e-5)


def test_the_real_xla_has_no_kernels_on_the_cpu() -> None:
    from mlirhlo.jax import jit

    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU"):
        jit(kernel, platform="XLA")(X)
    np.testing.assert_allclose(
        jit(lambda x: kernel(x, interpret=True), platform="XLA")(X), plain(X), 1e-5, 1e-5
    )


def test_the_lowering_platform_is_what_the_user_names() -> None:
    from mlirhlo.jax import jit

    for options in ({}, {"lowering_platform": "tpu"}):
        text = jit(kernel, **options).lower(X).as_text("hlo")
        assert 'custom_call_target="tpu_custom_call"' in text
    with pytest.raises(ValueError, match="Only interpret mode"):
        jit(kernel, lowering_platform="cpu").lower(X)
