#!/usr/bin/env python3
"""Runs kernels that nvcc and Triton compiled on the simulated GPU, and compares with what their source computes.

    tools/ptx_of_others.py --peers=peers --out=peers/ptx
    tools/ptx_agreement.py --out=peers/ptx

The sources are those of `tools/ptx_sources`; numpy computes the same.
"""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.ptx import ModuleOp  # noqa: E402
from mlirhlo.formats.ptx import parse_ptx  # noqa: E402
from mlirhlo.simulator import Machine  # noqa: E402

Array = NDArray[Any]
COUNT = 256
BLOCK = 128


@dataclass(frozen=True)
class Case:
    """A kernel with its arguments, and what it has to write."""

    file: str
    kernel: str
    """Its name, or the beginning of its mangled name."""
    arguments: tuple[Array | int | float, ...]
    """Arrays are in memory; those of `expected` are written."""
    expected: dict[int, Array]
    """By the number of the argument."""
    tolerance: float = 0.0
    grid: tuple[int, int] = (COUNT // BLOCK, 1)
    block: tuple[int, int] = (BLOCK, 1)
    shared_bytes: int = 0
    finding: str = ""
    """Code of what is rightly found in the kernel."""


def _truncated(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _truncated,
    "rem": lambda x, y: x - y * _truncated(x, y),
    "shift": lambda x, y: (x << (y & 7)) ^ (x >> (y & 3)),
    "logic": lambda x, y: (x & y) | (~x ^ y),
    "min_max": lambda x, y: min(x, y) + max(x, 3),
}


def integers(randomness: np.random.Generator) -> Iterator[Case]:
    """Arithmetic of every integer type."""
    for bits in (8, 16, 32, 64):
        for sign in ("", "u"):
            name = f"{sign}int{bits}"
            info = np.iinfo(name)
            x = randomness.integers(info.min, info.max, COUNT, name, endpoint=True)
            y = randomness.integers(info.min // 3, info.max // 3, COUNT, name, endpoint=True)
            y[y == 0] = 7
            for operation, compute in INTEGER.items():
                values = [compute(int(a), int(b)) % (1 << bits) for a, b in zip(x, y, strict=True)]
                result = np.array(values, np.uint64).astype(f"uint{bits}").view(name)
                out = np.zeros(COUNT, name)
                yield Case("arithmetic", f"{operation}_{name}_t", (x, y, out, COUNT), {2: result})
            for kind in ("float32", "float64"):
                case = f"to_f{kind[5:]}_{name}_t"
                yield Case("arithmetic", case, (x, np.zeros(COUNT, kind)), {1: x.astype(kind)})


MATH: dict[str, Callable[[float], float]] = {
    **{
        name: getattr(math, name)
        for name in ("sin", "cos", "tan", "exp", "expm1", "log", "log2", "log1p")
    },
    **{
        name: getattr(math, name)
        for name in ("sqrt", "tanh", "sinh", "atan", "asin", "erf", "erfc")
    },
    **{name: getattr(math, name) for name in ("lgamma", "floor", "ceil", "trunc", "fabs")},
    "exp2": lambda x: 2.0**x,
    "rsqrt": lambda x: x**-0.5,
    "cbrt": lambda x: x ** (1 / 3),
    "tgamma": math.gamma,
    "rint": round,
    "round": lambda x: math.floor(x + 0.5),
    "logb": lambda x: math.frexp(x)[1] - 1,
}


def floats(randomness: np.random.Generator) -> Iterator[Case]:
    """Arithmetic, comparisons, conversions and functions of f32 and f64."""
    for kind, name, tolerance in (("float32", "float", 2e-6), ("float64", "double", 1e-14)):
        x = randomness.uniform(0.1, 0.9, COUNT).astype(kind)
        y = np.where(randomness.random(COUNT) < 0.2, x, randomness.uniform(-2, 2, COUNT)).astype(
            kind
        )
        out, flags = np.zeros(COUNT, kind), np.zeros(COUNT, np.int32)
        compared = (x < y) + 2 * (x == y) + 4 * (x >= y)
        large = (x * 1000).astype(kind)
        for case, result in (("add", x + y), ("div", x / y)):
            yield Case("arithmetic", f"{case}_{name}", (x, y, out, COUNT), {2: result})
        yield Case("arithmetic", f"fused_{name}", (x, y, out, COUNT), {2: x * y + x}, tolerance)
        expected = compared.astype(np.int32)
        yield Case("arithmetic", f"compare_{name}", (x, y, flags, COUNT), {2: expected})
        for case, type_ in (
            ("to_int", np.int32),
            ("to_uint64", np.uint64),
            ("to_half", np.float16),
        ):
            result = large.astype(type_)
            yield Case("arithmetic", f"{case}_{name}", (large, np.zeros(COUNT, type_)), {1: result})
        for function, compute in MATH.items():
            if (kind, function) == ("float32", "lgamma"):
                continue  # near its zeros its relative error is large
            result = np.array([compute(float(value)) for value in x], kind)
            case = f"f{kind[5:]}_{function}"
            yield Case(
                "arithmetic", case, (x, out), {1: result}, max(tolerance, 8e-6 * (name == "float"))
            )
        if name == "float":
            for case, result in (
                ("pow", x**y), ("atan2", np.arctan2(x, y)), ("fmod", np.fmod(x, y)),
                ("hypot", np.hypot(x, y)), ("copysign", np.copysign(x, y)),
            ):  # fmt: skip
                yield Case("arithmetic", f"f32_{case}", (x, y, out, COUNT), {2: result}, 4e-6)


def bits(randomness: np.random.Generator) -> Iterator[Case]:
    """Counting, reversing and products of bits."""
    x = randomness.integers(1, 1 << 32, COUNT, np.uint32)
    text = [f"{value:032b}" for value in x.tolist()]
    values = [
        one.count("1") + one.index("1") + 32 - one.rindex("1") + int(one[::-1], 2) for one in text
    ]
    expected = (np.array(values, np.uint64) & 0xFFFFFFFF).astype(np.uint32)
    yield Case("arithmetic", "bits32", (x, np.zeros(COUNT, np.uint32)), {1: expected})
    a = randomness.integers(0, 1 << 63, 3, np.uint64)
    total = int(a[0]) * int(a[1]) + int(a[2])
    out = np.array([total >> 64, total & (1 << 64) - 1], np.uint64)
    yield Case(
        "arithmetic",
        "wide_products",
        (a, np.zeros(2, np.uint64)),
        {1: out},
        grid=(1, 1),
        block=(1, 1),
    )


def _collatz(value: int) -> int:
    steps = 0
    while value != 1:
        value, steps = (3 * value + 1 if value & 1 else value // 2), steps + 1
    return steps


def programs(randomness: np.random.Generator) -> Iterator[Case]:
    """Loops, shared memory, shuffles, atomics."""
    numbers = randomness.integers(1, 500, COUNT).astype(np.uint32)
    steps = np.array([_collatz(int(value)) for value in numbers], np.uint32)
    yield Case("control", "collatz", (numbers, np.zeros(COUNT, np.uint32)), {1: steps})
    row = randomness.standard_normal((4, 300)).astype(np.float32)
    exponentials = np.exp(row - row.max(1, keepdims=True))
    softmax = exponentials / exponentials.sum(1, keepdims=True)
    yield Case(
        "control", "softmax", (row, np.zeros_like(row), 300), {1: softmax}, 1e-5, (4, 1), (128, 1)
    )
    scale, shift = (randomness.standard_normal(300).astype(np.float32) for _ in range(2))
    variance = row.var(1, keepdims=True)
    norm = (row - row.mean(1, keepdims=True)) / np.sqrt(variance + 1e-5) * scale + shift
    arguments = (row, scale, shift, np.zeros_like(row), 300)
    yield Case("control", "layer_norm", arguments, {3: norm}, 1e-4, (4, 1), (32, 1))
    yield Case(
        "memory",
        "block_sum",
        (row, np.zeros(4, np.float32), 300),
        {1: row.sum(1)},
        1e-4,
        (4, 1),
        (128, 1),
        512,
    )
    data = randomness.integers(0, 256, 3000).astype(np.uint8)
    counts = np.bincount(data, minlength=256).astype(np.int32)
    yield Case(
        "control",
        "histogram",
        (data, np.zeros(256, np.int32), 3000),
        {1: counts},
        0,
        (3, 1),
        (256, 1),
    )
    for name, type_ in (("i", np.int32), ("f", np.float32)):
        values = randomness.integers(-50, 50, 512).astype(type_)
        yield Case(
            "control", f"_Z7bitonicI{name}", (values,), {0: np.sort(values)}, 0, (1, 1), (256, 1)
        )
        values = values[:200]
        sums = np.cumsum(values).astype(type_)
        yield Case("control", f"_Z4scanI{name}", (values, 200), {0: sums}, 0, (1, 1), (256, 1))
    for length in (4, 32):
        for code, type_ in (("f", np.float32), ("d", np.float64), ("i", np.int32), ("x", np.int64)):
            x = (
                randomness.uniform(-1, 1, COUNT).astype(type_)
                if code in "fd"
                else numbers.astype(type_) % 7
            )
            value = np.ones(COUNT, type_)
            for step in range(length):
                value = value * x + type_(step)
            tolerance = {"f": 2e-5, "d": 1e-12}.get(code, 0.0)
            case = f"_Z10polynomialI{code}Li{length}E"
            yield Case("control", case, (x, np.zeros(COUNT, type_)), {1: value}, tolerance)
    for size in (16, 32):
        a = randomness.standard_normal((64, 64)).astype(np.float32)
        tiles = (64 // size, 64 // size)
        arguments = (a, np.zeros_like(a), 64)
        yield Case("memory", f"_Z9transposeILi{size}E", arguments, {1: a.T}, 0, tiles, (size, 8))
    for code, type_, tile in (("f", np.float32, 16), ("d", np.float64, 8), ("i", np.int32, 32)):
        a, b = (randomness.integers(-9, 9, (64, 64)).astype(type_) for _ in range(2))
        arguments = (a, b, np.zeros_like(a), 64)
        tiles = (64 // tile, 64 // tile)
        yield Case("memory", f"_Z7productI{code}", arguments, {2: a @ b}, 0, tiles, (tile, tile))
    lanes = randomness.integers(0, 100, 32).astype(np.uint32)
    most = np.full(32, lanes.max(), np.int32)
    reduced = lanes.sum() + lanes.min() + np.bitwise_xor.reduce(lanes)
    expected = {0: np.full(32, reduced, np.uint32), 1: most}
    yield Case("memory", "redux", (lanes, lanes.astype(np.int32)), expected, 0, (1, 1), (32, 1))
    source = randomness.standard_normal(1024).astype(np.float32)
    swapped = source.reshape(-1, 4)[np.arange(256) ^ 1].reshape(-1)
    yield Case(
        "asynchronous", "staged_copy", (source, np.zeros(1024, np.float32)), {1: swapped}, 0, (1, 1)
    )
    filled = np.where(np.arange(128) < 77, source[:128], 0).astype(np.float32)
    arguments = (source[:128].copy(), np.zeros(128, np.float32), 77)
    yield Case("asynchronous", "zero_filled_copy", arguments, {1: filled}, 0, (1, 1))


def _e8(values: Array) -> Array:
    """f32 values as the upper half of their bits, bfloat16."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def of_triton(randomness: np.random.Generator, architecture: int) -> Iterator[Case]:
    """Kernels of `triton_kernels.py`; two pointers to scratch memory follow the arguments."""

    def case(
        name: str,
        arguments: tuple[Array | int | float, ...],
        expected: dict[int, Array],
        tolerance: float,
        grid: tuple[int, int],
        warps: int = 4,
    ) -> Case:
        file = f"triton_{name}_sm{architecture}"
        # Lanes whose sums a fused multiply-add has made differ in the last place store to one address.
        finding = "HLO0776" if re.fullmatch(r"layer_norm_.*_128", name) else ""
        scratch = (*arguments, 0, 0)
        block = 32 * warps, 1
        return Case(file, "", scratch, expected, tolerance, grid, block, 227 << 10, finding)

    for block in (128, 1024):
        n = block - 28
        rows = randomness.standard_normal((3, n))
        for kind, type_, tolerance in (
            ("fp32", np.float32, 1e-5),
            ("fp16", np.float16, 2e-3),
            ("fp64", np.float64, 1e-5),
        ):
            x = rows.astype(type_)
            value = x.astype(np.float64)
            softmax = np.exp(value - value.max(1, keepdims=True))
            softmax = (softmax / softmax.sum(1, keepdims=True)).astype(type_)
            yield case(
                f"softmax_{kind}_{block}",
                (x, np.zeros_like(x), n, n),
                {1: softmax},
                tolerance,
                (3, 1),
                block // 128,
            )
            scale, shift = (randomness.standard_normal(n).astype(np.float32) for _ in range(2))
            norm = (value - value.mean(1, keepdims=True)) / np.sqrt(
                value.var(1, keepdims=True) + 1e-5
            )
            norm = (norm * scale + shift).astype(type_)
            arguments = (x, scale, shift, np.zeros_like(x), n)
            yield case(f"layer_norm_{kind}_{block}", arguments, {3: norm}, tolerance * 8, (3, 1))
            if kind != "fp16":
                y = randomness.standard_normal(x.size).astype(type_)
                flat = x.ravel()
                result = (np.exp(flat.astype(np.float64)) * y + np.sin(flat)).astype(type_)
                blocks = -(-flat.size // block)
                yield case(
                    f"elementwise_{kind}_{block}",
                    (flat, y, np.zeros_like(flat), flat.size),
                    {2: result},
                    tolerance,
                    (blocks, 1),
                )
    for m, n, k in ((16, 16, 32), (64, 64, 32), (128, 128, 64)):
        left, right = randomness.integers(-4, 5, (m, 2 * k)), randomness.integers(-4, 5, (2 * k, n))
        product = (left @ right).astype(np.float32)
        for kind, type_ in (("fp32", np.float32), ("fp16", np.float16), ("bf16", None)):
            a, b = (_e8(side) if type_ is None else side.astype(type_) for side in (left, right))
            arguments = (a, b, np.zeros_like(product), m, n, 2 * k)
            yield case(f"matmul_{kind}_{m}_{n}_{k}", arguments, {2: product}, 0, (1, 1))
    q, key, v = (randomness.standard_normal((64, 64)) / 4 for _ in range(3))
    q16, k16, v16 = (one.astype(np.float16) for one in (q, key, v))
    weights = np.exp2(q16.astype(np.float64) @ k16.T.astype(np.float64))
    attention = (weights / weights.sum(1, keepdims=True) @ v16).astype(np.float16)
    arguments = (q16, k16, v16, np.zeros_like(q16), 64, 1.0)
    yield case("attention_fp16", arguments, {3: attention}, 4e-3, (1, 1))
    for kind, type_ in (("fp32", np.float32), ("fp16", np.float16), ("i32", np.int32)):
        x = randomness.integers(-9, 10, (64, 128)).astype(type_)
        sums = x.astype(np.float32).sum(0)
        yield case(f"column_sum_{kind}", (x, np.zeros_like(sums), 64, 128), {1: sums}, 0, (2, 1))
        yield case(
            f"transpose_{kind}", (x, np.zeros((128, 64), type_), 64, 128), {1: x.T}, 0, (2, 4)
        )
        x = randomness.integers(0, 3, (2, 512)).astype(type_)
        yield case(
            f"scan_{kind}",
            (x, np.zeros_like(x), 512),
            {1: np.cumsum(x, 1).astype(type_)},
            0,
            (2, 1),
        )
        x = randomness.permutation(512).reshape(2, 256).astype(type_)
        best = x.argmax(1).astype(np.int32)
        yield case(f"arg_max_{kind}", (x, np.zeros(2, np.int32), 256), {1: best}, 0, (2, 1), 2)
        if kind != "fp16":
            yield case(
                f"ordered_{kind}",
                (x[0].copy(), np.zeros(256, type_)),
                {1: np.sort(x[0])},
                0,
                (1, 1),
            )
        values, target = x.ravel() % 5, randomness.integers(0, 40, 512).astype(np.int32)
        added = np.bincount(target, values, 40).astype(type_)
        yield case(
            f"scatter_add_{kind}", (values, target, np.zeros(40, type_), 512), {2: added}, 0, (2, 1)
        )


def mismatch(case: Case, module: ModuleOp, name: str) -> str | None:
    """What is wrong with a run; None if the results agree and nothing was found."""
    machine = Machine("sm_90a", memory_bytes=1 << 26)
    values: list[int | float] = []
    for argument in case.arguments:
        if isinstance(argument, np.ndarray):
            address = machine.allocate(argument.nbytes)
            machine.write(address, argument)
            values.append(address)
        else:
            values.append(argument)
    try:
        report = machine.launch(
            machine.load(module),
            name,
            case.grid,
            case.block,
            values,
            shared_bytes=case.shared_bytes,
        )
    except HloError as problem:
        return str(problem).split("\n")[0]
    for found in report.findings:
        if found.code != case.finding:
            return str(found).split("\n")[0]
    if case.finding and not report.findings:
        return f"{case.finding} is not found"
    for number, expected in case.expected.items():
        address = values[number]
        assert isinstance(address, int)
        got = machine.read(address, expected.nbytes).view(expected.dtype).reshape(expected.shape)
        if not np.allclose(got, expected, rtol=case.tolerance, atol=case.tolerance, equal_nan=True):
            wrong = np.flatnonzero(
                ~np.isclose(got, expected, rtol=case.tolerance, atol=case.tolerance).ravel()
            )
            index = int(wrong[0])
            return f"{len(wrong)} of {expected.size} differ: {got.ravel()[index]} for {expected.ravel()[index]}"
    return None


def outcomes(folder: Path, seed: int, only: str = "") -> Iterator[tuple[Case, str, str | None]]:
    """Each case with the name of its kernel, and what is wrong with its run."""
    modules: dict[str, ModuleOp] = {}
    families = [
        family(np.random.default_rng(seed)) for family in (integers, floats, bits, programs)
    ]
    families += [of_triton(np.random.default_rng(seed), number) for number in (80, 90)]
    for case in itertools.chain(*families):
        if only not in f"{case.file} {case.kernel}":
            continue
        if case.file not in modules:
            file = f"cuda_{case.file}_sm_90a.ptx" if case.kernel else f"{case.file}.ptx"
            modules[case.file] = parse_ptx((folder / file).read_text(), str(folder / file))
        module = modules[case.file]
        names = [function.symbol for function in module.functions if function.is_entry]
        exact = [one for one in names if one == case.kernel]
        name = (exact or [one for one in names if one.startswith(case.kernel)])[0]
        yield case, name, mismatch(case, module, name)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the PTX")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the kernel's name")
    options = parser.parse_args()
    agree = total = 0
    for case, name, problem in outcomes(options.out, options.seed, options.only):
        total += 1
        agree += problem is None
        if problem is not None:
            print(f"{case.file}: {name}: {problem}", flush=True)
    print(f"{agree} of {total} kernels agree with their source")
    return 0 if agree == total else 1


if __name__ == "__main__":
    sys.exit(main())
