"""Start-up is part of the interface: importing starts nothing, and small files answer at once.

CPU time (user and system), not wall time, and the best of several children: what is measured is the
work the package asks for, not what else the machine is doing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support import BIN, DATA, run

TRIES = 5

HEAVY = (
    "numpy",
    "jax",
    "jaxlib",
    "llvmlite",
    "lark",
    "google.protobuf",
    "ml_dtypes",
    "rich",
    "xdsl",
)
"""What `import mlirhlo` must not bring in; each is imported by the function that needs it."""

SMALL = DATA / "programs" / "fusion_chain" / "fusion_chain.hlo"


def cpu_seconds(*command: str | Path) -> float:
    """CPU time of a command, the least of several runs; it must succeed."""
    times = list[float]()
    for _ in range(TRIES):
        done = run(*command)
        assert done.code == 0, done.err
        times.append(done.cpu_s)
    return min(times)


def test_import_brings_in_nothing_heavy() -> None:
    # Site packages may import on their own through .pth files, so only what is new counts.
    program = (
        "import sys, json; before = set(sys.modules); import mlirhlo;"
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules and m not in before]))"
    )
    done = run(sys.executable, "-c", program)
    assert done.code == 0, done.err
    assert json.loads(done.out) == []


@pytest.mark.slow
def test_import_time() -> None:
    assert cpu_seconds(sys.executable, "-c", "import mlirhlo") <= 0.2


@pytest.mark.slow
def test_help_time() -> None:
    assert cpu_seconds(BIN / "hlo-opt", "--help") < 0.3


@pytest.mark.slow
def test_small_file_time() -> None:
    assert cpu_seconds(BIN / "hlo-opt", SMALL) <= 0.4
