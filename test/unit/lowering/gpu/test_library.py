"""Routines as PTX: transforms, factors and random bits by many threads, with the interpreter's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from lapack_calls import ALL, CALLS, arrays, custom_call, random_arguments

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


@pytest.mark.one_case_in(3)
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


@pytest.mark.one_case_in(3)
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


UNIQUE = ("potrf", "getrf", "geqrf", "orgqr", "ormqr", "trsm")
REDUCTIONS = ("geqp3", "gehrd", "sytrd", "gtsv")
EIGEN = (
    ("geev", "(R[4], R[4], c128[4,4], c128[4,4], s32[]) S(T[4,4] a)", ALL),
    ("gees", "(T[4,4], T[4,4], R[4], R[4], s32[], s32[]) S(T[4,4] a)", ""),
)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("element", ["f32", pytest.param("c128", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "call", "options"), [c for c in CALLS if c[0] in UNIQUE])
def test_routines_with_one_result(name, call, options, element):
    got, expected, _ = results(name, call, options, element)
    bound = 1e-4 if element == "f32" else 1e-12
    for mine, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, other, bound, bound)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["f32", "c64"])
@pytest.mark.parametrize("sizes", [(33, 33), (2, 40, 20), (18, 37)])
def test_exchanged_rows(sizes, element):
    """Of matrices that a block factors, the first of which has a column of zeros: its order is told."""
    *batch, m, n = sizes
    text = ",".join(map(str, sizes))
    least = ",".join(map(str, (*batch, min(m, n))))
    dims = ",".join(map(str, batch))
    call = f"(T[{text}], s32[{least}], s32[{dims}]) S(T[{text}] a)"
    got, expected, a = results("getrf", call, "", element, zero_column=3)
    np.testing.assert_array_equal(got[1], expected[1])
    np.testing.assert_array_equal(got[2], expected[2])
    assert got[2].reshape(-1)[0] == 4
    np.testing.assert_allclose(got[0], expected[0], 1e-3, 1e-4 * np.abs(a).max())


@pytest.mark.parametrize("lower", ["L", "U"])
def test_the_first_minor_that_is_not_positive(lower):
    call = "(T[20,20], s32[]) S(T[20,20] a)"
    options = f"uplo = {ord(lower)} : ui8"
    got, expected, _ = results("potrf", call, options, "f64", negative=6)
    assert got[1] == expected[1] == 7
    got, expected, _ = results("potrf", call, options, "f64")
    np.testing.assert_allclose(got[0], expected[0], 1e-12, 1e-12)


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("element", ["f32", "c128"])
def test_eigenvectors(element):
    call = "(T[2,6,6], R[2,6], s32[2]) S(T[2,6,6] a)"
    (vectors, values, info), expected, a = results("syevd", call, "uplo = 85 : ui8", element)
    bound = 1e-4 if element == "f32" else 1e-11
    assert not info.any()
    np.testing.assert_allclose(values, expected[1], bound, bound)
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None, :], bound, bound)


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize(("element", "mode"), [("f32", "A"), ("c64", "S")])
def test_singular_vectors(sizes, element, mode):
    """Also of a matrix without full rank: the vectors are orthonormal still."""
    (m, n), least = sizes, min(sizes)
    thin = (least, least) if mode == "S" else (m, n)
    call = f"(T[{m},{n}], R[{least}], T[{m},{thin[0]}], T[{thin[1]},{n}], s32[]) S(T[{m},{n}] a)"
    got, expected, a = results("gesdd", call, f"mode = {ord(mode)} : ui8", element, zero_column=1)
    _, values, u, v, info = got
    assert info == 0
    np.testing.assert_allclose(values, expected[1], 1e-4, 1e-5)
    np.testing.assert_allclose((u[:, :least] * values) @ v[:least], a, 1e-4, 1e-5)
    for unit in (u.conj().T @ u, v @ v.conj().T):
        np.testing.assert_allclose(unit, np.eye(len(unit)), 1e-5, 1e-5)


@pytest.mark.slow
def test_what_is_not_finite_is_told():
    for name, call in (CALLS[7][:2], CALLS[9][:2]):
        got, expected, _ = results(name, call, "mode = 83 : ui8", "f32", value=np.inf)
        np.testing.assert_array_equal(got[-1], expected[-1])
        assert got[-1].any()


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "call", "options"), [c for c in CALLS if c[0] in REDUCTIONS])
def test_reductions(name, call, options):
    got, expected, _ = results(name, call, options, "f64")
    for mine, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, other, 1e-11, 1e-11)


@pytest.mark.parametrize(("name", "call", "options"), EIGEN)
def test_what_no_kernel_computes_is_a_call_of_a_library(name, call, options):
    """On the simulator the interpreter's routine runs."""
    got, expected, _ = results(name, call, options, "f64")
    for mine, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_call_of_a_library_is_in_every_list():
    from mlirhlo.debug.dump.gpu import thunk_text

    module = mlirhlo.parse(custom_call(*EIGEN[0], "f64"))
    compiled: Any = mlirhlo.compile(module, "gpu")
    assert "kCustomCall [source       | sink        ] cusolverDnXgeev" in thunk_text(
        compiled.program.plan
    )


def results(
    name: str,
    call: str,
    options: str,
    element: str,
    *,
    zero_column: int | None = None,
    negative: int | None = None,
    value: float | None = None,
) -> tuple[list[Any], list[Any], Any]:
    """What PTX and the interpreter make of a call, and its first operand, some numbers of which are as told."""
    module = mlirhlo.parse(custom_call(name, call, options, element))
    operands = random_arguments(module, np.random.default_rng(4))
    first = operands[0].reshape(-1, *operands[0].shape[-2:])[0]
    if zero_column is not None:
        first[:, zero_column] = 0
    if negative is not None:
        first[negative, negative] = -1
    if value is not None:
        first[0, 0] = value
    compiled: Any = mlirhlo.compile(module, "gpu")
    got = arrays(compiled(*operands))
    assert not list(map(str, compiled.findings))
    return got, arrays(module(*operands)), operands[0]
