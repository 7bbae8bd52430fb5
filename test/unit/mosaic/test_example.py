"""The kernel that newcomers paste."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from mlirhlo.mosaic import tpu_compiler
from mlirhlo.mosaic.pipeline import STAGES

EXAMPLE = ROOT / "examples" / "double_add.py"


@pytest.mark.slow
def test_it_runs_dumps_times_and_compiles(tmp_path: Path) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 20
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        cwd=tmp_path,
        env={**os.environ, "MLIRHLO_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "runs: True True"
    assert lines[1].startswith(f"dumps: {len(STAGES) + 1} stages")
    assert len(list((tmp_path / "dumps").iterdir())) == len(STAGES) + 1
    assert lines[2].startswith("times: double_add on v5e, modelled: ")
    assert len(lines) == 3 + tpu_compiler.is_available()
    if tpu_compiler.is_available():
        assert "is_accepted=True" in lines[3]
