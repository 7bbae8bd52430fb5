"""Functions of NVIDIA's libraries: their arguments, against a library that computes with numpy on simulated memory."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_pycuda import FakeCuda
from lapack_calls import ALL, arrays, custom_call

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.runtime.cuda import cubins, devices, graphs, libraries

GEEV = "(R[2,4], R[2,4], c128[2,4,4], c128[2,4,4], s32[2]) S(T[2,4,4] a)"
OF_COMPLEX = "(T[4], T[4,4], T[4,4], s32[]) S(T[4,4] a)"


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = FakeCuda()
    monkeypatch.setitem(sys.modules, "pycuda.driver", fake.driver)
    monkeypatch.setitem(sys.modules, "pycuda.tools", fake.tools)
    monkeypatch.setattr(graphs, "library", lambda: fake)
    monkeypatch.setattr(cubins, "nvidia_program", lambda name: None)
    devices._driver.cache_clear()  # pyright: ignore[reportPrivateUsage]
    yield fake
    devices._driver.cache_clear()  # pyright: ignore[reportPrivateUsage]


def library(cuda: FakeCuda, calls: list[str]) -> SimpleNamespace:
    """cuSOLVER's functions, as ctypes hands them their arguments."""

    def made(name: str, work: Callable[..., int]) -> Any:
        def function(*arguments: Any) -> int:
            calls.append(name)
            assert cuda.depth
            return work(*arguments)

        return ctypes.CFUNCTYPE(ctypes.c_int, *libraries.SIGNATURES[name])(function)

    def create(handle: Any) -> int:
        handle[0] = 7
        return 0

    def sizes(*arguments: Any) -> int:
        arguments[-2][0], arguments[-1][0] = 64, 16
        return 0

    def geev(handle: int, params: int, left: int, right: int, n: int, *rest: Any) -> int:
        (kind, a, lda, of_w, w, of_vl, vl, _, of_vr, vr, ldvr, computed, work, size, *_, info) = (
            rest
        )
        assert (handle, params, left, right, lda, ldvr, vl) == (7, 7, 0, 1, n, n, None)
        assert kind == of_vl == of_vr == computed
        assert (of_w, size) == (5, 64)
        assert work
        assert info
        dtype = {1: np.float64, 5: np.complex128}[kind]
        matrix = cuda.machine.read(a, n * n * np.dtype(dtype).itemsize).view(dtype)
        values, vectors = np.linalg.eig(matrix.reshape(n, n).T)
        if kind == 1:
            vectors = np.where(values.imag < 0, -vectors.imag, vectors.real)
        for address, found in ((w, values.astype(np.complex128)), (vr, vectors.T.astype(dtype))):
            cuda.machine.write(address, np.frombuffer(found.tobytes(), np.uint8))
        return int(n == 1)

    works = {
        "cusolverDnCreate": create,
        "cusolverDnCreateParams": create,
        "cusolverDnSetStream": lambda *_: 0,
        "cusolverDnXgeev_bufferSize": sizes,
        "cusolverDnXgeev": geev,
    }
    return SimpleNamespace(**{name: made(name, work) for name, work in works.items()})


@pytest.mark.parametrize(("call", "element"), [(GEEV, "f64"), (OF_COMPLEX, "c128")])
def test_eigenvectors(call: str, element: str, cuda: Any, monkeypatch: Any) -> None:
    calls: list[str] = []
    monkeypatch.setattr(libraries, "nvidia_file", lambda pattern: pattern)
    monkeypatch.setattr(libraries.ctypes, "CDLL", lambda path: library(cuda, calls))
    module = mlirhlo.parse(custom_call("geev", call, ALL, element))
    random = np.random.default_rng(1)
    shape: Any = module.hlo.entry.parameters[0].shape
    a = random.normal(size=shape.dimensions).astype(shape.element_type.dtype)
    got = arrays(mlirhlo.compile(module, "cuda", gpu="cuda")(a))
    for mine, other in zip(got, arrays(module(a)), strict=True):
        np.testing.assert_allclose(mine, other, 1e-12, 1e-12)
    assert calls[-1] == "cusolverDnXgeev"


def test_a_failure_is_reported(cuda: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(libraries, "nvidia_file", lambda pattern: pattern)
    monkeypatch.setattr(libraries.ctypes, "CDLL", lambda path: library(cuda, []))
    text = custom_call("geev", "(T[1], T[1,1], T[1,1], s32[]) S(T[1,1] a)", ALL, "c128")
    with pytest.raises(HloError, match="cusolverDnXgeev failed with status 1") as problem:
        mlirhlo.compile(mlirhlo.parse(text), "cuda", gpu="cuda")(np.ones((1, 1), np.complex128))
    assert problem.value.code == "HLO0822"


@pytest.mark.parametrize(
    ("name", "call", "said"),
    [
        ("geev", GEEV, "pip install nvidia-cusolver"),
        ("gees", "(T[4,4], T[4,4], R[4], R[4], s32[], s32[]) S(T[4,4] a)", "have no `gees`"),
    ],
)
def test_what_is_not_installed(
    name: str, call: str, said: str, cuda: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(libraries, "nvidia_file", lambda pattern: None)
    with pytest.raises(HloError) as problem:
        mlirhlo.compile(mlirhlo.parse(custom_call(name, call, "", "f64")), "cuda", gpu="cuda")
    assert problem.value.code == "HLO0824"
    assert said in str(problem.value)
