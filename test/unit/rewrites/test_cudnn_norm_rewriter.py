"""`cudnn-norm-rewriter` on JAX's own derivatives: both calls are found, and give what JAX computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

PASSES = "call-inliner,algsimp,cse,dce,cudnn-norm-rewriter,dce"


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("sizes", "over"),
    [
        ((6, 5), (1,)),
        ((6, 4, 5), (2,)),
        ((6, 4, 5), (1, 2)),
        ((3, 4, 5), (1,)),
        ((5, 6), (0,)),
        ((2, 3, 4, 5), (1, 3)),
        ((4, 1, 5), (2,)),
    ],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_derivative_of_a_layer_norm(
    sizes: tuple[int, ...], over: tuple[int, ...], scaled: bool
) -> None:
    jax = pytest.importorskip("jax")
    inner = [n if d in over else 1 for d, n in enumerate(sizes)]

    def norm(x: Any, scale: Any, bias: Any) -> Any:
        mean = x.mean(over, keepdims=True)
        variance = ((x - mean) ** 2).mean(over, keepdims=True)
        normed = (x - mean) * jax.lax.rsqrt(variance + 1e-3)
        return normed * scale.reshape(inner) + bias.reshape(inner)

    def both(x: Any, scale: Any, bias: Any, dy: Any) -> Any:
        y, pull = jax.vjp(norm, x, scale, bias)
        # A gradient that is a product itself is still one value.
        return (y, *pull(dy * y * 3 if scaled else dy))

    rng = np.random.default_rng(20)
    small = [sizes[d] for d in over]
    given = [rng.normal(size=s).astype(np.float32) for s in (sizes, small, small, sizes)]
    function = jax.jit(both)
    module = parse_module(function.lower(*given).compiler_ir("hlo").as_hlo_text(True))
    run_pipeline(module, parse_pipeline(PASSES))
    text = print_module(module)
    assert [text.count(kind) for kind in ("LAYER_FWD_TRAIN", "LAYER_BWD")] == [1, 1], text
    left = {op.opcode.name for op in HloModule(module).instructions}
    assert not left & {"reduce", "rsqrt", "subtract"}
    for want, got in zip(function(*given), run_module(module, given), strict=True):
        np.testing.assert_allclose(got, np.asarray(want), rtol=2e-5, atol=2e-5)


@pytest.mark.oracle
def test_gradients_that_come_another_way_too_are_added() -> None:
    """Blocks around which x is handed on, as transformers have them."""
    jax = pytest.importorskip("jax")

    def norm(x: Any, scale: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-3) * scale + bias

    def net(x: Any, blocks: Any) -> Any:
        for scale, bias, weights in blocks:
            x = x + jax.numpy.tanh(norm(x, scale, bias) @ weights)
        return (x * x).sum()

    rng = np.random.default_rng(21)
    shapes = ((4,), (4,), (4, 4))
    blocks = [[rng.normal(size=s).astype(np.float32) for s in shapes] for _ in range(3)]
    x = rng.normal(size=(6, 4)).astype(np.float32)
    function = jax.jit(jax.grad(net, (0, 1)))
    module = parse_module(function.lower(x, blocks).compiler_ir("hlo").as_hlo_text(True))
    run_pipeline(module, parse_pipeline(PASSES))
    text = print_module(module)
    assert [text.count(kind) for kind in ("LAYER_FWD_TRAIN", "LAYER_BWD")] == [3, 3]
    wanted = jax.tree.leaves(function(x, blocks))
    got = run_module(module, jax.tree.leaves((x, blocks)))
    for want, have in zip(wanted, got, strict=True):
        np.testing.assert_allclose(have, np.asarray(want), rtol=2e-4, atol=2e-4)
