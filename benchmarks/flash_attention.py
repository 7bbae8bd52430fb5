#!/usr/bin/env python3
"""Flash attention forward, 1x8x1024x128: our simulator and machine code against Pallas' interpreters.

    OPENBLAS_NUM_THREADS=1 benchmarks/flash_attention.py [--repeat N] [--dtype bf16] [--races]

The kernel is the same, block for block. Pallas has two interpreters: `interpret=True` makes one XLA program of
the kernel (the peer of our machine code), `InterpretParams()` simulates a TPU's memories and copies (the peer of our
simulator, which also looks for races, as `detect_races=True` does there). Each runs once, which traces and compiles
it, then they take turns; the least time of each counts. The error is against f64. Needs jax.
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


def pallas(interpret: Any, dtype: Any = np.float32) -> Callable[..., Any]:
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
            weights.astype(v_ref.dtype), v_ref[...], preferred_element_type=jnp.float32
        )

        @pl.when(pl.program_id(3) == pl.num_programs(3) - 1)
        def _():
            o_ref[...] = (acc_ref[...] / sum_ref[...]).astype(o_ref.dtype)

    block = (None, None, BLOCK, SHAPE[-1])
    whole = pl.BlockSpec(block, lambda b, h, i, j: (b, h, i, 0))
    keys = pl.BlockSpec(block, lambda b, h, i, j: (b, h, j, 0))
    count = SHAPE[2] // BLOCK
    call = pl.pallas_call(
        kernel,
        jax.ShapeDtypeStruct(SHAPE, dtype),
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


def ours(**options: Any) -> Callable[..., Any]:
    """The library's kernel."""
    from mlirhlo.mosaic import kernels

    return lambda *arrays: kernels.flash_attention(*arrays, block_q=BLOCK, block_k=BLOCK, **options)


def main() -> None:
    """Prints a line for each, and the ratios to ours, of first calls and of later ones."""
    import ml_dtypes
    from jax.experimental.pallas import tpu as pltpu

    from mlirhlo.mosaic import InterpretParams

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="of q, k and v")
    parser.add_argument(
        "--races", action="store_true", help="Pallas with detect_races too: minutes"
    )
    options = parser.parse_args()
    dtype: Any = np.float32 if options.dtype == "f32" else ml_dtypes.bfloat16
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=SHAPE).astype(dtype) for _ in range(3)]
    wanted = reference(*arrays)
    functions = {"checked": ours(), "fast": ours(platform="cpu")}
    if options.dtype == "f32":
        rounded = InterpretParams(rounds_matmul_operands=True)
        functions["fast, products in bf16"] = ours(platform="cpu", interpret=rounded)
    mine = tuple(functions)
    functions["pallas interpret=True"] = pallas(True, dtype)
    functions["pallas InterpretParams"] = pallas(pltpu.InterpretParams(), dtype)
    if options.races:
        races = pltpu.InterpretParams(detect_races=True)
        functions["pallas detect_races"] = pallas(races, dtype)
    times: dict[str, list[float]] = {name: [] for name in functions}
    most = {"pallas InterpretParams": 1, "pallas detect_races": 0}
    for number in range(1 + options.repeat):
        for name, function in functions.items():
            if number > most.get(name, number):
                continue  # once is long enough
            begin = time.perf_counter()
            result = np.asarray(function(*arrays))
            times[name].append(time.perf_counter() - begin)
            if not number:
                error = np.abs(result.astype(np.float64) - wanted).max()
                print(f"{name:<24}error {error:.1e}", flush=True)
    for title, pick in (
        ("first", lambda all_: all_[0]),
        ("again", lambda all_: min(all_[1:] or all_)),
    ):
        for name, all_ in times.items():
            seconds = pick(all_)
            ratios = "  ".join(f"{seconds / pick(times[other]):8.1f}x {other}" for other in mine)
            print(f"{title} {name:<24}{seconds:8.4f} s  {ratios}", flush=True)


if __name__ == "__main__":
    main()
