"""What is recorded, compiled and run by the real XLA:CPU: the same results."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support import SEED
from xla_execution import Refusal, XlaCpu

import mlirhlo
import mlirhlo.numpy as hnp
from mlirhlo.formats.stablehlo import parse_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

RNG = np.random.default_rng(SEED)
A = RNG.normal(size=(2, 4, 4))
B = RNG.normal(size=(2, 4, 3))
V = RNG.normal(size=(9,))
Z = V + 1j * RNG.normal(size=(9,))
I = RNG.integers(-9, 9, (9,))  # noqa: E741
N = np.array([1, 2, 3, 0, 5, 2, 7, 8, 1])
POSITIVE = A @ np.swapaxes(A, -1, -2) + 4 * np.eye(4)


def changed(x: Any, key: Any, value: Any) -> Any:
    y = hnp.asarray(x, copy=True)
    y[key] = value
    return y


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "unary": (
        lambda v, i: [
            *(f(v) for f in (hnp.sin, hnp.atan, hnp.expm1, hnp.log1p, hnp.log2, hnp.sign, hnp.signbit)),
            *(f(v) for f in (hnp.asin, hnp.acos, hnp.asinh, hnp.atanh, hnp.sinh, hnp.cosh, hnp.tan)),
            *(f(v) for f in (hnp.trunc, hnp.round, hnp.isnan, hnp.isinf, hnp.reciprocal, hnp.tanh)),
            *(f(i) for f in (hnp.bitwise_invert, hnp.abs, hnp.square, hnp.logical_not)),
        ],
        (V, I),
    ),
    "complex": (
        lambda z: [
            *(f(z) for f in (hnp.abs, hnp.conj, hnp.exp, hnp.log, hnp.sqrt, hnp.sin, hnp.atan)),
            *(f(z) for f in (hnp.asin, hnp.acos, hnp.atanh, hnp.acosh, hnp.sinh, hnp.cosh, hnp.tan)),
            *(f(z) for f in (hnp.asinh, hnp.tanh, hnp.round, hnp.sign, hnp.isfinite, hnp.log10)),
        ],
        (Z,),
    ),
    "binary": (
        lambda v, w, i, n: [
            *(f(v, w) for f in (hnp.hypot, hnp.atan2, hnp.copysign, hnp.logaddexp, hnp.nextafter)),
            *(f(v, w) for f in (hnp.remainder, hnp.floor_divide, hnp.maximum, hnp.pow)),
            *(f(i, n + 1) for f in (hnp.remainder, hnp.floor_divide, hnp.bitwise_left_shift)),
            hnp.clip(v, -1, 0.5), hnp.where(v > 0, v, 0),
        ],
        (V, V[::-1].copy(), I, N),
    ),
    "reductions": (
        lambda a, n: [
            *(f(a, axis=1) for f in (hnp.sum, hnp.prod, hnp.max, hnp.mean, hnp.std, hnp.any)),
            *(f(a, axis=-1) for f in (hnp.argmax, hnp.argmin, hnp.cumulative_sum, hnp.diff)),
            hnp.count_nonzero(n), hnp.cumulative_prod(n, include_initial=True),
            hnp.sum(hnp.astype(a, "float16"), axis=0),
        ],
        (A, N),
    ),
    "sorting": (
        lambda v, n: [
            hnp.sort(v), hnp.argsort(n), hnp.argsort(n, descending=True),
            hnp.searchsorted(hnp.sort(v), v + 0.1, side="right"), hnp.isin(n, n[:3]),
        ],
        (V, N),
    ),
    "moves": (
        lambda a, b: [
            hnp.roll(a, 2), hnp.roll(a, (1, -1), axis=(0, 2)), hnp.flip(b), hnp.tile(b, (2, 1, 2)),
            hnp.repeat(b, 2, axis=1), hnp.concat([a, b], axis=2), hnp.stack([b, b], axis=1),
            hnp.moveaxis(a, 0, -1), hnp.tril(a), hnp.triu(a, k=1), hnp.linspace(0, 1, 5), hnp.eye(3),
            hnp.arange(3, 9, 2), *hnp.meshgrid(a[0, 0], b[0, 0]),
        ],
        (A, B),
    ),
    "indexing": (
        lambda a, i: [
            a[1], a[:, ::-2, 1], a[..., None, :2], a[0, i % 4], a[i % 2, :, i % 4], a[i[0] % 2],
            hnp.take(a, i % 4, axis=1), hnp.take_along_axis(a, hnp.argsort(a), axis=-1),
            changed(a, (0, slice(1, 3)), 7), changed(a, (slice(None), slice(None, None, -2)), 7),
            changed(a, (slice(None), i % 4), 7), changed(a, a > 0, 0), changed(a, i[0] % 2, 1),
        ],
        (A, I),
    ),
    "products": (
        lambda a, b: [
            hnp.matmul(a, b), hnp.tensordot(a, b, axes=((2,), (1,))), hnp.vecdot(a, a),
            hnp.linalg.outer(a[0, 0], b[0, 0]), hnp.linalg.trace(a), hnp.linalg.diagonal(a, offset=1),
            hnp.linalg.cross(b, b[:, ::-1, :]), hnp.linalg.vector_norm(a, axis=1, ord=3),
        ],
        (A, B),
    ),
    "solving": (
        lambda a, b, p: [
            hnp.linalg.solve(a, b), hnp.linalg.inv(a), hnp.linalg.det(a), *hnp.linalg.slogdet(a),
            hnp.linalg.cholesky(p), hnp.linalg.cholesky(p, upper=True), hnp.linalg.eigvalsh(p),
            hnp.linalg.svdvals(b), hnp.linalg.pinv(b), hnp.linalg.matrix_rank(a),
            hnp.linalg.matrix_norm(a, ord=2), hnp.linalg.matrix_power(a, -2),
            *(hnp.matmul(*hnp.linalg.qr(x, mode=m)) for x in (b, b.mT) for m in ("reduced", "complete")),
        ],
        (A, B, POSITIVE),
    ),
    "complex solving": (
        lambda z: [
            hnp.linalg.inv(z), hnp.linalg.det(z), hnp.linalg.svdvals(z), hnp.matmul(*hnp.linalg.qr(z)),
            hnp.linalg.eigvalsh(z + hnp.conj(z).mT),
        ],
        (A + 1j * A[::-1],),
    ),
    "fft": (
        lambda v, z: [
            hnp.fft.fft(z), hnp.fft.ifft(z, n=12, norm="ortho"), hnp.fft.rfft(v), hnp.fft.irfft(z),
            hnp.fft.hfft(z, n=7), hnp.fft.fftshift(v),
        ],
        (V, Z),
    ),
    "loops": (
        lambda v, n: [
            hnp.fori_loop(0, n[1], lambda i, s: hnp.cond(s[0] > 0, lambda: s * i, lambda: s + v), v),
            *hnp.scan(lambda c, x: (c + x, c * v[0]), hnp.asarray(0.0), v, reverse=True),
            hnp.while_loop(lambda s: hnp.all(s < 50), lambda s: s * 2 + n, n),
        ],
        (V, N),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaCpu]:
    one = XlaCpu()
    yield one
    one.stop()


@pytest.mark.parametrize("name", PROGRAMS)
def test_xla_agrees(name: str, xla: XlaCpu) -> None:
    function, arguments = PROGRAMS[name]
    jitted = mlirhlo.jit(function, platform="interpreter")
    want = jitted(*arguments)
    got = xla.run(jitted.lower(*arguments).as_text(), arguments)
    assert not isinstance(got, Refusal), got.reason
    for number, (one, other) in enumerate(zip(got, want, strict=True)):
        data = np.asarray(other)
        assert (one.dtype, one.shape) == (data.dtype, data.shape)
        np.testing.assert_allclose(one, data, rtol=1e-6, atol=1e-9, err_msg=f"{name} {number}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_stablehlo_is_taken_by_mlir_and_comes_back(name: str) -> None:
    function, arguments = PROGRAMS[name]
    jitted = mlirhlo.jit(function, platform="interpreter")
    text = jitted.lower(*arguments).as_text("stablehlo")
    mlir = importlib.import_module("jax._src.interpreters.mlir")
    with mlir.make_ir_context():
        importlib.import_module("jaxlib.mlir.ir").Module.parse(text).operation.verify()
    module = convert_to_hlo(parse_module(text))
    for one, other in zip(run_module(module, arguments), jitted(*arguments), strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-12)
