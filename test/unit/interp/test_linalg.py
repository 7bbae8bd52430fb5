"""cholesky, triangular-solve and the factorisations behind LAPACK's names."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from xla_execution import SEED, SIZE, XLA, Refusal

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module
from mlirhlo.interp.linear_algebra import linalg_factor as factor
from mlirhlo.interp.linear_algebra.linalg import adjoint
from mlirhlo.interp.linear_algebra.linalg_schur import schur

TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
LOOSE = {"f32": 2e-5, "f64": 1e-12, "c64": 2e-5, "c128": 1e-12}


def draw(rng: np.random.Generator, shape: tuple[int, ...], type_: str) -> np.ndarray:
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if type_[0] == "c" else x).astype(TYPES[type_])


def shape_of(type_: str, x: np.ndarray) -> str:
    return f"{type_}[{','.join(map(str, x.shape))}]"


def cholesky_text(type_: str, a: np.ndarray, lower: bool) -> str:
    shape = shape_of(type_, a)
    return (
        f"HloModule m\nENTRY e {{ a = {shape} parameter(0)\n"
        f"ROOT r = {shape} cholesky(a), lower={str(lower).lower()} }}\n"
    )


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(type_: str, lower: bool) -> None:
    rng = np.random.default_rng(1)
    b = draw(rng, (2, 3, 4, 4), type_)
    a = b @ adjoint(b) + 4 * np.eye(4)
    keep = np.tril if lower else np.triu
    poisoned = (keep(a) + 99 * (1 - keep(np.ones((4, 4))))).astype(TYPES[type_])
    got = run_module(parse_module(cholesky_text(type_, a, lower)), [poisoned], check=True)[0]
    assert got.dtype == TYPES[type_]
    np.testing.assert_array_equal(keep(got), got)
    product = got @ adjoint(got) if lower else adjoint(got) @ got
    np.testing.assert_allclose(product, a, atol=20 * LOOSE[type_])


def test_cholesky_of_an_indefinite_matrix_is_nan_in_its_member_alone() -> None:
    a = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    got = run_module(parse_module(cholesky_text("f32", a, True)), [a])[0]
    np.testing.assert_array_equal(got[0], np.eye(3))
    assert np.isnan(got[1]).all()


def solve_text(
    type_: str, a: np.ndarray, b: np.ndarray, left: bool, lower: bool, unit: bool, how: str
) -> str:
    words = [str(flag).lower() for flag in (left, lower, unit)]
    return (
        f"HloModule m\nENTRY e {{ a = {shape_of(type_, a)} parameter(0)\n"
        f"b = {shape_of(type_, b)} parameter(1)\n"
        f"ROOT r = {shape_of(type_, b)} triangular-solve(a, b), left_side={words[0]}, "
        f"lower={words[1]}, unit_diagonal={words[2]}, transpose_a={how} }}\n"
    )


OPTIONS = list(
    itertools.product(
        TYPES, (True, False), (True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    )
)


@pytest.mark.parametrize(("type_", "left", "lower", "unit", "how"), OPTIONS)
def test_triangular_solve(type_: str, left: bool, lower: bool, unit: bool, how: str) -> None:
    rng = np.random.default_rng(2)
    a = draw(rng, (2, 4, 4), type_) + (3 * np.eye(4)).astype(TYPES[type_])
    b = draw(rng, (2, 4, 3) if left else (2, 3, 4), type_)
    x = run_module(parse_module(solve_text(type_, a, b, left, lower, unit, how)), [a, b])[0]
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle * (1 - np.eye(4)) + np.eye(4)
    turned = {"TRANSPOSE": np.swapaxes(triangle, -1, -2), "ADJOINT": adjoint(triangle)}
    op_a = turned.get(how, triangle)
    assert x.dtype == TYPES[type_]
    np.testing.assert_allclose(
        op_a @ x if left else x @ op_a, b, atol=100 * LOOSE[type_] * np.abs(x).max()
    )


@pytest.mark.oracle
@pytest.mark.slow
def test_factors_agree_with_xla() -> None:
    pytest.importorskip("jaxlib")
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    for type_, left, lower, unit, how in OPTIONS[:: max(1, 6 // SIZE)]:
        size, columns = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        a = draw(rng, (2, size, size), type_) + (3 * np.eye(size)).astype(TYPES[type_])
        b = draw(rng, (2, size, columns) if left else (2, columns, size), type_)
        positive = (a @ adjoint(a)).astype(TYPES[type_])
        positive[1] *= -1 if rng.random() < 0.5 else 1
        for text, inputs in (
            (solve_text(type_, a, b, left, lower, unit, how), [a, b]),
            (cholesky_text(type_, a, lower), [positive]),
        ):
            theirs = XLA.run(text, inputs)
            assert not isinstance(theirs, Refusal), (text, theirs)
            ours = run_module(parse_module(text), inputs, check=True)[0]
            if "cholesky" in text:
                keep = np.tril if lower else np.triu
                ours, theirs = keep(ours), [keep(theirs[0])]
            scale = float(np.nanmax(np.abs(theirs[0]), initial=1.0))
            np.testing.assert_allclose(
                ours, theirs[0], rtol=0, atol=50 * scale * LOOSE[type_], err_msg=text
            )


# ---------------------------------------------------------------- factorisations


@pytest.fixture(params=["f64", "c128"])
def type_(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (1, 1), (3, 0)])
def test_qr(type_: str, shape: tuple[int, int]) -> None:
    a = draw(np.random.default_rng(3), shape, type_)
    rank = min(shape)
    factors, taus = factor.qr_factor(a)
    (q,) = factor.householder_product(factors[:, :rank], taus)
    np.testing.assert_allclose(q @ np.triu(factors[:rank]), a, atol=1e-13)
    np.testing.assert_allclose(adjoint(q) @ q, np.eye(rank), atol=1e-13)
    r = np.triu(factors[:rank])
    np.testing.assert_allclose(np.imag(np.diagonal(r)), 0)


def test_qr_with_pivots(type_: str) -> None:
    a = draw(np.random.default_rng(4), (5, 4), type_)
    factors, pivots, taus = factor.qr_factor_pivoted(a, np.array([0, 0, 1, 0]))
    (q,) = factor.householder_product(factors, taus)
    assert pivots[0] == 3
    np.testing.assert_allclose(q @ np.triu(factors[:4]), a[:, pivots - 1], atol=1e-13)
    diagonal = np.abs(np.diagonal(factors))[1:]
    assert (diagonal[:-1] >= diagonal[1:] - 1e-12).all()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("conjugated", [True, False])
def test_apply_reflectors(type_: str, left: bool, conjugated: bool) -> None:
    rng = np.random.default_rng(5)
    factors, taus = factor.qr_factor(draw(rng, (4, 4), type_))
    (q,) = factor.householder_product(factors, taus)
    c = draw(rng, (4, 3) if left else (3, 4), type_)
    q = adjoint(q) if conjugated else q
    got = factor.apply_reflectors(factors, taus, c, left=left, conjugated=conjugated)
    np.testing.assert_allclose(got, q @ c if left else c @ q, atol=1e-13)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_lu(type_: str, shape: tuple[int, int]) -> None:
    a = draw(np.random.default_rng(6), shape, type_)
    factors, pivots, info = factor.lu_factor(a)
    rank = min(shape)
    lower = np.tril(factors[:, :rank], -1) + np.eye(shape[0], rank)
    rows = list(range(shape[0]))
    for k, pivot in enumerate(pivots):
        rows[k], rows[pivot] = rows[pivot], rows[k]
    np.testing.assert_allclose(lower @ np.triu(factors[:rank]), a[rows], atol=1e-13)
    assert np.abs(np.tril(factors, -1)).max() <= 1.5
    assert info == 0
    assert factor.lu_factor(np.zeros((2, 2)))[2] == 1


def test_hessenberg_and_tridiagonal(type_: str) -> None:
    rng = np.random.default_rng(7)
    a = draw(rng, (5, 5), type_)
    factors, taus = factor.hessenberg(a, 1, 5)
    q = np.eye(5, dtype=a.dtype)
    q[1:, 1:] = factor.householder_product(factors[1:, :-1], taus)[0]
    np.testing.assert_allclose(q @ np.triu(factors, -1) @ adjoint(q), a, atol=1e-13)
    symmetric = a + adjoint(a)
    for lower in (True, False):
        _, d, e, _ = factor.tridiagonal(symmetric, lower)
        dense = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        np.testing.assert_allclose(
            np.linalg.eigvalsh(dense), np.linalg.eigvalsh(symmetric), atol=1e-12
        )


def test_tridiagonal_solve(type_: str) -> None:
    rng = np.random.default_rng(8)
    for size in (1, 2, 3, 7):
        lower, d, upper = (draw(rng, (n,), type_) for n in (size - 1, size, size - 1))
        b = draw(rng, (size, 2), type_)
        dense = np.diag(d) + np.diag(lower, -1) + np.diag(upper, 1)
        x = factor.solve_tridiagonal(lower, d, upper, b)[3]
        np.testing.assert_allclose(dense @ x, b, atol=1e-10)
    with np.errstate(all="ignore"):
        singular = factor.solve_tridiagonal(np.zeros(1), np.zeros(2), np.zeros(1), np.ones((2, 1)))
    assert singular[4] == 1


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("kind", ["random", "rotation", "cycle", "defective"])
def test_schur(type_: str, size: int, kind: str) -> None:
    a = {
        "random": draw(np.random.default_rng(size), (size, size), type_),
        "rotation": np.eye(size) + np.diag(np.ones(size - 1), 1) - np.diag(np.ones(size - 1), -1),
        "cycle": np.roll(np.eye(size), 1, 0),
        "defective": np.eye(size) + np.diag(np.ones(size - 1), 1),
    }[kind].astype(TYPES[type_])
    t, q, values, info = schur(a)
    assert info == 0
    np.testing.assert_allclose(q @ t @ adjoint(q), a, atol=1e-12)
    np.testing.assert_allclose(q @ adjoint(q), np.eye(size), atol=1e-12)
    below = np.diagonal(t, -1)
    np.testing.assert_allclose(np.tril(t, -2), 0, atol=1e-14)
    if type_ == "c128":
        np.testing.assert_array_equal(below, 0)
    for k in np.flatnonzero(below):
        assert t[k, k] == t[k + 1, k + 1]
        assert t[k, k + 1] * t[k + 1, k] < 0
    assert abs(np.sum(values) - np.trace(a)) < 1e-10


def test_batches_may_be_empty() -> None:
    factors, taus = factor.batched(factor.qr_factor, np.zeros((0, 3, 2)), ranks=(2,))
    assert factors.shape == (0, 3, 2)
    assert taus.shape == (0, 2)
