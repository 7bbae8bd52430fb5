"""Many calls from many threads, and how processes end; `tools/jax_stress.py` makes 100,000 of each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import ROOT

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_nothing_leaks_hangs_or_ends_badly() -> None:
    command = [sys.executable, "-W", "ignore", str(ROOT / "tools/jax_stress.py")]
    options = ["--calls", "1600", "--limit", "120"]
    env = {**os.environ, "JAX_PLATFORMS": "mlirhlo"}
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, env=env, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
