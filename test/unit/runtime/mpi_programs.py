"""What `test_mpi.py` runs on four ranks: `random SEED COUNT` collectives, or a program that goes wrong on one rank."""

from __future__ import annotations

import functools
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import mlirhlo
from mlirhlo.interp.machine import Machine
from mlirhlo.runtime.mpi import ranks
from mlirhlo.runtime.sharded import ShardedExecutable

DEVICES = [(1, 4), (2, 2), (4, 1), (1, 8), (2, 4)]
"""Replicas and partitions: one device of a rank, and two."""

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
from test_native_collectives import (  # noqa: E402  needs the path
    compiled,
    devices_of,
    draw,
    flat,
    ragged,
    run_native,
)

SUM = """
HloModule sum, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[SIZE] parameter(0)
  start = f32[SIZE] all-reduce-start(x), replica_groups={{0,1,2,3}}, channel_id=1,
    use_global_device_ids=true, to_apply=add
  y = f32[SIZE] multiply(x, x)
  done = f32[SIZE] all-reduce-done(start)
  ROOT r = f32[SIZE] subtract(done, y)
}"""


def bits_of_virtual_devices(seed: int, count: int) -> None:
    """Random collectives give on four ranks the bits of four devices of one process."""
    same, kinds = 0, set[str]()
    while same < count:
        seed += 1
        text, inputs = ragged(seed, count=4) if seed % 3 == 0 else draw(seed, DEVICES)
        machine = Machine(*devices_of(text))
        if machine.device_count % ranks().count:
            continue
        executable = compiled(text)
        found = executable.run_devices(machine, inputs)
        if ranks().rank == 0:
            wanted = run_native(executable, Machine(*devices_of(text)), inputs)
            for want, got in zip(wanted, found, strict=True):
                for x, y in zip(flat(want), flat(got), strict=True):
                    assert x.tobytes() == y.tobytes(), text
        kinds.update(type(world).__name__ for world in executable._ranks.values())
        same += 1
    # One write a line: with Python's output unbuffered, a line and its end would be two, and ranks mix.
    sys.stdout.write(f"rank {ranks().rank}: {same} the same, {', '.join(kinds)}\n")


@functools.cache
def sum_of(size: int) -> ShardedExecutable:
    return mlirhlo.compile(mlirhlo.parse(SUM.replace("SIZE", str(size))), devices=4)


def total(size: int = 8) -> None:
    found = sum_of(size).on_devices(*[[np.full(size, n, np.float32)] for n in range(4)])
    assert [values[0] for values in found] == [6 - n * n for n in range(4)], found
    assert all((values == values[0]).all() for values in found)


MIRRORED = """
HloModule mirrored, replica_count=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY step {
  w = f32[3] parameter(0)
  x = f32[2,3] parameter(1)
  y = f32[2] parameter(2)
  p = f32[2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[2] subtract(p, y)
  g = f32[3] dot(x, e), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[] dot(e, e), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  all = (f32[3], f32[]) all-reduce(g, s), replica_groups={}, to_apply=add
  ga = f32[3] get-tuple-element(all), index=0
  loss = f32[] get-tuple-element(all), index=1
  rate = f32[] constant(0.03125)
  rates = f32[3] broadcast(rate), dimensions={}
  d = f32[3] multiply(ga, rates)
  n = f32[3] subtract(w, d)
  ROOT r = (f32[3], f32[]) tuple(n, loss)
}"""
"""The step of a replica under TensorFlow's `MirroredStrategy`: its part of the batch, then gradients of all."""


def mirrored() -> None:
    """Replicas that train on a part of the batch each keep the weights of one that trains on all of it."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 3)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    weights = np.zeros(3, np.float32)
    step = mlirhlo.compile(mlirhlo.parse(MIRRORED), devices=4)
    parts = [weights] * 4
    for _ in range(20):
        error = x @ weights - y
        weights = weights - x.T @ error / 32
        tiles = [[parts[n], x[2 * n : 2 * n + 2], y[2 * n : 2 * n + 2]] for n in range(4)]
        found = step.on_devices(*tiles)
        parts = [new for new, _ in found]
        np.testing.assert_allclose([loss for _, loss in found], error @ error, rtol=1e-5)
    np.testing.assert_allclose(parts, [weights] * 4, rtol=1e-4)
    assert len({part.tobytes() for part in parts}) == 1


def main() -> None:
    what, rank = sys.argv[1], ranks().rank
    if what == "mirrored":
        mirrored()
        return
    if what == "random":
        bits_of_virtual_devices(*map(int, sys.argv[2:]))
        total()
        total(100_001)
        return
    total()
    # Of ranks that are killed no memory with a name stays behind.
    mapped = Path("/proc/self/maps").read_text().splitlines()
    assert not [line for line in mapped if "/dev/shm/" in line and not line.endswith("(deleted)")]
    if rank == 2:
        if what == "raises":
            raise ValueError("of rank 2")
        if what == "leaves":
            return
        if what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "sleeps":
            time.sleep(30)
        total(9)  # another module
    else:
        total(16 if what == "other" else 8)


if __name__ == "__main__":
    main()
