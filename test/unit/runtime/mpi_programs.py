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


def main() -> None:
    what, rank = sys.argv[1], ranks().rank
    if what == "random":
        bits_of_virtual_devices(*map(int, sys.argv[2:]))
        total()
        total(100_001)
        return
    total()
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
