#!/usr/bin/env python3
"""Dots and convolutions of many sizes and forms against XLA:CPU, as `cpu.py` measures.

    python benchmarks/contractions.py                    # on one thread
    python benchmarks/contractions.py --only conv --threads 2

Needs jax.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpu_programs import Program

Array = Any


def forms() -> list[Program]:
    """What is measured."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from cpu_programs import Program, conv
    from jax import lax

    found: list[Program] = []

    def add(
        name: str,
        function: Callable[..., Any],
        *shapes: tuple[int, ...],
        gigaflop: float,
        dtype: Any = np.float32,
        peak: str = "f32",
        tolerance: float = 1e-4,
    ) -> None:
        def draw(rng: np.random.Generator) -> list[Array]:
            if np.dtype(dtype).kind == "i":
                return [rng.integers(-100, 100, s).astype(dtype) for s in shapes]
            values = (rng.standard_normal(s, np.float32) / 8 for s in shapes)
            return [v.astype(dtype) for v in values]

        found.append(
            Program(name, function, draw, gigaflop=gigaflop, peak=peak, tolerance=tolerance)
        )

    def product(dtype: Any) -> Callable[..., Any]:
        wide = jnp.int32 if np.dtype(dtype).kind == "i" else None
        return lambda x, y: lax.dot(x, y, preferred_element_type=wide)

    for dtype, name, peak, tolerance in (
        (np.float32, "f32", "f32", 1e-4),
        (jnp.bfloat16, "bf16", "bf16", 3e-2),
        (np.int8, "s8", "s8", 0.0),
    ):
        for n in (32, 64, 100, 128, 256, 512, 1000, 1024, 2048):
            flops = 2e-9 * n**3
            add(
                f"{name} {n}",
                product(dtype),
                (n, n),
                (n, n),
                gigaflop=flops,
                dtype=dtype,
                peak=peak,
                tolerance=tolerance,
            )
    for letters in ("mk,nk->mn", "km,kn->mn", "km,nk->mn"):
        flops = 2e-9 * 512**3
        add(letters, _einsum(letters), (512, 512), (512, 512), gigaflop=flops)
    for rows, depth, columns in ((1, 4096, 4096), (8, 1024, 4096), (4096, 1024, 10)):
        flops = 2e-9 * rows * depth * columns
        sizes = f"{rows}x{depth}x{columns}"
        add(sizes, lambda x, y: x @ y, (rows, depth), (depth, columns), gigaflop=flops)
        turned = _einsum("mk,nk->mn")
        add(f"{sizes} nk", turned, (rows, depth), (columns, depth), gigaflop=flops)
    add("matrix vector", lambda x, y: x @ y, (4096, 4096), (4096,), gigaflop=2e-9 * 4096**2)
    for batch, n in ((256, 32), (256, 64), (96, 128), (2048, 8), (50_000, 3), (50_000, 4)):
        flops = 2e-9 * batch * n**3
        shape = (batch, n, n)
        add(f"batch {batch} of {n}", _einsum("bij,bjk->bik"), shape, shape, gigaflop=flops)
    for batch, n in ((50_000, 3), (20_000, 8)):
        flops = 2e-9 * batch * n**2
        name, shape = f"batch {batch} of {n} vector", (batch, n, n)
        add(name, _einsum("bij,bj->bi"), shape, (batch, n), gigaflop=flops)
    heads = (4, 8, 512, 64)
    flops = 2e-9 * 32 * 512 * 512 * 64
    add("scores", _einsum("bhqd,bhkd->bhqk"), heads, heads, gigaflop=flops)
    add("values", _einsum("bhqk,bhkd->bhqd"), (4, 8, 512, 512), heads, gigaflop=flops)
    for image, kernel, stride in (
        ((8, 56, 56, 64), (3, 3, 64, 64), 1),
        ((8, 28, 28, 128), (3, 3, 128, 128), 1),
        ((8, 7, 7, 512), (3, 3, 512, 512), 1),
        ((8, 56, 56, 64), (1, 1, 64, 256), 1),
        ((8, 56, 56, 256), (1, 1, 256, 512), 2),
        ((4, 224, 224, 3), (7, 7, 3, 64), 2),
    ):
        places = image[1] * image[2] // stride**2
        flops = 2e-9 * image[0] * places * float(np.prod(kernel))
        name = f"conv {'x'.join(map(str, image[1:]))} {'x'.join(map(str, kernel))} /{stride}"
        add(name, _strided(conv, stride), image, kernel, gigaflop=flops)

    def loss(x: Array, w: Array) -> Array:
        return jnp.sum(conv(x, w) ** 2)

    image, kernel = (8, 28, 28, 64), (3, 3, 64, 64)
    flops = 2e-9 * 8 * 28 * 28 * 64 * 64 * 9
    add("conv gradients", jax.grad(loss, (0, 1)), image, kernel, gigaflop=3 * flops)
    return found


def _einsum(letters: str) -> Callable[..., Any]:
    import jax.numpy as jnp

    return lambda x, y: jnp.einsum(letters, x, y)


def _strided(conv: Callable[..., Any], stride: int) -> Callable[..., Any]:
    return lambda x, w: conv(x, w, stride)


def main() -> None:
    """Runs the benchmark in a process of its own, where XLA sees the number of threads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.only, options.threads, options.rounds)
        return
    environment = dict(os.environ, JAX_PLATFORMS="cpu", OMP_NUM_THREADS=str(options.threads))
    if options.threads == 1:
        flags = "--xla_cpu_multi_thread_eigen=false"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()
    command = [sys.executable, __file__, "--worker", *sys.argv[1:]]
    subprocess.run(command, env=environment, check=True)


def work(only: Sequence[str], threads: int, rounds: int) -> None:
    """Measures in this process and prints a table."""
    from cpu import HEAD, line, measure

    from mlirhlo.runtime.threads import set_thread_count

    if threads == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    set_thread_count(threads)
    print(HEAD)
    ratios: list[float] = []
    for program in forms():
        if only and not any(word in program.name for word in only):
            continue
        row = measure(program, rounds, threads)
        ratios.append(row["donated"])
        print(line(row), flush=True)
    print(f"geometric mean donated: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
