"""A fixed sample of JAX's own tests; `MLIRHLO_JAX_TESTS` is the checkout of JAX at the installed version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

CHECKOUT = Path(os.environ.get("MLIRHLO_JAX_TESTS", ""))
FILES = ("lax_control_flow_test", "pjit_test", "python_callback_test", "array_test", "fft_test")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.sweep,
    pytest.mark.skipif(not os.environ.get("MLIRHLO_JAX_TESTS"), reason="no MLIRHLO_JAX_TESTS"),
]


@pytest.mark.parametrize("name", FILES)
def test_what_passes_on_xla_passes_here(name: str) -> None:
    tool = [sys.executable, str(ROOT / "tools/run_jax_tests.py"), str(CHECKOUT), name]
    options = ["--most", "20", "--workers", "1"]
    done = subprocess.run([*tool, *options], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]
