"""Compiles every module of the corpus to PTX and has NVIDIA's assembler take it: registers, spills, what is refused.

    pip install nvidia-cuda-nvcc
    python tools/gpu_assemble.py                              # for a100, h100 and b200
    python tools/gpu_assemble.py --gpu=sm_80 --only='softmax|dot'

Kernels whose PTX is the same are assembled once for each device. The exit status is 1 when the assembler refuses a
kernel or one spills registers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import cpu_coverage

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.gpu.compiler import compile_gpu
from mlirhlo.lowering.gpu.devices import GpuDevice, device
from mlirhlo.lowering.gpu.ptx import nvidia_program, ptxas


def main(argv: Sequence[str] | None = None) -> int:
    """Assembles what the command line asks for and prints the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", default="a100,h100,b200", help="devices [a100,h100,b200]")
    parser.add_argument("--variants", default="hlo,gpu_opt", help="of modules [hlo,gpu_opt]")
    parser.add_argument("--only", default="", help="programs whose name the pattern finds")
    parser.add_argument("--every", type=int, default=1, help="take one module in so many [1]")
    options = parser.parse_args(argv)
    if nvidia_program("ptxas") is None:
        print("ptxas is not installed: pip install nvidia-cuda-nvcc", file=sys.stderr)
        return 2
    modules = list(cpu_coverage.programs(options.variants.split(","), options.only, kernels=False))[
        :: options.every
    ]
    bad = 0
    for name in options.gpu.split(","):
        gpu = device(name)
        counts = _Counts()
        for entry, variant in modules:
            path = cpu_coverage.CORPUS / entry["files"][cpu_coverage.VARIANTS[variant]]
            counts.add(path, f"{entry['name']}.{variant}", gpu)
        print(
            f"{gpu.sm}: {len(counts.registers)} kernels of {counts.modules} modules, {counts.refused} refused, "
            f"{counts.spilling} spill, at most {max(counts.registers, default=0)} registers; "
            f"{counts.without} modules without code",
            flush=True,
        )
        bad += counts.refused + counts.spilling
    return int(bad > 0)


class _Counts:
    """What the assembler says of the kernels for one device."""

    def __init__(self) -> None:
        self.modules = self.refused = self.spilling = self.without = 0
        self.registers: list[int] = []
        self._seen: set[str] = set()

    def add(self, path: Path, name: str, gpu: GpuDevice) -> None:
        """Compiles and assembles a module."""
        try:
            texts = compile_gpu(mlirhlo.load(path).op, gpu).ptx
        except HloError as problem:
            self.without += 1
            print(f"{gpu.sm} {name}: {problem.diagnostics[0].code}", flush=True)
            return
        self.modules += 1
        for kernel, text in texts.items():
            if text in self._seen:
                continue
            self._seen.add(text)
            try:
                reports = ptxas(text, gpu) or ()
            except HloError as problem:
                self.refused += 1
                print(f"{gpu.sm} {name} {kernel}: {problem.diagnostics[0].message}", flush=True)
                continue
            for report in reports:
                self.registers.append(report.registers)
                if report.spill_stores or report.spill_loads:
                    self.spilling += 1
                    print(
                        f"{gpu.sm} {name} {report.entry}: {report.spill_stores} bytes of spills",
                        flush=True,
                    )


if __name__ == "__main__":
    sys.exit(main())
