"""cholesky and triangular-solve as machine code, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

pytest.importorskip("llvmlite")

DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


def given(type_: str, sizes: tuple[int, ...], seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.standard_normal(sizes)
    if type_.startswith("c"):
        values = values + 1j * random.standard_normal(sizes)
    return values.astype(DTYPES[type_])


def agree(text: str, type_: str, *arguments: np.ndarray) -> None:
    module = mlirhlo.parse(text)
    executable = mlirhlo.compile(module, cached=False)
    actual, expected = executable(*arguments), np.asarray(module(*arguments))
    close = 1e-5 if type_ in ("f32", "c64") else 1e-12
    np.testing.assert_allclose(actual, expected, close, close * 10)
    assert not executable.callbacks


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("shape", ["[1,1]", "[5,5]", "[3,2,17,17]", "[20,20]{0,1}", "[0,3,3]"])
def test_cholesky(shape: str, type_: str, lower: str) -> None:
    sizes = tuple(map(int, shape.partition("]")[0][1:].split(",")))
    x = given(type_, sizes, 1)
    matrix = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(sizes[-1], dtype=x.dtype) * 2
    text = f"{type_}{shape} cholesky({type_}{shape} x), lower={lower}"
    if matrix.size and matrix.ndim == 4:
        matrix[1, 1] *= -1  # not positive definite: NaN
    agree(text, type_, matrix.astype(x.dtype))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize(("type_", "unit"), [("f32", "false"), ("c128", "false"), ("f64", "true")])
def test_triangular_solve(type_: str, unit: str, lower: str, left: str, transpose: str) -> None:
    for batch, n, m in (((), 1, 1), ((), 7, 9), ((2, 3), 12, 3), ((), 9, 0)):
        lead = "".join(f"{s}," for s in batch)
        right = f"{n},{m}" if left == "true" else f"{m},{n}"
        text = (
            f"{type_}[{lead}{right}] triangular-solve({type_}[{lead}{n},{n}] a, {type_}[{lead}{right}] b), "
            f"left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={transpose}"
        )
        a = given(type_, (*batch, n, n), 2) + np.eye(n, dtype=DTYPES[type_]) * 5
        sizes = (*batch, n, m) if left == "true" else (*batch, m, n)
        agree(text, type_, (a / 5).astype(DTYPES[type_]), given(type_, sizes, 3))
