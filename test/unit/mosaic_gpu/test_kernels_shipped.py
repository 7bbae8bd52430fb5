"""The kernels that come with the language of GPUs, and the benchmark's path without a card."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import ROOT

from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic.gpu import library

BF16, F32 = ml_dtypes.bfloat16, np.float32


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, F32).astype(BF16)


def judged(call: Any, arrays: Any, expected: Any, tolerance: float) -> None:
    """By the interpreter and on the simulator: the results, no finding, no access that meets another in a bank."""
    kernel = call.lower(*arrays)
    run = kernel.simulate(*arrays)
    assert not run.findings
    assert run.figures.shared_memory.bank_conflicts == 0
    for found in (run.results[0], kernel.interpret(*arrays)[0]):
        np.testing.assert_allclose(found.astype(F32), expected, rtol=tolerance, atol=tolerance)


def test_matmul() -> None:
    a, b = normal(256, 128), normal(128, 256)
    call = library.matmul_kernel(256, 256, 128, BF16)
    judged(call, (a, b), a.astype(F32) @ b.astype(F32), 2e-2)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(causal: bool) -> None:
    q, k, v = (normal(1, 256, 128) for _ in range(3))
    scores = q.astype(F32) @ k.astype(F32).transpose(0, 2, 1) / 128**0.5
    if causal:
        scores = np.where(np.tril(np.ones((256, 256), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(F32)
    judged(
        library.flash_attention_kernel(1, 256, 128, BF16, causal=causal), (q, k, v), expected, 2e-2
    )


def test_sizes_that_tiles_do_not_divide_are_refused() -> None:
    with pytest.raises(HloError) as caught:
        library.matmul_kernel(100, 256, 64, BF16)
    assert caught.value.diagnostics[0].code == "HLO0721"


@pytest.mark.slow
def test_the_check_of_a_card_runs_without_one(tmp_path: Path) -> None:
    """Its steps, each in its shortest form."""
    programs = "test/lit/lowering/gpu/one_kernel.hlo"
    parts = {"PROGRAMS": programs, "TESTS": "-kreduce", "ONLY": "add"}
    done = subprocess.run(
        ["bash", str(ROOT / "benchmarks" / "gpu_check.sh"), "--simulated"],
        env={**os.environ, **parts, "PYTHON": sys.executable, "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["ok", "ok", "left", "ok"]
    assert (tmp_path / "figures.json").exists()


def test_the_benchmark_runs_without_a_card(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    try:
        importlib.import_module("gpu").main(
            ["--simulated", "--only=layer norm,product bf16 4096", "--blocks=1"]
        )
    finally:
        for name in ("gpu", "gpu_cases", "gpu_peers"):
            sys.modules.pop(name, None)
    lines = capsys.readouterr().out.splitlines()
    assert "simulated" in lines[0]
    # A kernel of its own for each row of `keepdims` would take tens of microseconds.
    times = [float(line.split()[-4]) for line in lines[2:4]]
    assert all(0 < time < 10 for time in times)
