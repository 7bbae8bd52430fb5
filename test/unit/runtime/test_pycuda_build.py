"""The commands of docs/gpu.md that build pycuda from NVIDIA's wheels, run as they stand."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT


def commands() -> str:
    """The page's block that installs pycuda."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "gpu.md").read_text(), re.DOTALL)
    (block,) = [b for b in blocks if "pip install --no-deps pycuda" in b]
    return block


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler: pycuda cannot be built here")
def test_pycuda_is_built_from_wheels(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin_ = tmp_path / "venv" / "bin"
    # Only whether it is built counts, not how fast its code is. NumPy is there where mlirhlo is.
    fast = {"CFLAGS": "-O0", "CXXFLAGS": "-O0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment = os.environ | fast | {"PATH": f"{bin_}:{os.environ['PATH']}"}
    script = ["bash", "-e", "-c", f"pip install -q numpy\n{commands()}"]
    done = subprocess.run(
        script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1500
    )
    if "No matching distribution" in done.stderr:
        pytest.skip(f"pip has not what pycuda is built with: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    # Everything but NVIDIA's driver is there: loading ends at the first function that the stub lacks.
    (curand,) = (tmp_path / "venv").glob("lib/*/site-packages/nvidia/*/lib/libcurand.so.*")
    loaded = subprocess.run(
        [bin_ / "python", "-c", "import pycuda.driver"],
        env=environment | {"LD_LIBRARY_PATH": f"{tmp_path / 'stub'}:{curand.parent}"},
        capture_output=True,
        text=True,
    )
    assert "undefined symbol: cu" in loaded.stderr or loaded.returncode == 0, loaded.stderr
