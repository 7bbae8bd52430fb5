"""Four ranks of MPI: the bits of four devices of one process, and how all end when one goes wrong."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("mpi_programs.py")
LAUNCHER = Path(sys.executable).with_name("mpirun")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None or not LAUNCHER.exists(),
        reason="the [mpi] extra is not installed",
    ),
]


def launched(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command on four ranks."""
    words = [LAUNCHER, "-n", "4", sys.executable, *command]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run([*map(str, words)], capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.parametrize("memory", ["1", "0"])
def test_ranks_give_the_bits_of_devices_of_one_process(memory: str) -> None:
    done = launched(PROGRAMS, "random", "0", "12", MLIRHLO_MPI_MEMORY=memory)
    assert done.returncode == 0, done.stdout + done.stderr
    kind = "SharedWorld" if memory == "1" else "MessageWorld"
    assert sorted(done.stdout.splitlines()) == [f"rank {n}: 12 the same, {kind}" for n in range(4)]


def test_mirrored_replicas_train_as_one() -> None:
    done = launched(PROGRAMS, "mirrored")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("raises", "ValueError: of rank 2"),
        ("other", "error[HLO0878]: rank 2 runs another module than rank 0"),
        (
            "leaves",
            "waits in all-reduce-start %start for rank 1, rank 2, rank 3, and rank 2 has ended",
        ),
        ("sleeps", "waits in all-reduce-start %start for rank 1, rank 2, rank 3 since 3 s"),
        ("killed", "signal 9"),
    ],
)
def test_a_rank_that_goes_wrong_ends_all(what: str, line: str) -> None:
    start = time.monotonic()
    done = launched(PROGRAMS, what, MLIRHLO_MPI_TIMEOUT_S="3")
    assert done.returncode, done.stdout + done.stderr
    assert line.lower() in (done.stdout + done.stderr).lower()
    assert time.monotonic() - start < 60  # a loaded machine starts slowly


def test_a_tool_on_ranks_speaks_once(tmp_path: Path) -> None:
    module = tmp_path / "sum.hlo"
    module.write_text(
        "HloModule m, num_partitions=4\n"
        "a { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }\n"
        "ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] all-reduce(p), to_apply=a, channel_id=1,"
        " replica_groups={{0,1,2,3}}, use_global_device_ids=true }\n"
    )
    tool = ["-m", "mlirhlo.cli.run_hlo_module", "--platform=CPU"]
    done = launched(*tool, module)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("0/1 runs miscompared") == 1
    done = launched(*tool, "--output_npz=/dev/full", module)
    assert done.returncode == 1
    assert done.stderr.count("error[HLO0503]") == 1
