#!/usr/bin/env python3
"""How long compiling takes, beside XLA:CPU: single kernels, and transformers of more and more layers.

    python benchmarks/cpu_compile.py                       # kernels; forward and train step, 1 to 24 layers
    python benchmarks/cpu_compile.py --layers 1,4 --train no
    python benchmarks/cpu_compile.py --only kernels

Processor time of all threads, from the HLO module to code that can be called. "cold" compiles everything,
"cached" finds the module in the cache; "kernels" are the distinct ones. Single kernels are compiled in turns by
both, medians of all rounds. Needs jax.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["MLIRHLO_COMPILE_WORKERS"] = "0"  # their time would not be seen


KERNELS = {
    "elementwise chain": 0.5,
    "tanh chain": 0.5,
    "softmax": 1.5,
    "layer norm": 1.5,
    "rms norm": 1.5,
    "sgemm 256": 2.5,
    "sgemm 1024": 2.5,
}
"""Programs of one kernel, and the ratio that is asked for."""


def kernel(name: str, rounds: int) -> None:
    """Prints a row."""
    import jax
    import numpy as np
    from cpu import in_default_layouts
    from cpu_programs import programs

    import mlirhlo

    program = programs()[name]
    inputs = program.inputs(np.random.default_rng(0))
    text = jax.jit(program.function).lower(*inputs).compiler_ir("hlo").as_hlo_text()  # type: ignore[union-attr]
    module = mlirhlo.parse(in_default_layouts(text))

    def theirs() -> float:
        jax.clear_caches()
        lowered = jax.jit(program.function).lower(*inputs)
        start = time.process_time()
        lowered.compile()
        return time.process_time() - start

    def ours(cached: bool) -> float:
        start = time.process_time()
        mlirhlo.compile(module, cached=cached)
        return time.process_time() - start

    ours(cached=True)
    samples = [(theirs(), ours(cached=False), ours(cached=True)) for _ in range(rounds)]
    xla, cold, warm = (statistics.median(column) for column in zip(*samples, strict=True))
    print(
        f"{name:20}{xla * 1e3:9.1f}{cold * 1e3:9.1f}{cold / xla:9.2f}{KERNELS[name]:9.1f}"
        f"{warm * 1e3:10.2f}{warm / cold:9.3f}",
        flush=True,
    )


def transformer(
    layers: int, *, train: bool, adam: bool = False
) -> tuple[Callable[..., Any], Sequence[Any]]:
    """A function of tokens and parameters, each layer with its own, and its inputs.

    With `adam` a train step is AdamW's, and takes and gives its step count and moments too.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np
    from cpu_programs import LAYER, cross_entropy, transformer_layer

    rng = np.random.default_rng(0)
    shapes = [(1000, 512), *[s for _ in range(layers) for s in LAYER.values()]]
    parameters = [rng.standard_normal(s, np.float32) * np.float32(0.02) for s in shapes]
    tokens = rng.integers(0, 1000, (2, 128)).astype("int32")

    def forward(tokens: Any, values: Sequence[Any]) -> Any:
        table, *rest = values
        x = table[tokens]
        for at in range(0, len(rest), len(LAYER)):
            x = transformer_layer(x, dict(zip(LAYER, rest[at : at + len(LAYER)], strict=True)))
        return x.reshape(-1, 512) @ table.T

    def gradients_at(tokens: Any, values: Sequence[Any]) -> Any:
        def loss(values: Sequence[Any]) -> Any:
            return cross_entropy(forward(tokens, values), jnp.roll(tokens.reshape(-1), -1))

        return jax.value_and_grad(loss)(values)

    def step(tokens: Any, values: Sequence[Any]) -> Any:
        value, gradients = gradients_at(tokens, values)
        return value, [p - 0.01 * g for p, g in zip(values, gradients, strict=True)]

    def adam_step(
        tokens: Any,
        values: Sequence[Any],
        count: Any,
        firsts: Sequence[Any],
        seconds: Sequence[Any],
    ) -> Any:
        value, gradients = gradients_at(tokens, values)
        count = count + 1
        found: list[tuple[Any, Any, Any]] = []
        for p, g, m, v in zip(values, gradients, firsts, seconds, strict=True):
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g**2
            change = (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)
            found.append((p - 1e-3 * (change + 0.01 * p), m, v))
        return value, count, *map(list, zip(*found, strict=True))

    if not train:
        return forward, (tokens, parameters)
    if not adam:
        return step, (tokens, parameters)
    zeros = [np.zeros_like(p) for p in parameters]
    return adam_step, (tokens, parameters, np.float32(0), zeros, zeros)


def measure(layers: int, *, train: bool) -> None:
    """Prints one row."""
    import jax
    import numpy as np

    import mlirhlo
    from mlirhlo.lowering.cpu.compiler import lower

    function, inputs = transformer(layers, train=train)
    lowered = jax.jit(function).lower(*inputs)
    start = time.process_time()
    theirs = lowered.compile()
    xla = time.process_time() - start
    text = lowered.compiler_ir("hlo").as_hlo_text()  # type: ignore[union-attr]
    # A full collection falls due once in a million new objects; it would be one of what was compiled before.
    gc.collect()
    parsed = time.process_time()
    module = mlirhlo.parse(text)
    parsed = time.process_time() - parsed
    kernels = len(lower(module.op).plan.kernels)
    times: list[float] = []
    for cached in (False, True, True):
        start = time.process_time()
        executable = mlirhlo.compile(module, cached=cached)
        times.append(time.process_time() - start)
    expected = jax.tree.leaves(theirs(*inputs))
    found = executable(*jax.tree.leaves(inputs))
    found = found if isinstance(found, tuple) else (found,)
    off = max(
        float(np.max(np.abs(a - b)) / np.max(np.abs(b)))
        for a, b in zip(found, expected, strict=True)
    )
    cold, _, warm = times
    print(
        f"{'train' if train else 'forward':9}{layers:7}{xla:9.2f}{cold:9.2f}{cold / xla:9.2f}"
        f"{warm:9.3f}{warm / cold:9.3f}{kernels:9}{parsed:9.2f}{off:10.1e}",
        flush=True,
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", default="1,4,12,24")
    parser.add_argument("--train", choices=["no", "yes", "both"], default="both")
    parser.add_argument("--only", choices=["kernels", "transformers"])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["MLIRHLO_CACHE_DIR"] = directory
        os.chmod(directory, 0o700)
        if options.only != "transformers":
            print(
                f"{'':20}{'XLA ms':>9}{'cold ms':>9}{'÷ XLA':>9}{'asked':>9}"
                f"{'cached ms':>10}{'÷ cold':>9}"
            )
            for name in KERNELS:
                kernel(name, options.rounds)
        if options.only != "kernels":
            transformers(options)


def transformers(options: argparse.Namespace) -> None:
    """Prints the table of transformers."""
    print(
        f"{'':9}{'layers':>7}{'XLA s':>9}{'cold s':>9}{'÷ XLA':>9}"
        f"{'cached s':>9}{'÷ cold':>9}{'kernels':>9}{'parse s':>9}{'apart':>10}"
    )
    for train in (False, True):
        if options.train in ("both", "yes" if train else "no"):
            for layers in map(int, options.layers.split(",")):
                measure(layers, train=train)


if __name__ == "__main__":
    main()
