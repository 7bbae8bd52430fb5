"""Machine code of NVIDIA's GPUs as text, by NVIDIA's own tools where they are installed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from mlirhlo.diagnostics import error
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.ptx import nvidia_program


def to_sass(ptx: str, device: GpuDevice) -> str:
    """What `ptxas` assembles, disassembled by `nvdisasm`.

    Raises `HloError` HLO0805 for PTX that is refused, HLO0815 where the tools are not installed.
    """
    tools = {name: nvidia_program(name) for name in ("ptxas", "nvdisasm")}
    missing = [name for name, path in tools.items() if path is None]
    if missing:
        raise error(
            "HLO0815",
            f"machine code of GPUs needs {' and '.join(missing)}",
            help="pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm, or install the CUDA toolkit",
        )
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(ptx)
        _run([str(tools["ptxas"]), f"-arch={device.sm}", str(source), "-o", str(cubin)], folder)
        return _run([str(tools["nvdisasm"]), str(cubin)], folder)


def _run(command: list[str], folder: str) -> str:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        said = (run.stdout + run.stderr).replace(f"{folder}/", "").strip()
        raise error("HLO0805", f"{Path(command[0]).name}: {said}")
    return run.stdout
