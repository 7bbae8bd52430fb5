"""The programs of the interpreter's tests as machine code, held against the same expectations."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import ROOT

pytest.importorskip("llvmlite")


@pytest.mark.slow
@pytest.mark.parametrize(
    "threads, files",
    [
        (2, ("test_reduction.py", "test_dynamic.py", "test_windows.py")),
        pytest.param(1, ("",), marks=pytest.mark.sweep),
        pytest.param(2, ("",), marks=pytest.mark.sweep),
    ],
)
def test_programs_of_the_interpreter(threads: int, files: tuple[str, ...]) -> None:
    environment = os.environ | {
        "MLIRHLO_TEST_PLATFORM": "cpu",
        "OMP_NUM_THREADS": str(threads),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not oracle"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *(f"test/unit/interp/{file}" for file in files)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
