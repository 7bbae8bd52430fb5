"""Kernels and global traffic of programs, with the rules of fusion alone and with the model of the described GPU.

    python benchmarks/gpu_fusion.py [--gpu=h100] [--only=PATTERN] [--variants=hlo,gpu_opt] [--run] [FILE…]

Of each program of the corpus, or each file: launches, megabytes to and from global memory and modelled time, every
kernel counted once, after `fusion` (left) and after `gpu-fusion` (right); and the processor time of all passes. With
`--run`, launches and megabytes are those of the simulated GPU on made-up inputs, loops and all. The exit status is 1
when the modelled time of a program becomes more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import cpu_coverage  # noqa: E402

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo.module import HloModule  # noqa: E402
from mlirhlo.lowering.gpu.devices import GpuDevice, device  # noqa: E402
from mlirhlo.lowering.gpu.fusion import modelled_cost  # noqa: E402
from mlirhlo.lowering.gpu.pipeline import optimize  # noqa: E402

PASS = "gpu-fusion"


@dataclass(frozen=True)
class Figures:
    """Of one pipeline on one program."""

    launches: int
    megabytes: float
    modelled_us: float
    seconds: float


def modelled(module: Any, gpu: GpuDevice, wanted: Callable[[str], bool]) -> Figures:
    """By the model of the device."""
    start = time.process_time()
    fused = HloModule(optimize(module, wanted=wanted, device=gpu))
    seconds = time.process_time() - start
    cost = modelled_cost(fused, gpu)
    return Figures(len(cost.launches), cost.memory_bytes / 1e6, cost.time(gpu) / 1e3, seconds)


def simulated(module: Any, gpu: GpuDevice, wanted: Callable[[str], bool]) -> tuple[int, float]:
    """Launches and megabytes of a run."""
    from mlirhlo.interp.fake_data import make_fake_arguments
    from mlirhlo.lowering.gpu.compiler import compile_gpu
    from mlirhlo.runtime.cuda.executable import GpuExecutable
    from mlirhlo.runtime.cuda.simulated import SimulatedDriver

    program = compile_gpu(module, gpu, wanted=wanted)
    executable = GpuExecutable(program, SimulatedDriver(gpu, checks=False))
    executable(*make_fake_arguments(module))
    figures = executable.figures
    sectors = sum(f.figures.global_memory.sectors for f in figures)
    return sum(f.launches for f in figures), 32 * sectors / 1e6


def modules(files: Sequence[str], variants: str, only: str) -> Iterator[tuple[str, Any]]:
    """Names and modules."""
    from mlirhlo.cli import inputs
    from mlirhlo.formats import load

    for path in files:
        yield Path(path).name, inputs.as_hlo(load(path)).module
    if not files:
        for entry, variant in cpu_coverage.programs(variants.split(","), only, kernels=False):
            path = cpu_coverage.CORPUS / entry["files"][cpu_coverage.VARIANTS[variant]]
            yield f"{entry['name']}.{variant}", inputs.as_hlo(load(str(path))).module


def _line(name: str, pairs: Sequence[Sequence[float]]) -> str:
    columns = "".join(
        f"{before:12,.{digits}f}{after:10,.{digits}f}"
        for (before, after), digits in zip(pairs, (0, 3, 1, 2), strict=True)
    )
    return f"{name:36}{columns}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="modules, in place of the corpus")
    parser.add_argument("--gpu", default="h100", help="the device")
    parser.add_argument("--only", default="", help="programs whose name the pattern finds")
    parser.add_argument("--variants", default="hlo", help="of the corpus' modules [hlo]")
    parser.add_argument("--run", action="store_true", help="count on the simulated GPU")
    options = parser.parse_args()
    gpu, worse = device(options.gpu), 0
    sums = [[0.0, 0.0] for _ in range(4)]
    print(f"{'':36}{'launches':>22}{'MB':>22}{'modelled us':>22}{'passes s':>22}")
    for name, module in modules(options.files, options.variants, options.only):
        rows: list[list[float]] = []
        for wanted in (lambda n: n != PASS, lambda n: True):
            try:
                row = list(astuple(modelled(module, gpu, wanted)))
                row[:2] = simulated(module, gpu, wanted) if options.run else row[:2]
            except HloError as problem:
                print(f"{name:36} {problem.diagnostics[0].code}")
                break
            rows.append(row)
        if len(rows) == 2:
            pairs = list(zip(*rows, strict=True))
            worse += pairs[2][1] > pairs[2][0] + 1e-3
            sums = [[a + c, b + d] for (a, b), (c, d) in zip(sums, pairs, strict=True)]
            print(_line(name, pairs), flush=True)
    print(_line("all", sums))
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
