"""What kernels move between global memory and the chip, over shapes, against the least there is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "benchmarks"))
import gpu_traffic

SHORT_ROWS = ("[300,12]", "[1000,3]", "[500,33]", "[70,100]", "[128,65]", "[50,100]")
OFTEN = {"row sum bf16[500,33]", "softmax f32[128,65]", "layer norm f32[300,12]"}


def kernels_of_short_rows():
    """Kernels that fold short rows, whatever their lengths."""
    for kernel in gpu_traffic.kernels():
        name = f"{kernel.kind} {kernel.shape}"
        if kernel.shape.endswith(SHORT_ROWS) and kernel.kind not in ("column sum", "transpose"):
            yield pytest.param(kernel, id=name, marks=[] if name in OFTEN else pytest.mark.slow)


@pytest.mark.parametrize("kernel", kernels_of_short_rows())
def test_short_rows(kernel):
    """Whole sectors are read and written, each once, by whole requests."""
    assert gpu_traffic.measure(kernel).ratio <= 1.05
