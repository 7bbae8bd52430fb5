"""Kernels of Pallas, lowered for a TPU and run from their bodies, against JAX's interpretation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo

jax = pytest.importorskip("jax")

import unit.mosaic.kernels_memory  # noqa: E402, F401  (lists its kernels)
from unit.mosaic.kernels import KERNELS  # noqa: E402  (needs jax)

pytestmark = pytest.mark.oracle


def lowered(function: Any, inputs: list[Any]) -> str:
    """StableHLO for a TPU."""
    from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

    # Some of Pallas' lowerings ask which generation they are for.
    device = AbstractDevice("TPU v5 lite", 1, "tpu")
    with use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        return jax.jit(function).trace(*inputs).lower(lowering_platforms=("tpu",)).as_text()


def arrays(value: Any) -> list[Any]:
    return [np.asarray(part) for part in (value if isinstance(value, tuple | list) else [value])]


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_as_jax_interprets_it(name: str, platform: str) -> None:
    function, inputs = KERNELS[name](True)
    wanted = arrays(jax.jit(function)(*inputs))
    module = mlirhlo.parse(lowered(*KERNELS[name](False)))
    assert "tpu_custom_call" in str(module)
    if platform == "cpu":
        executable = mlirhlo.compile(module)
        got = arrays(executable(*inputs))
        assert "custom-call tpu_custom_call" not in executable.callbacks
    else:
        got = arrays(module(*inputs))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if b.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            step = 2.0**-7 if b.dtype.itemsize == 2 else 0 if b.dtype.itemsize == 1 else 2e-5
            np.testing.assert_allclose(
                a.astype(np.float32), b.astype(np.float32), rtol=step, atol=step
            )


def test_a_pipeline_within_a_kernel() -> None:
    """`emit_pipeline` becomes loops, copies and semaphores; JAX cannot interpret it on a CPU."""
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def inner(a: Any, b: Any) -> None:
        b[...] = a[...] * 2

    def body(x: Any, o: Any) -> None:
        block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        pltpu.emit_pipeline(inner, grid=(4, 2), in_specs=[block], out_specs=[block])(x, o)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
        in_specs=[anywhere],
        out_specs=anywhere,
    )
    x = np.random.default_rng(0).normal(size=(32, 256)).astype(np.float32)
    (got,) = arrays(mlirhlo.parse(lowered(call, [x]))(x))
    assert np.array_equal(got, x * 2)
