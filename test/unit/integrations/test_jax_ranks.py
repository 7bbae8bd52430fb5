"""JAX in several processes that MPI starts gives what it gives in one with as many devices."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("jax_ranks_programs.py")
LAUNCHER = Path(sys.executable).with_name("mpirun")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None or not LAUNCHER.exists(),
        reason="the [mpi] extra is not installed",
    ),
]

pytest.importorskip("jax")


def lines(platform: str, ranks: int, devices: int) -> list[str]:
    """What the first process prints, of so many with so many devices each."""
    launcher = [str(LAUNCHER), "-n", str(ranks)] if ranks > 1 else []
    command = [*launcher, sys.executable, "-m", "mpi4py", str(PROGRAMS)]
    env = {**os.environ, "JAX_PLATFORMS": platform, "JAX_NUM_CPU_DEVICES": str(devices)}
    env |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return lines("mlirhlo", 1, 4)


def test_devices_of_one_process_give_what_xla_gives(expected: list[str]) -> None:
    xla = lines("cpu", 1, 4)
    assert [line for line in expected if "loss" not in line] == [
        line for line in xla if "loss" not in line
    ]


@pytest.mark.parametrize(("ranks", "devices"), [(4, 1), (2, 2)])
def test_ranks_give_the_bits_of_devices(expected: list[str], ranks: int, devices: int) -> None:
    assert lines("mlirhlo", ranks, devices) == expected


def test_processes_without_a_launcher_are_told() -> None:
    program = (
        "import jax\n"
        "from jax._src import distributed\n"
        "distributed.global_state.num_processes = 2\n"
        "import numpy as np\n"
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\n"
        "at = NamedSharding(Mesh(np.array(jax.devices()), 'd'), P('d'))\n"
        "x = jax.make_array_from_callback((4,), at, lambda i: np.ones(4)[i])\n"
        "print(jax.jit(lambda v: v.sum())(x))\n"
    )
    env = {**os.environ, "JAX_PLATFORMS": "mlirhlo"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=100)
    assert done.returncode
    assert "HLO0878" in done.stderr, done.stderr
    assert "process 1 is no rank of MPI" in done.stderr
