"""Random bits in machine code are those of the simulator, whatever the seeds, the shapes and the grid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.lax import fori_loop


def same(body: Any, shape: tuple[int, ...], *inputs: Any, **options: Any) -> Any:
    """What both say, which is one thing."""
    struct = pl.ShapeDtypeStruct(shape, np.dtype(np.int32))
    call = pl.kernel_call(body, struct, **options)
    kernel = replace(call, platform="cpu").lower(*inputs)
    want, got = call(*inputs), kernel(*inputs, platform="cpu")
    assert kernel.fallbacks == 0
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    return np.asarray(want)


@pytest.mark.parametrize("seeds", [(0,), (7,), (-1, 5), (1, 2, 3, 4), (9, 8, 7, 6, 5, 4)])
def test_any_seeds(seeds: tuple[int, ...]) -> None:
    """Also negative ones, and more than the generator holds at once."""

    def body(o_ref: Any) -> None:
        pltpu.prng_seed(*seeds)
        o_ref[...] = pltpu.prng_random_bits((8, 128))

    assert len(np.unique(same(body, (8, 128)))) > 1000


@pytest.mark.parametrize("shape", [(8, 128), (5, 100), (16, 256), (3, 24, 300), (1, 128)])
def test_any_shapes(shape: tuple[int, ...]) -> None:
    """Register by register; what follows goes on after the last of them."""

    def body(o_ref: Any) -> None:
        pltpu.prng_seed(3)
        first = pltpu.prng_random_bits(shape)
        o_ref[...] = first ^ (pltpu.prng_random_bits(shape) >> 1)

    same(body, shape)


def test_without_a_seed() -> None:
    """The generator begins as with 0."""

    def body(o_ref: Any) -> None:
        o_ref[...] = pltpu.prng_random_bits((8, 128))

    same(body, (8, 128))


@pytest.mark.parametrize("semantics", ["arbitrary", "parallel"])
def test_steps_of_a_grid_go_on(semantics: str) -> None:
    """A seed in the first step only, bits in all, also where steps may run at the same time."""

    def body(s_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            pltpu.prng_seed(s_ref[0])

        o_ref[...] = pltpu.prng_random_bits((8, 128))

    made = same(
        body,
        (32, 128),
        np.array([11], np.int32),
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics,)),
    )
    blocks = made.reshape(4, 8, 128)
    assert not any((blocks[a] == blocks[b]).all() for a in range(4) for b in range(a))


def test_loops_draw_one_after_another() -> None:
    """The state goes round with the loop."""

    def body(o_ref: Any) -> None:
        pltpu.prng_seed(2, 4)
        o_ref[...] = np.zeros((8, 128), np.int32)

        def step(i: Any, _: Any) -> Any:
            o_ref[...] = o_ref[...] + pltpu.prng_random_bits((8, 128)) * i
            return _

        fori_loop(0, 5, step, 0)

    same(body, (8, 128))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_rounding_by_chance(dtype: str) -> None:
    narrow = np.dtype(getattr(ml_dtypes, dtype))

    def kernel(x_ref: Any, o_ref: Any) -> None:
        pltpu.prng_seed(5)
        bits = pltpu.prng_random_bits((8, 128))
        o_ref[...] = pltpu.stochastic_round(x_ref[...], bits, target_dtype=narrow)

    x = np.random.default_rng(0).normal(size=(8, 128)).astype(np.float32)
    x[0, :4] = 0, -0.0, np.inf, -np.inf
    made = pl.kernel_call(kernel, pl.ShapeDtypeStruct((8, 128), narrow)).lower(x)
    checked, fast = made(x), made(x, platform="cpu")
    assert made.fallbacks == 0
    np.testing.assert_array_equal(
        fast.view(f"u{narrow.itemsize}"), checked.view(f"u{narrow.itemsize}")
    )
    assert (checked[1:].astype(np.float32) != x[1:].astype(narrow).astype(np.float32)).any()
