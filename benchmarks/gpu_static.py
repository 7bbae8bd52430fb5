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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mlirhlo  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES  # noqa: E402
from mlirhlo.lowering.gpu.devices import device  # noqa: E402
from mlirhlo.simulator import Machine  # noqa: E402
from mlirhlo.simulator.performance import modelled_time, occupancy, resources  # noqa: E402
from mlirhlo.simulator.report import Figures  # noqa: E402

Array = NDArray[Any]
GPU = "h100"
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
MAXIMUM = "maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }"


@dataclass(frozen=True)
class Function:
    """One function, as HLO and as a kernel of `tools/ptx_sources/triton_kernels.py`."""

    name: str
    hlo: str
    inputs: tuple[Array, ...]
    expected: Array
    triton: str
    """Name of the file, without the architecture."""
    sizes: tuple[int | float, ...]
    """Arguments of the Triton kernel behind its pointers."""
    grid: tuple[int, int]
    warps: int = 4
    tolerance: float = 1e-5


def functions() -> Iterator[Function]:
    """What is compared; all shapes are multiples of Triton's blocks."""
    randomness = np.random.default_rng(0)

    def normal(*shape: int, type_: Any = np.float32) -> Array:
        return randomness.standard_normal(shape).astype(type_)

    x = normal(64, 1024)
    weights = np.exp(x - x.max(1, keepdims=True))
    softmax = f"""HloModule softmax
{ADD}
{MAXIMUM}
ENTRY e {{
  x = f32[64,1024] parameter(0)
  low = f32[] constant(-inf)
  top = f32[64] reduce(x, low), dimensions={{1}}, to_apply=maximum
  tops = f32[64,1024] broadcast(top), dimensions={{0}}
  less = f32[64,1024] subtract(x, tops)
  w = f32[64,1024] exponential(less)
  zero = f32[] constant(0)
  sum = f32[64] reduce(w, zero), dimensions={{1}}, to_apply=add
  sums = f32[64,1024] broadcast(sum), dimensions={{0}}
  ROOT r = f32[64,1024] divide(w, sums)
}}"""
    result = weights / weights.sum(1, keepdims=True)
    yield Function(
        "softmax 64x1024", softmax, (x,), result, "softmax_fp32_1024", (1024, 1024), (64, 1), 8
    )

    scale, shift = normal(1024), normal(1024)
    norm = f"""HloModule layer_norm
{ADD}
ENTRY e {{
  x = f32[64,1024] parameter(0)
  scale = f32[1024] parameter(1)
  shift = f32[1024] parameter(2)
  zero = f32[] constant(0)
  part = f32[] constant(0.0009765625)
  parts = f32[64] broadcast(part), dimensions={{}}
  sum = f32[64] reduce(x, zero), dimensions={{1}}, to_apply=add
  mean = f32[64] multiply(sum, parts)
  means = f32[64,1024] broadcast(mean), dimensions={{0}}
  centred = f32[64,1024] subtract(x, means)
  square = f32[64,1024] multiply(centred, centred)
  squares = f32[64] reduce(square, zero), dimensions={{1}}, to_apply=add
  variance = f32[64] multiply(squares, parts)
  small = f32[] constant(1e-05)
  smalls = f32[64] broadcast(small), dimensions={{}}
  lifted = f32[64] add(variance, smalls)
  inverse = f32[64] rsqrt(lifted)
  inverses = f32[64,1024] broadcast(inverse), dimensions={{0}}
  unit = f32[64,1024] multiply(centred, inverses)
  scales = f32[64,1024] broadcast(scale), dimensions={{1}}
  shifts = f32[64,1024] broadcast(shift), dimensions={{1}}
  scaled = f32[64,1024] multiply(unit, scales)
  ROOT r = f32[64,1024] add(scaled, shifts)
}}"""
    result = (x - x.mean(1, keepdims=True)) / np.sqrt(
        x.var(1, keepdims=True) + 1e-5
    ) * scale + shift
    yield Function(
        "layer norm 64x1024",
        norm,
        (x, scale, shift),
        result,
        "layer_norm_fp32_1024",
        (1024,),
        (64, 1),
        4,
        1e-4,
    )

    for kind, type_, count, tolerance in (
        ("f32", np.float32, 65536, 1e-5),
        ("f64", np.float64, 16384, 1e-12),
    ):
        a, b = normal(count, type_=type_), normal(count, type_=type_)
        text = f"""HloModule elementwise
ENTRY e {{
  a = {kind}[{count}] parameter(0)
  b = {kind}[{count}] parameter(1)
  exp = {kind}[{count}] exponential(a)
  product = {kind}[{count}] multiply(exp, b)
  sin = {kind}[{count}] sine(a)
  ROOT r = {kind}[{count}] add(product, sin)
}}"""
        file = f"elementwise_fp{kind[1:]}_1024"
        result = np.exp(a) * b + np.sin(a)
        yield Function(
            f"exp(a) b + sin(a) {kind}",
            text,
            (a, b),
            result,
            file,
            (count,),
            (count // 1024, 1),
            4,
            tolerance,
        )

    m = normal(256, 1024)
    text = f"""HloModule column_sum
{ADD}
ENTRY e {{
  x = f32[256,1024] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[1024] reduce(x, zero), dimensions={{0}}, to_apply=add
}}"""
    yield Function(
        "column sum 256x1024",
        text,
        (m,),
        m.sum(0),
        "column_sum_fp32",
        (256, 1024),
        (16, 1),
        4,
        1e-4,
    )

    m = normal(256, 512)
    text = """HloModule transpose
ENTRY e {
  x = f32[256,512] parameter(0)
  ROOT r = f32[512,256] transpose(x), dimensions={1,0}
}"""
    yield Function(
        "transpose 256x512", text, (m,), m.T.copy(), "transpose_fp32", (256, 512), (8, 16)
    )

    yield from products(randomness)

    steps = randomness.integers(-3, 4, (32, 512)).astype(np.float32)
    text = f"""HloModule scan
{ADD}
ENTRY e {{
  x = f32[32,512] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[32,512] reduce-window(x, zero), window={{size=1x512 pad=0_0x511_0}}, to_apply=add
}}"""
    yield Function(
        "cumulative sum 32x512", text, (steps,), np.cumsum(steps, 1), "scan_fp32", (512,), (32, 1)
    )

    values = normal(4096)
    where = randomness.integers(0, 512, 4096).astype(np.int32)
    text = f"""HloModule scatter
{ADD}
ENTRY e {{
  x = f32[4096] parameter(0)
  where = s32[4096] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[512] broadcast(zero), dimensions={{}}
  ROOT r = f32[512] scatter(zeros, where, x), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}"""
    result = np.bincount(where, values, 512).astype(np.float32)
    yield Function(
        "scatter-add 4096 to 512",
        text,
        (values, where),
        result,
        "scatter_add_fp32",
        (4096,),
        (16, 1),
        4,
        1e-4,
    )

    keys = randomness.permutation(256).astype(np.int32)
    text = """HloModule sort
less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = s32[256] parameter(0)
  ROOT r = s32[256] sort(x), dimensions={0}, to_apply=less
}"""
    yield Function("sort 256", text, (keys,), np.sort(keys), "ordered_i32", (), (1, 1))


def products(randomness: np.random.Generator) -> Iterator[Function]:
    """Products of matrices of small integers, which every format holds; files are named after Triton's tiles."""
    for kind, m, n, k, file, tile in (
        ("f16", 128, 128, 256, "fp16_128_128_64", 128),
        ("bf16", 256, 256, 512, "bf16_64_64_32", 64),
        ("bf16", 256, 256, 512, "bf16_128_128_64", 128),
        ("f32", 128, 128, 256, "fp32_64_64_32", 64),
        ("f8e5m2", 128, 128, 256, "fp8e5_128_128_64", 128),
    ):
        type_ = PRIMITIVE_TYPES[kind].dtype
        left = randomness.integers(-2, 3, (m, k)).astype(type_)
        right = randomness.integers(-2, 3, (k, n)).astype(type_)
        # Triton rounds f32 to tf32.
        rounded = ", algorithm=dot_tf32_tf32_f32" if kind == "f32" else ""
        text = f"""HloModule product
ENTRY e {{
  a = {kind}[{m},{k}] parameter(0)
  b = {kind}[{k},{n}] parameter(1)
  ROOT r = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{rounded}
}}"""
        yield Function(
            f"product {kind} {m}x{n}x{k}",
            text,
            (left, right),
            left.astype(np.float32) @ right.astype(np.float32),
            f"matmul_{file}",
            (m, n, k),
            (m // tile, n // tile),
        )


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
    for name, values in ratios.items():
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
