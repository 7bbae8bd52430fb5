#!/usr/bin/env python3
"""Flash attention forward, 1x8x1024x128 in f32: our simulator and machine code against Pallas' interpreters.

    OPENBLAS_NUM_THREADS=1 benchmarks/flash_attention.py [--repeat N]

The kernel is the same, block for block. Each runs once to compile, then they take turns; the least time
of each counts. The error is against f64. Needs jax.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")
SHAPE = (1, 8, 1024, 128)
BLOCK = 128


def reference(q: Any, k: Any, v: Any) -> Any:
    """In f64."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = np.einsum("bhmd,bhnd->bhmn", q, k) / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhmn,bhnd->bhmd", weights / weights.sum(-1, keepdims=True), v)


def pallas(interpret: Any) -> Callable[..., Any]:
    """The kernel in Pallas, interpreted."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def kernel(q_ref, k_ref, v_ref, o_ref, max_ref, sum_ref, acc_ref):
        @pl.when(pl.program_id(3) == 0)
        def _():
            max_ref[...] = jnp.full_like(max_ref, -1e30)
            sum_ref[...] = jnp.zeros_like(sum_ref)
            acc_ref[...] = jnp.zeros_like(acc_ref)

        numbers = (((1,), (1,)), ((), ()))
        scores = lax.dot_general(
            q_ref[...], k_ref[...], numbers, preferred_element_type=jnp.float32
        ) * np.float32(1 / math.sqrt(SHAPE[-1]))
        before = max_ref[...]
        best = jnp.maximum(before, scores.max(axis=1, keepdims=True))
        weights, fade = jnp.exp(scores - best), jnp.exp(before - best)
        sum_ref[...] = sum_ref[...] * fade + weights.sum(axis=1, keepdims=True)
        max_ref[...] = best
        acc_ref[...] = acc_ref[...] * fade + jnp.dot(
            weights, v_ref[...], preferred_element_type=jnp.float32
        )

        @pl.when(pl.program_id(3) == pl.num_programs(3) - 1)
        def _():
            o_ref[...] = acc_ref[...] / sum_ref[...]

    block = (None, None, BLOCK, SHAPE[-1])
    whole = pl.BlockSpec(block, lambda b, h, i, j: (b, h, i, 0))
    keys = pl.BlockSpec(block, lambda b, h, i, j: (b, h, j, 0))
    count = SHAPE[2] // BLOCK
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(SHAPE, jnp.float32),
        grid=(SHAPE[0], SHAPE[1], count, count),
        in_specs=[whole, keys, keys],
        out_specs=whole,
        scratch_shapes=[
            pltpu.VMEM((BLOCK, 1), jnp.float32),
            pltpu.VMEM((BLOCK, 1), jnp.float32),
            pltpu.VMEM((BLOCK, SHAPE[-1]), jnp.float32),
        ],
        interpret=interpret,
    )
    return jax.jit(call)


def main() -> None:
    """Prints a line for each, and the ratios."""
    from jax.experimental.pallas import tpu as pltpu

    from mlirhlo.mosaic import InterpretParams, kernels

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    generator = np.random.default_rng(0)
    q, k, v = (generator.normal(size=SHAPE).astype(np.float32) for _ in range(3))
    wanted = reference(q, k, v)
    flash = kernels.flash_attention
    functions: dict[str, Callable[..., Any]] = {
        "checked": lambda *arrays: flash(*arrays, block_q=BLOCK, block_k=BLOCK),
        "fast": lambda *arrays: flash(*arrays, block_q=BLOCK, block_k=BLOCK, platform="cpu"),
        "fast, products in bf16": lambda *arrays: flash(
            *arrays,
            block_q=BLOCK,
            block_k=BLOCK,
            platform="cpu",
            interpret=InterpretParams(rounds_matmul_operands=True),
        ),
        "pallas interpret=True": pallas(True),
        "pallas InterpretParams": pallas(pltpu.InterpretParams()),
    }
    least: dict[str, float] = {}
    for name, function in functions.items():
        begin = time.perf_counter()
        error = np.abs(np.asarray(function(q, k, v)) - wanted).max()
        print(
            f"{name:<24}first {time.perf_counter() - begin:8.3f} s  error {error:.1e}", flush=True
        )
    for number in range(repeat):
        for name, function in functions.items():
            if name == "pallas InterpretParams" and number:
                continue  # once is long enough
            begin = time.perf_counter()
            np.asarray(function(q, k, v))
            least[name] = min(least.get(name, math.inf), time.perf_counter() - begin)
    for name, seconds in least.items():
        ratios = "  ".join(f"{seconds / least[ours]:8.1f}x {ours}" for ours in ("checked", "fast"))
        print(f"{name:<24}again {seconds:8.4f} s  {ratios}", flush=True)


if __name__ == "__main__":
    main()
