"""Dumps of the GPU compiler have XLA:GPU's names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.lowering.gpu.devices import device, read_device, write_device

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
    constants = files[".constants.ir-no-opt.ll"].read_text()
    assert "@buffer_for_constant_0 = addrspace(1) global [4 x i8] zeroinitializer" in constants
    assert ".global .align" in files[f".{2 * count}.ptx"].read_text()
    assert "buffer_for_constant_0" in files[f".{2 * count}.ir-with-opt.ll"].read_text()
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
    metadata = files[".thunk_metadata.txt"].read_text()
    assert metadata.count("thunk_metadata {") == len(thunks)
    names = {op.instruction_name for op in HloModule(compiled.program.fused).instructions}  # type: ignore[attr-defined]
    said = re.findall(r'profile_annotation: "([^"]+)"', metadata)
    assert said
    assert set(said) <= names
    assert f"thunk_id: {len(thunks)}\n" in metadata


def test_every_name_of_xla_is_written(tmp_path: Path) -> None:
    """All files of XLA:GPU's default dump, but those of what is not done here: partitioning and autotuning."""
    listing = Path(__file__).parents[2] / "data/dumps/listings/gpu_default.names.txt"
    stem = "module_0001.jit_mlp."
    wanted = {line.removeprefix(stem) for line in listing.read_text().split()}
    wanted -= {"after_spmd_partitioner.txt", "autotune_results.pbtxt", "config.pbtxt"}
    text = TEXT.replace("HloModule two", "HloModule jit_mlp")
    options = {"xla_dump_to": str(tmp_path)}
    mlirhlo.compile(mlirhlo.parse(text), "gpu", gpu="h100", options=options)
    found = {p.name.split("jit_mlp.", 1)[1] for p in tmp_path.iterdir() if "jit_mlp." in p.name}
    assert not {n for n in wanted - found if not n[0].isdigit()}


def test_code_is_taken_from_files(tmp_path: Path) -> None:
    """What was dumped and changed is compiled, or launched, in place of the compiler's."""
    text = "HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT r = f32[8] add(x, x) }"
    x = np.arange(8, dtype=np.float32)
    for ending, flag in ((".ir-no-opt.ll", "xla_gpu_llvm_ir_file"), (".ptx", "xla_gpu_ptx_file")):
        folder = tmp_path / flag
        mlirhlo.compile(
            mlirhlo.parse(text), "gpu", gpu="a100", options={"xla_dump_to": str(folder)}
        )
        (path,) = folder.glob(f"*[01]{ending}")
        code = path.read_text()
        edited = re.sub(
            r"\bfadd\b|\badd(?=\.[a-z.]*f32)", lambda m: m[0].replace("add", "sub"), code
        )
        assert edited != code
        path.write_text(edited)
        compiled = mlirhlo.compile(
            mlirhlo.parse(text), "gpu", gpu="a100", options={flag: str(path)}
        )
        np.testing.assert_array_equal(compiled(x), np.zeros(8))


def test_the_device_is_taken_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "device.pbtxt"
    path.write_text(write_device(device("rtx5090")).replace("core_count: 170", "core_count: 17"))
    options = {"xla_gpu_target_config_filename": str(path)}
    text = "HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT r = f32[8] add(x, x) }"
    compiled = mlirhlo.compile(mlirhlo.parse(text), "gpu", options=options)
    described = compiled.program.device  # type: ignore[attr-defined]
    assert (described.sm, described.core_count) == ("sm_120a", 17)
    path.write_text("not a device")
    with pytest.raises(HloError, match="HLO0801"):
        mlirhlo.compile(mlirhlo.parse(text), "gpu", options=options)
