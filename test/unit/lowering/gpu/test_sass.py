"""Machine code of GPUs, by NVIDIA's tools where they are installed; an error that names them where not."""

from __future__ import annotations

import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.gpu import sass
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.ptx import nvidia_program

PTX = """.version 7.8
.target sm_80
.address_size 64
.visible .entry store(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 7;
  ret;
}
"""
HAS_TOOLS = all(map(nvidia_program, ("ptxas", "nvdisasm")))


@pytest.mark.skipif(
    not HAS_TOOLS, reason="needs ptxas and nvdisasm: nvidia-cuda-nvcc, nvidia-cuda-nvdisasm"
)
@pytest.mark.parametrize("gpu", ["a100", "h100", "b200"])
def test_machine_code(gpu: str) -> None:
    text = sass.to_sass(PTX.replace("sm_80", device(gpu).sm).replace("7.8", "8.7"), device(gpu))
    assert ".text.store" in text
    assert "STG" in text
    with pytest.raises(HloError, match=r"HLO0805.*ptxas"):
        sass.to_sass(PTX.replace("st.global.u32", "st.global.u33"), device(gpu))


@pytest.mark.parametrize("missing", ["ptxas", "nvdisasm"])
def test_missing_tools_are_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {"ptxas": "/bin/true", "nvdisasm": "/bin/true", missing: None}
    monkeypatch.setattr(sass, "nvidia_program", paths.__getitem__)
    with pytest.raises(HloError, match=f"HLO0815.*needs {missing}\n"):
        sass.to_sass(PTX, device("a100"))
