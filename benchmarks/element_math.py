#!/usr/bin/env python3
"""Elementary functions: our kernels against XLA:CPU, in turns, in one process, on one thread.

    python benchmarks/element_math.py [--elements N] [--rounds R] [FUNCTION …]

Prints the ratio XLA ÷ ours of the medians: "donated" with XLA's output buffer given to it, as ours is,
and "fresh" as users call it. The process is pinned to one core. Needs jax.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

FUNCTIONS = {
    "exponential": "exp",
    "log": "log",
    "tanh": "tanh",
    "logistic": "logistic",
    "exponential-minus-one": "expm1",
    "log-plus-one": "log1p",
    "erf": "erf",
    "sine": "sin",
    "cosine": "cos",
    "power": "pow",
    "cbrt": "cbrt",
    "atan2": "atan2",
}
"""Our opcodes and their names in `jax.lax`."""


def ours(opcode: str, arity: int, elements: int) -> tuple[Callable[[list[Any], Any], None], float]:
    """A function of input arrays and an output array, and the seconds it took to compile."""
    import mlirhlo
    from mlirhlo.lowering.cpu.compiler import lower
    from mlirhlo.lowering.cpu.emit import MAIN
    from mlirhlo.runtime.jit import Library, compile_object
    from mlirhlo.runtime.threads import externals

    parameters = ", ".join(f"f32[{elements}] p{i}" for i in range(arity))
    module = mlirhlo.parse(f"f32[{elements}] {opcode}({parameters})")
    start = time.process_time()
    stages = lower(module.op)
    library = Library([compile_object(stages.text)], [MAIN], externals(stages.text))
    spent = time.process_time() - start
    main = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        library.address(MAIN)
    )

    def call(inputs: list[Any], output: Any) -> None:
        pointers = (ctypes.c_void_p * arity)(*[x.ctypes.data for x in inputs])
        results = (ctypes.c_void_p * 1)(output.ctypes.data)
        main(pointers, results, None)

    call.library = library  # type: ignore[attr-defined]  # it must live as long
    return call, spent


def timed(function: Callable[[], Any]) -> float:
    """Seconds of CPU, all threads."""
    start = time.process_time()
    function()
    return time.process_time() - start


def measure(opcode: str, elements: int, rounds: int) -> None:
    """Prints one row."""
    import jax
    import numpy as np

    name = FUNCTIONS[opcode]
    arity = 2 if opcode in ("power", "atan2") else 1
    rng = np.random.default_rng(0)
    inputs = [np.abs(rng.normal(size=elements)).astype(np.float32) + 0.01 for _ in range(arity)]
    output = np.empty(elements, np.float32)
    call, compiling = ours(opcode, arity, elements)
    function = getattr(jax.lax, name)
    arrays = [jax.device_put(x) for x in inputs]
    fresh = jax.jit(function)
    donated = jax.jit(lambda spare, *xs: function(*xs), donate_argnums=0, keep_unused=True)
    spare = [donated(jax.device_put(output), *arrays).block_until_ready()]
    expected = np.asarray(fresh(*arrays))

    def run_donated() -> None:
        spare[0] = donated(spare[0], *arrays).block_until_ready()

    runs: dict[str, Callable[[], Any]] = {
        "ours": lambda: call(inputs, output),
        "donated": run_donated,
        "fresh": lambda: fresh(*arrays).block_until_ready(),
    }
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            times[key].append(timed(run))
    medians = {key: statistics.median(values) for key, values in times.items()}
    low, *_, high = statistics.quantiles(times["ours"], n=20)
    apart = float(np.max(np.abs(output - expected) / np.spacing(np.abs(expected))))
    print(
        f"{opcode:24}{medians['ours'] * 1e3:9.2f}{medians['donated'] / medians['ours']:10.2f}"
        f"{medians['fresh'] / medians['ours']:8.2f}{(high - low) / medians['ours']:9.0%}"
        f"{(arity + 1) * 4e-9 * elements / medians['ours']:8.1f}{compiling * 1e3:10.0f}{apart:8.1f}"
    )


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description="Elementary functions against XLA:CPU.")
    parser.add_argument("functions", nargs="*", choices=[*FUNCTIONS, []], default=[])
    parser.add_argument("--elements", type=int, default=1 << 22)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        f"{'f32[' + str(options.elements) + ']':24}{'ours ms':>9}{'x donated':>10}{'x fresh':>8}"
        f"{'spread':>9}{'GB/s':>8}{'compile ms':>11}{'ULP apart':>10}"
    )
    for opcode in options.functions or FUNCTIONS:
        measure(opcode, options.elements, options.rounds)


if __name__ == "__main__":
    main()
