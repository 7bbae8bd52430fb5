"""PTX as the code that a GPU loads: a cubin by NVIDIA's assembler, kept by content; else PTX itself."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from mlirhlo.diagnostics import error
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.ptx import nvidia_program
from mlirhlo.runtime.cache import default_cache


def code_for(ptx: str, device: GpuDevice) -> bytes:
    """A cubin out of the cache, or assembled and put there; PTX, which NVIDIA's driver assembles, without `ptxas`.

    Raises `HloError` HLO0805 for PTX that the assembler refuses.
    """
    program = nvidia_program("ptxas")
    if program is None:
        return ptx.encode() + b"\0"
    cache = default_cache()
    made_by = Path(program).stat()
    about = f"cubin {device.sm} {program} {made_by.st_size} {made_by.st_mtime_ns}\n"
    key = hashlib.sha256((about + ptx).encode()).hexdigest()
    found = None if cache is None else cache.get(key)
    if found is None:
        found = _assembled(program, ptx, device)
        if cache is not None:
            cache.put(key, found)
    return found


def _assembled(program: str, ptx: str, device: GpuDevice) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(ptx)
        command = [program, f"-arch={device.sm}", str(source), "-o", str(cubin)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            said = (run.stdout + run.stderr).replace(f"{folder}/", "").strip()
            raise error("HLO0805", f"ptxas: {said}")
        return cubin.read_bytes()
