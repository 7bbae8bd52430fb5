"""Kernels for GPUs beside Triton's of the same functions, without a card: instructions, traffic, registers.

    tools/ptx_of_others.py --peers=peers --out=peers/ptx      # Triton and ptxas by wheel
    python benchmarks/gpu_static.py --peers=peers --out=peers/ptx

Both run on the simulated GPU with the same inputs, and have to give what numpy gives. Instructions are those issued to
warps, sectors the pieces of 32 bytes of global memory that requests touch, `least` how many inputs and outputs have.
Registers and spills are ptxas', of all kernels the most; where it is not there, registers are estimated and spills are
not known. The time is that of the model in `mlirhlo/simulator/performance.py`, of all launches together.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gpu_functions import Function, functions  # noqa: E402

import mlirhlo  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.lowering.gpu.devices import device  # noqa: E402
from mlirhlo.simulator import Machine  # noqa: E402
from mlirhlo.simulator.performance import modelled_time, occupancy, resources  # noqa: E402
from mlirhlo.simulator.report import Figures  # noqa: E402

Array = NDArray[Any]
GPU = "h100"


@dataclass(frozen=True)
class Row:
    """What one compiler's code did."""

    figures: Figures
    launches: int
    registers: int
    spills: int | None
    nanoseconds: float
    """Modelled, of all launches."""
    seconds: float
    """Of compiling; 0 for code that was compiled before."""


def ours(function: Function) -> Row:
    """The function by this compiler. Raises `HloError`, or AssertionError for a wrong result."""
    start = time.process_time()
    executable: Any = mlirhlo.compile(mlirhlo.parse(function.hlo), platform="gpu", gpu=GPU)
    seconds = time.process_time() - start
    result = np.asarray(executable(*function.inputs))
    np.testing.assert_allclose(
        result, function.expected, rtol=function.tolerance, atol=function.tolerance
    )
    kernels = executable.costs()
    total = Figures()
    for one in kernels:
        total = total + one.kernel.figures
    return Row(
        total,
        sum(one.kernel.launches for one in kernels),
        max(one.resources.registers for one in kernels),
        max((one.resources.spill_bytes or 0 for one in kernels), default=0),
        sum(one.nanoseconds for one in kernels),
        seconds,
    )


def theirs(function: Function, folder: Path) -> Row:
    """The function by Triton."""
    text = (folder / f"triton_{function.triton}_sm90.ptx").read_text()
    machine = Machine("sm_90a")
    addresses: list[int] = []
    output = np.zeros_like(function.expected)
    for array in (*function.inputs, output):
        addresses.append(machine.allocate(array.nbytes))
        machine.write(addresses[-1], array)
    program = machine.load(text, function.triton)
    entry = text.split(".entry ")[1].split("(")[0]
    arguments = (*addresses, *function.sizes, 0, 0)
    block = 32 * function.warps
    report = machine.launch(program, entry, function.grid, block, arguments, shared_bytes=227 << 10)
    result = machine.read(addresses[-1], output.nbytes).view(output.dtype).reshape(output.shape)
    np.testing.assert_allclose(
        result, function.expected, rtol=function.tolerance, atol=function.tolerance
    )
    gpu = device(GPU)
    need = resources(text, gpu, {})[entry]
    blocks = function.grid[0] * function.grid[1]
    time = modelled_time(gpu, blocks, report.figures, occupancy(gpu, block, need))
    return Row(report.figures, 1, need.registers, need.spill_bytes, time.nanoseconds, 0.0)


def least_sectors(function: Function) -> int:
    """Sectors of the inputs, read once, and of the output, written once."""
    return sum(-(-array.nbytes // 32) for array in (*function.inputs, function.expected))


HEAD = (
    f"{'':24}{'instructions':>14}{'sectors/least':>15}{'conflicts':>10}{'registers':>10}{'spills':>7}"
    f"{'kernels':>8}{'model':>9}{'compile':>9}"
)


def line(name: str, row: Row, least: int) -> str:
    """One compiler's figures."""
    figures = row.figures
    spills = "-" if row.spills is None else row.spills
    compile_time = f"{row.seconds:8.2f}s" if row.seconds else ""
    return (
        f"  {name:22}{figures.warp_instructions:14,}{figures.global_memory.sectors / least:15.2f}"
        f"{figures.shared_memory.bank_conflicts:10,}{row.registers:>10}{spills:>7}{row.launches:8}"
        f"{row.nanoseconds / 1000:6.1f} µs{compile_time}"
    )


def compare(chosen: Sequence[Function], folder: Path) -> None:
    """Prints the table, and the ratios."""
    print(HEAD)
    ratios: dict[str, list[float]] = {
        name: [] for name in ("instructions", "sectors", "registers", "modelled time")
    }
    for function in chosen:
        print(function.name)
        least = least_sectors(function)
        peer = theirs(function, folder)
        try:
            own = ours(function)
        except (HloError, AssertionError) as problem:
            print(f"  no result: {str(problem).strip().splitlines()[0]}")
            print(line("Triton", peer, least))
            continue
        print(line("mlirhlo", own, least))
        print(line("Triton", peer, least))
        ratios["instructions"].append(
            own.figures.warp_instructions / peer.figures.warp_instructions
        )
        ratios["sectors"].append(
            own.figures.global_memory.sectors / peer.figures.global_memory.sectors
        )
        ratios["registers"].append(own.registers / peer.registers)
        ratios["modelled time"].append(own.nanoseconds / peer.nanoseconds)
    for name, values in ratios.items():  # of those that both have
        if values:
            print(
                f"{name}: mlirhlo ÷ Triton, median {statistics.median(values):.2f}, most {max(values):.2f}"
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of Triton's PTX")
    parser.add_argument("--peers", type=Path, help="a virtual environment with ptxas")
    parser.add_argument("--only", default="", help="a part of the name")
    options = parser.parse_args()
    if options.peers is not None:
        folders = [
            str(path.parent)
            for path in options.peers.glob("lib/python*/site-packages/nvidia/cu*/bin/ptxas")
        ]
        os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    compare([one for one in functions() if options.only in one.name], options.out)


if __name__ == "__main__":
    main()
