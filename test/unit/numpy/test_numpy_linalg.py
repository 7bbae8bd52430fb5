"""The `linalg` and `fft` extensions and the products of arrays, as numpy, eager and under jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from support import SEED

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError

TYPES = ("float32", "float64", "complex64", "complex128")


def random(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def agree(function: Callable[..., Any], want: Any, *arguments: Any) -> None:
    jitted = mlirhlo.jit(function, platform="interpreter")
    assert not verify_module(jitted.lower(*arguments).op)
    for got in (function(*map(hnp.asarray, arguments)), jitted(*arguments)):
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for one, other in pairs:
            one, other = np.asarray(one), np.asarray(other)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            if other.dtype.kind in "fc":
                eps = float(np.finfo(other.dtype).eps)
                scale = float(np.max(np.abs(other), initial=1))
                np.testing.assert_allclose(one, other, rtol=1000 * eps, atol=1000 * eps * scale)
            else:
                np.testing.assert_array_equal(one, other)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
def test_square_matrices(dtype: str, batch: tuple[int, ...]) -> None:
    x = random((*batch, 4, 4), dtype)
    b = random((*batch, 4, 2), dtype)
    agree(hnp.linalg.det, np.linalg.det(x), x)
    agree(lambda x: tuple(hnp.linalg.slogdet(x)), tuple(np.linalg.slogdet(x)), x)
    agree(hnp.linalg.inv, np.linalg.inv(x), x)
    agree(hnp.linalg.solve, np.linalg.solve(x, b), x, b)
    for n in (-2, 0, 1, 3):
        agree(lambda x, n=n: hnp.linalg.matrix_power(x, n), np.linalg.matrix_power(x, n), x)
    positive = x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(4, dtype=dtype)
    for upper in (False, True):
        want = np.linalg.cholesky(positive, upper=upper)
        agree(lambda x, u=upper: hnp.linalg.cholesky(x, upper=u), want, positive)
        factor = np.asarray(hnp.linalg.cholesky(positive, upper=upper))
        beside = factor[..., ~np.tri(4, dtype=bool).T if upper else ~np.tri(4, dtype=bool)]
        signed = np.concatenate([beside.real.ravel(), beside.imag.ravel()])
        np.testing.assert_array_equal(np.copysign(1, signed), np.ones_like(signed))
        assert not signed.any()
    agree(hnp.linalg.eigvalsh, np.linalg.eigvalsh(positive), positive)
    values, vectors = hnp.linalg.eigh(positive)
    rebuilt = vectors @ (values[..., :, None] * hnp.conj(vectors).mT)
    np.testing.assert_allclose(np.asarray(rebuilt), positive, rtol=1e-4, atol=1e-4)
    if 0 not in batch:
        agree(hnp.linalg.matrix_rank, np.asarray(np.linalg.matrix_rank(x)), x)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (2, 4, 3), (0, 3), (2, 3, 0)])
def test_factorisations(dtype: str, shape: tuple[int, ...]) -> None:
    x = random(shape, dtype)
    agree(hnp.linalg.svdvals, np.linalg.svdvals(x), x)
    for mode in ("reduced", "complete"):
        q, r = hnp.linalg.qr(x, mode=mode)
        want = np.linalg.qr(x, mode=mode)
        assert (q.shape, r.shape, q.dtype) == (want.Q.shape, want.R.shape, want.Q.dtype)
        np.testing.assert_allclose(np.asarray(q @ r), x, atol=1e-5)
        unit = np.asarray(hnp.conj(q).mT @ q)
        np.testing.assert_allclose(
            unit, np.broadcast_to(np.eye(q.shape[-1]), unit.shape), atol=1e-5
        )
        assert not np.any(np.tril(np.asarray(r), -1))
    for full in (False, True):
        u, s, vh = hnp.linalg.svd(x, full_matrices=full)
        want = np.linalg.svd(x, full_matrices=full)
        assert [p.shape for p in (u, s, vh)] == [p.shape for p in want]
        k = s.shape[-1]
        rebuilt = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        np.testing.assert_allclose(np.asarray(rebuilt), x, atol=1e-5)
    if x.size:
        agree(hnp.linalg.pinv, np.linalg.pinv(x), x)
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            for keep in (False, True):
                want = np.linalg.norm(x, order, axis=(-2, -1), keepdims=keep)
                agree(
                    lambda x, o=order, k=keep: hnp.linalg.matrix_norm(x, ord=o, keepdims=k), want, x
                )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("order", [2, 1, 0, 3, -1, 2.5, np.inf, -np.inf])
def test_vector_norm(order: Any) -> None:
    for dtype in TYPES:
        x = random((3, 4, 2), dtype)
        for axis, keep in ((None, False), (1, True), ((0, 2), False)):
            want = cast(Any, np.linalg).vector_norm(x, axis=axis, keepdims=keep, ord=order)
            agree(
                lambda x, a=axis, k=keep: hnp.linalg.vector_norm(x, axis=a, keepdims=k, ord=order),
                np.asarray(want),
                x,
            )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("dtype", ["int32", "uint8", *TYPES])
def test_products(dtype: str) -> None:
    def values(*shape: int) -> Any:
        return (
            random(shape, dtype)
            if dtype in TYPES
            else np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        )

    for left, right in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)),
                        ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (4, 3, 2)), ((2, 0), (0, 3))):  # fmt: skip
        a, b = values(*left), values(*right)
        agree(hnp.matmul, np.asarray(np.matmul(a, b)), a, b)
    a, b = values(2, 3, 4), values(4, 3, 5)
    want = np.tensordot(a, b, ((1, 2), (1, 0)))
    agree(lambda a, b: hnp.tensordot(a, b, axes=((1, 2), (1, 0))), want, a, b)
    agree(lambda a, b: hnp.tensordot(a, b, axes=0), cast(Any, np).tensordot(a, b, 0), a, b)
    x, y = values(4, 3), values(2, 1, 3)
    vecdot = cast(Any, np.vecdot)
    agree(hnp.vecdot, vecdot(x, y), x, y)
    agree(lambda x: hnp.vecdot(x, x, axis=0), vecdot(x, x, axis=0), x)
    agree(
        hnp.linalg.cross,
        cast(Any, np.linalg).cross(x, x[:, ::-1]),
        x,
        np.ascontiguousarray(x[:, ::-1]),
    )
    agree(hnp.linalg.outer, np.linalg.outer(x[0], x[1]), x[0], x[1])
    for offset in (-2, 0, 1, 9):
        want = np.linalg.diagonal(y, offset=offset)
        agree(lambda y, o=offset: hnp.linalg.diagonal(y, offset=o), want, y)
        want = np.asarray(np.linalg.trace(x, offset=offset))
        agree(lambda x, o=offset: hnp.linalg.trace(x, offset=o), want, x)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fft(norm: Any) -> None:
    for dtype in TYPES:
        x = random((2, 5, 4), dtype)
        for n in (None, 3, 8):
            for name in ("fft", "ifft", "hfft", "irfft", "rfft", "ihfft"):
                if name in ("rfft", "ihfft") and "complex" in dtype:
                    continue
                for axis in (-1, 1):
                    want = getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
                    function = getattr(hnp.fft, name)
                    agree(lambda x, f=function, n=n, a=axis: f(x, n=n, axis=a, norm=norm), want, x)
        for name in ("fftn", "ifftn", "irfftn", "rfftn"):
            if name == "rfftn" and "complex" in dtype:
                continue
            want = getattr(np.fft, name)(x, s=(3, 6), axes=(1, 2), norm=norm)
            function = getattr(hnp.fft, name)
            agree(lambda x, f=function: f(x, s=(3, 6), axes=(1, 2), norm=norm), want, x)


def test_fft_helpers() -> None:
    for n in (1, 4, 5):
        np.testing.assert_allclose(np.asarray(hnp.fft.fftfreq(n, d=0.5)), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(np.asarray(hnp.fft.rfftfreq(n, d=0.5)), np.fft.rfftfreq(n, 0.5))
        x = np.arange(n * 3).reshape(n, 3)
        agree(hnp.fft.fftshift, np.fft.fftshift(x), x)
        agree(lambda x: hnp.fft.ifftshift(x, axes=0), np.fft.ifftshift(x, 0), x)


def test_no_factor_gives_nan() -> None:
    assert np.isnan(np.asarray(hnp.linalg.cholesky(-hnp.eye(2)))[0, 0])
    assert np.all(np.isnan(np.asarray(hnp.linalg.svdvals(hnp.asarray([[np.nan, 1], [1, 1]])))))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: hnp.matmul(hnp.ones((2, 3)), hnp.ones((2, 3))), "HLO0626"),
        (lambda: hnp.matmul(hnp.asarray(1.0), hnp.ones(2)), "HLO0626"),
        (lambda: hnp.linalg.inv(hnp.ones((2, 3))), "HLO0626"),
        (lambda: hnp.linalg.det(hnp.ones(2)), "HLO0626"),
        (lambda: hnp.linalg.solve(hnp.eye(2), hnp.ones(3)), "HLO0626"),
        (lambda: hnp.linalg.matrix_norm(hnp.eye(2), ord="x"), "HLO0626"),
        (lambda: hnp.linalg.qr(hnp.eye(2), mode="raw"), "HLO0626"),
        (lambda: hnp.linalg.cross(hnp.ones(2), hnp.ones(2)), "HLO0626"),
        (lambda: hnp.linalg.cross(hnp.ones(1), hnp.ones((2, 3))), "HLO0626"),
        (lambda: hnp.fft.fft(hnp.ones(2), norm="x"), "HLO0626"),
        (lambda: hnp.fft.rfft(hnp.ones(2, dtype="complex64")), "HLO0625"),
    ],
)
def test_errors(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(HloError) as caught:
        call()
    assert caught.value.code == code
