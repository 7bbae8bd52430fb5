"""Dumps of the GPU compiler have XLA:GPU's names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mlirhlo
from mlirhlo.lowering.gpu.devices import device, read_device

TEXT = """HloModule two
c { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0  k = s32[] constant(2)
  ROOT r = pred[] compare(i, k), direction=LT }
b { p = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(p), index=0  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)  n = s32[] add(i, one)  y = f32[8] sine(x)  ROOT r = (s32[], f32[8]) tuple(n, y) }
ENTRY e { x = f32[8] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(t), condition=c, body=b  ROOT r = f32[8] get-tuple-element(w), index=1 }
"""


def test_files_of_a_compilation(tmp_path: Path) -> None:
    module = mlirhlo.parse(TEXT)
    compiled = mlirhlo.compile(module, "gpu", gpu="a100", options={"xla_dump_to": str(tmp_path)})
    x = np.linspace(0, 1, 8, dtype=np.float32)
    np.testing.assert_allclose(compiled(x), module(x), rtol=1e-6)
    (before,) = tmp_path.glob("*.before_optimizations.txt")
    stem = before.name.removesuffix(".before_optimizations.txt")
    files = {p.name.removeprefix(stem): p for p in tmp_path.iterdir() if p.is_file()}
    count = len(compiled.program.ptx)  # type: ignore[attr-defined]
    for number in range(0, 2 * count, 2):
        text = files[f".{number}.ir-no-opt.ll"].read_text()
        assert 'target triple = "nvptx64-nvidia-cuda"' in text
        assert "define ptx_kernel" in files[f".{number + 1}.ir-with-opt.ll"].read_text()
        assert ".target sm_80" in files[f".{number + 1}.ptx"].read_text()
    assert f".{2 * count}.ir-no-opt.ll" not in files
    assert ".sm_8.0_gpu_after_optimizations.txt" in files
    assert ".sm_8.0_gpu_after_optimizations-buffer-assignment.txt" in files
    described = read_device(files[".gpu_target_config.pbtxt"].read_text())
    assert (described.name, described.l2_cache_size) == ("a100", device("a100").l2_cache_size)
    thunks = files[".thunk_sequence.txt"].read_text().splitlines()
    assert thunks[0].startswith("001: ")
    assert "[source       | next=002 (1)]" in thunks[0]
    assert any("kWhile" in line for line in thunks)
    assert any("grid: [" in line and "threads: [" in line for line in thunks)
    assert "| sink        ]" in thunks[-1]
