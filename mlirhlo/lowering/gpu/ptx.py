"""From the llvm dialect to PTX, by LLVM in processes of its own; and NVIDIA's assembler, where it is installed.

LLVM ends the process where it meets what a target cannot do, so that none of it runs in this one.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError, error
from mlirhlo.lowering.children import Pool, answer_requests
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.llvm_text import print_llvm

TRIPLE = "nvptx64-nvidia-cuda"
_pool = Pool("from mlirhlo.lowering.gpu.ptx import serve; serve()")


def to_llvm_text(nvvm: ModuleOp, device: GpuDevice) -> str:
    """LLVM assembly of a module of the llvm dialect for a device."""
    major, minor = device.ptx_version
    head = f'; for {device.sm}, PTX {major}.{minor}\ntarget triple = "{TRIPLE}"\n'
    return head + print_llvm(nvvm)


def to_ptx(llvm_text: str, device: GpuDevice, *, optimize: bool = True) -> str:
    """PTX of LLVM assembly; `optimize` runs LLVM's passes over it first. Raises `HloError` HLO0803."""
    return all_to_ptx([llvm_text], device, optimize=optimize)[0]


def all_to_ptx(llvm_texts: Sequence[str], device: GpuDevice, *, optimize: bool = True) -> list[str]:
    """PTX of each text, several at once. Raises `HloError` HLO0803."""
    return _all(llvm_texts, device, 1 if optimize else 0)


def optimized_llvm(llvm_text: str, device: GpuDevice) -> str:
    """The assembly after LLVM's passes. Raises `HloError` HLO0803."""
    return _all([llvm_text], device, _TEXT_ONLY)[0]


_TEXT_ONLY = 2
"""Request for the optimised assembly in place of PTX."""


def _all(texts: Sequence[str], device: GpuDevice, request: int) -> list[str]:
    count = min(len(texts), os.cpu_count() or 1)
    _pool.grow(count)
    major, minor = device.ptx_version
    head = f"{device.sm} +ptx{major}{minor}\n"

    def made(text: str) -> str:
        with _pool.worker() as worker:
            try:
                is_failure, data = worker.call(request, (head + text).encode())
            except (EOFError, OSError):
                worker.stop()
                raise _failure("LLVM ended the process that generated PTX") from None
        if is_failure:
            raise _failure(f"LLVM refuses the code: {data.decode()}")
        return data.decode()

    if count <= 1:
        return [made(text) for text in texts]
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(made, texts))


def _failure(message: str) -> HloError:
    return error(
        "HLO0803",
        message,
        help="this is a fault of the lowering, not of the program; please report it",
    )


# ---------------------------------------------------------------- the worker's side


def serve() -> None:
    """The worker's side: generates PTX of what comes in."""
    answer_requests(_answer)


@functools.lru_cache(maxsize=1024)
def _target_machine(sm: str, features: str) -> Any:
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.set_option("", "--nvptx-short-ptr")  # pointers into shared memory have 32 bits
    # Blocks stay in the order in which threads that have parted meet again; ptxas places them anyway.
    llvm.set_option("", "--disable-block-placement")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu=sm, features=features, opt=3)


def _answer(request: int, data: bytes) -> tuple[int, bytes]:
    llvm: Any = importlib.import_module("llvmlite.binding")
    head, _, text = data.decode().partition("\n")
    try:
        machine = _target_machine(*head.split())
        module = llvm.parse_assembly(text)
        module.data_layout = str(machine.target_data)
        module.verify()
        if request:
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            # Vectors are what the kernels say; one thread's loops are no place for more.
            options.loop_vectorization = options.slp_vectorization = False
            options.loop_unrolling = False
            passes = llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
        made = str(module) if request == _TEXT_ONLY else machine.emit_assembly(module)
    except RuntimeError as problem:
        return 1, str(problem).strip().encode()
    return 0, made.encode()


# ---------------------------------------------------------------- NVIDIA's assembler


@dataclass(frozen=True, slots=True)
class Assembled:
    """What ptxas says about an entry point."""

    entry: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack_bytes: int
    shared_bytes: int


def ptxas(ptx: str, device: GpuDevice) -> tuple[Assembled, ...] | None:
    """What NVIDIA's assembler makes of each entry point; None where it is not installed.

    It is looked for in the wheel `nvidia-cuda-nvcc` and on the PATH. Raises `HloError` HLO0805 for PTX it refuses.
    """
    program = nvidia_program("ptxas")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "k.ptx")
        source.write_text(ptx)
        command = [program, "-v", f"-arch={device.sm}", str(source), "-o", str(Path(folder, "k.o"))]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (run.stdout + run.stderr).replace(f"{folder}{os.sep}", "")
    if run.returncode:
        raise error("HLO0805", f"ptxas: {said.strip()}")
    return tuple(_reports(said))


@functools.lru_cache(maxsize=1024)
def nvidia_program(name: str) -> str | None:
    """The path of one of NVIDIA's tools."""
    return nvidia_file(f"bin/{name}") or shutil.which(name)


def nvidia_file(pattern: str) -> str | None:
    """The path of a file in NVIDIA's wheels, below the folder of one of them."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(folder).glob(f"*/{pattern}")):
            return str(path)
    return None


def _reports(said: str) -> list[Assembled]:
    found: list[Assembled] = []
    for part in said.split("Compiling entry function '")[1:]:
        numbers = {
            key: int(match[1]) if (match := re.search(pattern, part)) else 0
            for key, pattern in _NUMBERS.items()
        }
        found.append(Assembled(part.partition("'")[0], **numbers))
    return found


_NUMBERS = {
    "registers": r"Used (\d+) registers",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "stack_bytes": r"(\d+) bytes stack frame",
    "shared_bytes": r"(\d+) bytes smem",
}
