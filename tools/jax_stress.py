"""Calls of JAX's programs from many threads: whether memory grows, whether a call never returns, how a process ends.

    JAX_PLATFORMS=mlirhlo python tools/jax_stress.py
    JAX_PLATFORMS=mlirhlo python tools/jax_stress.py --calls 2000 --only donation

A row a kind: calls a second, the process's resident set in MiB at the start, after a fifth of the calls, after three
fifths and at the end, and by how much it grew after the first fifth. A kind fails where it grew by more than `--most`
MiB, or gave a wrong value; the process ends with every thread's stack where nothing returned for `--limit` seconds.
The last rows are processes that end in different ways, each after sharded programs and callbacks in several threads.
With JAX_PLATFORMS=cpu it is XLA:CPU that runs.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 1024


def kinds() -> Mapping[str, Callable[[int], bool]]:
    """By name, a call with a number, and whether its result is right."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import io_callback

    shape = jax.ShapeDtypeStruct((SIZE,), np.float32)
    seen = threading.Semaphore(0)
    double = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x))
    count = jax.jit(lambda x: io_callback(lambda v: (seen.release(), np.asarray(v))[1], shape, x))
    grow = jax.jit(lambda x: x + 1, donate_argnums=0)
    add = jax.jit(lambda x: x + 1)

    def failing(value: Any) -> Any:
        raise ValueError("no value")

    fail = jax.jit(lambda x: jax.pure_callback(failing, shape, x))
    shown = jax.jit(lambda x: (jax.debug.callback(lambda v: seen.release(), x[0]), x + 1)[1])

    def filled(number: int) -> Any:
        return jnp.asarray(np.full(SIZE, number, np.float32))

    def is_all(array: Any, number: float) -> bool:
        values = np.asarray(array)
        return values[0] == number and values[-1] == number

    def raises(number: int) -> bool:
        try:
            fail(filled(number)).block_until_ready()
        except RuntimeError as problem:
            return "no value" in str(problem)
        return False

    def donation(number: int) -> bool:
        x = filled(number)
        result = grow(grow(x))
        return x.is_deleted() and is_all(result, number + 2)

    def dlpack(number: int) -> bool:
        given = np.full(SIZE, number, np.float32)
        out = np.from_dlpack(add(jnp.from_dlpack(given)))
        return is_all(jnp.from_dlpack(add(jnp.asarray(out))), number + 2)

    return {
        "calls": lambda n: is_all(add(filled(n)), n + 1),
        "donation": donation,
        "dlpack": dlpack,
        "pure_callback": lambda n: is_all(double(filled(n)), 2 * n),
        "io_callback": lambda n: is_all(count(filled(n)), n) and seen.acquire(timeout=60),
        "debug_callback": lambda n: is_all(shown(filled(n)), n + 1) and seen.acquire(timeout=60),
        "failing callback": raises,
    }


def resident() -> float:
    """MiB of this process in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def strain(
    call: Callable[[int], bool], calls: int, threads: int, limit: int
) -> tuple[list[float], int]:
    """MiB of the process at the start and after each fifth of the calls, and how many calls were wrong."""
    wrong: list[int] = []

    def work(first: int, count: int) -> None:
        wrong.extend(n for n in range(first, first + count) if not call(n % 1000))

    def round_of(count: int) -> None:
        faulthandler.dump_traceback_later(limit, exit=True)
        each = -(-count // threads)
        started = [threading.Thread(target=work, args=(t * each, each)) for t in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        faulthandler.cancel_dump_traceback_later()

    sizes = [resident()]
    for _ in range(5):
        round_of(calls // 5)
        sizes.append(resident())
    return sizes, len(wrong)


PROGRAM = """
import os, sys, threading
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
shape = jax.ShapeDtypeStruct((4,), np.float32)
double = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x))
sharding = NamedSharding(Mesh(jax.devices(), "d"), PartitionSpec("d"))
total = jax.jit(lambda x: x.sum())
x = jax.device_put(jnp.ones(1 << 20), sharding)
total(x)
def work():
    for _ in range(20):
        double(jnp.ones(4)).block_until_ready()
        total(x).block_until_ready()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
FORK = """
child = os.fork()
if not child:
    os._exit(5 if float(total(x)) == 1 << 20 else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(status if float(total(x)) == 1 << 20 else 1)
"""
"""A child as `multiprocessing` makes them. jaxlib's threads are not in it: it neither compiles nor unloads."""
ENDS: Mapping[str, tuple[str, int]] = {
    "end of the program": ("", 0),
    "sys.exit(3)": ("sys.exit(3)", 3),
    "exception": ("raise ValueError", 1),
    "calls after a fork": (FORK, 5),
}
"""By name, what follows `PROGRAM`, after which threads of devices and callbacks are there, and the exit code."""


def ending(name: str, limit: int) -> str | None:
    """What is wrong with how a process ends; None when nothing is."""
    code, status = ENDS[name]
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM + code]
    env = {**os.environ, "JAX_NUM_CPU_DEVICES": "2"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, env=env, check=False
        )
    except subprocess.TimeoutExpired:
        return f"did not end in {limit} s"
    lines = done.stderr.strip().splitlines()
    if done.returncode != status:
        return f"exit code {done.returncode}: {lines[-1] if lines else ''}"
    return lines[-1] if lines and name != "exception" else None


def main() -> int:
    """The process's exit code: 1 where a kind fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000, help="of each kind (default 100000)")
    parser.add_argument("--threads", type=int, default=16, help="that call (default 16)")
    parser.add_argument("--most", type=float, default=8.0, help="MiB of growth (default 8)")
    parser.add_argument("--limit", type=int, default=600, help="seconds (default 600)")
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    arguments = parser.parse_args()
    logging.getLogger("jax").setLevel(logging.CRITICAL)  # a traceback for each failing callback
    failed = False
    for name, call in kinds().items():
        if arguments.only not in name:
            continue
        start = time.perf_counter()
        sizes, wrong = strain(call, arguments.calls, arguments.threads, arguments.limit)
        rate = arguments.calls / (time.perf_counter() - start)
        grown = sizes[-1] - sizes[1]
        failed |= bool(wrong) or grown > arguments.most
        told = " ".join(f"{sizes[n]:7.1f}" for n in (0, 1, 3, 5))
        print(f"{name:>18}: {rate:8.0f} calls/s {told} {grown:+7.1f} MiB {wrong} wrong", flush=True)
    for name in ENDS:
        if arguments.only in name:
            problem = ending(name, arguments.limit)
            failed |= problem is not None
            print(f"{name:>18}: {problem or 'ends cleanly'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
