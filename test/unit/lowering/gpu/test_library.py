"""Routines as PTX: transforms, factors and random bits by many threads, with the interpreter's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mlirhlo

pytest.importorskip("llvmlite")


def check(instruction: str, operands: Sequence[np.ndarray[Any, Any]], least: int) -> None:
    """Results of an instruction of `p0, p1, …` as the interpreter's, by at least so many threads, no findings."""
    types = [_type(v) for v in operands]
    lines = [f"  p{n} = {type_} parameter({n})" for n, type_ in enumerate(types)]
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {instruction}", "}"])
    module = mlirhlo.parse(text)
    expected = module(*operands)
    compiled: Any = mlirhlo.compile(module, "gpu")
    got = compiled(*operands)
    assert not list(map(str, compiled.findings))
    launches = [x for k in compiled.program.plan.kernels.values() for x in k.launches]
    assert max(x.grid[0] * x.block[0] for x in launches) >= least
    pairs = zip(*(v if isinstance(v, tuple | list) else [v] for v in (got, expected)), strict=True)
    for mine, other in pairs:
        mine, other = np.asarray(mine), np.asarray(other)
        assert mine.dtype == other.dtype
        is_exact = mine.dtype.kind in "iub"
        bound = 0.0 if is_exact else 1e-11 if mine.dtype in ("f8", "c16") else 2e-5
        np.testing.assert_allclose(mine, other, bound, bound)


def _type(value: np.ndarray[Any, Any]) -> str:
    kind = {"c": "c", "f": "f", "u": "u", "i": "s"}[value.dtype.kind]
    return f"{kind}{8 * value.dtype.itemsize}[{','.join(map(str, value.shape))}]"


def numbers(dtype: str, *sizes: int) -> Any:
    """Normal ones, of a seed."""
    random = np.random.default_rng(sum(sizes))
    values = random.normal(size=sizes)
    return (values + 1j * random.normal(size=sizes) if dtype[0] == "c" else values).astype(dtype)


def positive(dtype: str, *sizes: int) -> Any:
    """Positive definite matrices."""
    a = numbers(dtype, *sizes)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + sizes[-1] * np.eye(sizes[-1], dtype=dtype)


def wide(dtype: str) -> str:
    """The HLO type of a number."""
    return {"f4": "f32", "f8": "f64", "c8": "c64", "c16": "c128"}[dtype]


def shape(dtype: str, *sizes: int) -> str:
    """The HLO type of an array."""
    return f"{wide(dtype)}[{','.join(map(str, sizes))}]"


TRANSFORMS = [
    ("FFT", "c8", (70, 32), "c8", (70, 32), "32"),
    ("IFFT", "c16", (3, 8, 12), "c16", (3, 8, 12), "8,12"),
    ("RFFT", "f4", (66, 96), "c8", (66, 49), "96"),
    ("IRFFT", "c8", (2, 4, 6, 5), "f4", (2, 4, 6, 8), "4,6,8"),
    ("RFFT", "f4", (2, 5, 7), "c8", (2, 5, 4), "5,7"),
]


@pytest.mark.parametrize(("kind", "source", "sizes", "target", "results", "length"), TRANSFORMS)
def test_lines_of_transforms(kind, source, sizes, target, results, length):
    text = f"{shape(target, *results)} fft(p0), fft_type={kind}, fft_length={{{length}}}"
    check(text, [numbers(source, *sizes)], 32)


BITS = [
    ("rng_philox", "u32", "101,33"),
    ("rng_three_fry", "u16", "7,30"),
    ("rng_philox", "u64", "45"),
]
BITS += [("rng_three_fry", "u64", "41"), ("rng_default", "u8", "9,9,9")]


@pytest.mark.parametrize(("algorithm", "type_", "sizes"), BITS)
def test_blocks_of_counters(algorithm, type_, sizes):
    text = f"(u64[2], {type_}[{sizes}]) rng-bit-generator(p0), algorithm={algorithm}"
    check(text, [np.array([7, 2**32 - 5], np.uint64)], 32)


FACTORS = [("f4", (2, 40, 40), 0), ("c8", (20, 20), 64), ("f8", (33, 33), 0), ("f4", (50, 3, 3), 7)]


@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize(("dtype", "sizes", "bad"), FACTORS)
def test_cholesky(dtype, sizes, bad, lower):
    """Matrices that have no factor, the first one here, are NaN everywhere."""
    a = positive(dtype, *sizes)
    if bad:
        a.reshape(-1, *sizes[-2:])[0, 2, 2] = -bad
    check(f"{shape(dtype, *sizes)} cholesky(p0), lower={lower}", [a], 32)


SYSTEMS = [
    ("f4", (2, 40, 40), 3),
    ("c8", (20, 20), 2),
    ("f8", (33, 33), 130),
    ("f4", (50, 3, 3), 2),
]


@pytest.mark.parametrize("transposition", ["NO_TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize(("left", "lower"), [("true", "false"), ("false", "true")])
@pytest.mark.parametrize(("dtype", "sizes", "columns"), SYSTEMS)
def test_triangular_solve(dtype, sizes, columns, left, lower, transposition):
    a = positive(dtype, *sizes) / sizes[-1]
    right = (sizes[-1], columns) if left == "true" else (columns, sizes[-1])
    result = (*sizes[:-2], *right)
    unit = str(columns % 2 == 0).lower()
    text = f"{shape(dtype, *result)} triangular-solve(p0, p1), left_side={left}, lower={lower},"
    text += f" unit_diagonal={unit}, transpose_a={transposition}"
    check(text, [(a * 0.1 if unit == "true" else a).astype(dtype), numbers(dtype, *result)], 32)
