#!/usr/bin/env python3
"""Flash attention forward, 1x8x1024x128: our simulator and machine code against Pallas' interpreters.

    OPENBLAS_NUM_THREADS=1 benchmarks/flash_attention.py [--repeat N] [--dtype bf16] [--races]

The kernel is the same, block for block. Pallas has two interpreters: `interpret=True` makes one XLA program of
the kernel (the peer of our machine code), `InterpretParams()` simulates a TPU's memories and copies (the peer of our
simulator, which also looks for races, as `detect_races=True` does there). Each runs once, which traces and compiles
it, then they take turns, the machine code in ten calls each; the least time of each counts. The error is against f64.
Machine code is compared with the checked mode that multiplies the same. Needs jax.
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
CALLS = 10
"""Of machine code in a turn."""


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


def product_gflops() -> float:
    """Rate of a product of two bf16 matrices of 1024 x 1024 in GFLOP/s: what attention's products are near at best."""
    import ml_dtypes

    import mlirhlo

    square = "bf16[1024,1024]"
    module = mlirhlo.parse(
        f"ENTRY e {{ x = {square} parameter(0) y = {square} parameter(1) ROOT d = f32[1024,1024] "
        "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    executable = mlirhlo.compile(module)
    x = np.ones((1024, 1024), ml_dtypes.bfloat16)
    least = math.inf
    for _ in range(30):
        begin = time.perf_counter()
        executable(x, x)
        least = min(least, time.perf_counter() - begin)
    return 2 * 1024**3 / least / 1e9


def main() -> None:
    """Prints errors, first calls and later ones with their ratios to ours, then what the fast ones reach."""
    import ml_dtypes
    from jax.experimental.pallas import tpu as pltpu

    from mlirhlo.mosaic import InterpretParams
    from mlirhlo.runtime.limits import limits
    from mlirhlo.runtime.threads import thread_count

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
    twins = {"fast": "checked"}
    """Of the fast ones the checked mode that multiplies the same."""
    if options.dtype == "f32":
        rounded = InterpretParams(rounds_matmul_operands=True)
        twins["fast, products in bf16"] = "checked, products in bf16"
        functions["checked, products in bf16"] = ours(interpret=rounded)
        functions["fast, products in bf16"] = ours(platform="cpu", interpret=rounded)
    mine = tuple(functions)
    functions["pallas interpret=True"] = pallas(True, dtype)
    functions["pallas InterpretParams"] = pallas(pltpu.InterpretParams(), dtype)
    if options.races:
        races = pltpu.InterpretParams(detect_races=True)
        functions["pallas detect_races"] = pallas(races, dtype)
    times: dict[str, list[float]] = {name: [] for name in functions}
    processor: dict[str, list[float]] = {name: [] for name in functions}
    most = {"pallas InterpretParams": 1, "pallas detect_races": 0}
    for number in range(1 + options.repeat):
        for name, function in functions.items():
            if number > most.get(name, number):
                continue  # once is long enough
            results: list[Any] = []
            for _ in range(CALLS if number and name in twins else 1):
                begin, used = time.perf_counter(), time.process_time()
                results = [np.asarray(function(*arrays))]
                times[name].append(time.perf_counter() - begin)
                processor[name].append(time.process_time() - used)
            if not number:
                (result,) = results
                error = np.abs(result.astype(np.float64) - wanted).max()
                print(f"{name:<26}error {error:.1e}", flush=True)
    again = {name: min(all_[1:] or all_) for name, all_ in times.items()}
    for title, seconds in (("first", {n: all_[0] for n, all_ in times.items()}), ("again", again)):
        for name, value in seconds.items():
            ratios = "  ".join(f"{value / seconds[other]:8.1f}x {other}" for other in mine)
            print(f"{title} {name:<26}{value:8.4f} s  {ratios}", flush=True)
    flops = 4 * math.prod(SHAPE) * SHAPE[2]
    peak, product = limits()["f32"], product_gflops()
    print(f"this machine: {peak:.0f} GFLOP/s of f32, {product:.0f} of a large product of bf16")
    print(f"at the peak of f32 products alone take {flops / peak / 1e6:.1f} ms", flush=True)
    for name, twin in twins.items():
        rate = flops / again[name] / 1e9
        # Others on the machine lengthen a call by the clock, its processor time hardly.
        used, other = (min(processor[n][1:] or processor[n]) for n in (name, twin))
        print(
            f"{name}: {again[twin] / again[name]:.1f}x {twin}, {rate:.0f} GFLOP/s, {rate / peak:.0%} of the "
            f"peak of f32, {rate / product:.0%} of a large product of bf16\n  processor time {used * 1e3:.1f} ms "
            f"on {thread_count()} threads, {other * 1e3:.1f} ms {twin}: {other / used * thread_count():.1f}x if "
            "each thread had a core",
            flush=True,
        )


if __name__ == "__main__":
    main()
