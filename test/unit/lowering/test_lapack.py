"""Custom calls that LAPACK answers as machine code."""

from __future__ import annotations

import numpy as np
import pytest
from lapack_calls import ALL, CALLS, arrays, custom_call, random_arguments

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering import routines
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")
if routines.address(f"{routines.LAPACK}dgeqrf") is None:
    pytest.skip("NumPy was built without the libraries", allow_module_level=True)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["f64", pytest.param("c128", marks=pytest.mark.slow)])
def test_routines(element: str) -> None:
    """Against the interpreter, which has algorithms of its own or NumPy's."""
    rng = np.random.default_rng(0)
    for name, call, options in CALLS:
        module = mlirhlo.parse(custom_call(name, call, options, element))
        given = random_arguments(module, rng)
        executable = mlirhlo.compile(module)
        for a, b in zip(arrays(executable(*given)), arrays(module(*given)), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12, rtol=1e-12, err_msg=f"{name} {call}")
        assert not executable.callbacks


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["f32", "c64"])
def test_eigenvalues_of_any_matrix(element: str) -> None:
    """A v = w v, of left ones v* A = w v*; A = Q T Q*."""
    parts = "R[4], R[4]" if element == "f32" else "T[4]"
    vectors = "c64[4,4], c64[4,4]"
    rng = np.random.default_rng(2)
    geev = mlirhlo.parse(
        custom_call("geev", f"({parts}, {vectors}, s32[]) S(T[4,4] a)", ALL, element)
    )
    gees = mlirhlo.parse(
        custom_call("gees", f"(T[4,4], T[4,4], {parts}, s32[], s32[]) S(T[4,4] a)", "", element)
    )
    a = rng.normal(size=(4, 4)) + (1j * rng.normal(size=(4, 4)) if element == "c64" else 0)
    a = a.astype(geev.hlo.entry.parameters[0].shape.element_type.dtype)  # type: ignore[union-attr]
    *values, left, right, info = arrays(mlirhlo.compile(geev)(a))
    assert info == 0
    w = values[0] + 1j * values[1] if len(values) == 2 else values[0]
    assert element == "c64" or values[1].any()
    np.testing.assert_allclose(a @ right, w * right, atol=1e-5)
    np.testing.assert_allclose(left.conj().T @ a, w[:, None] * left.conj().T, atol=1e-5)
    t, q, *values, selected, info = arrays(mlirhlo.compile(gees)(a))
    assert (selected, info) == (0, 0)
    np.testing.assert_allclose(q @ t @ q.conj().T, a, atol=1e-5)
    w2 = values[0] + 1j * values[1] if len(values) == 2 else values[0]
    np.testing.assert_allclose(np.sort_complex(w2), np.sort_complex(w), atol=1e-5)


def test_what_is_not_finite_fails() -> None:
    """LAPACK does not see it: it might not come to an end."""
    for name, call, options in CALLS[7:9]:
        module = mlirhlo.parse(custom_call(name, call, options, "f32"))
        (a,) = random_arguments(module, np.random.default_rng(0))
        a[..., 2, 1] = np.inf
        info = arrays(mlirhlo.compile(module)(a))[-1]
        assert (info == arrays(module(a))[-1]).all()
        assert info.all()


def test_one_target_with_other_options_is_another_kernel() -> None:
    text = """ENTRY e {
  a = f64[3,3] parameter(0)
  b = f64[3,1] parameter(1)
  x = f64[3,1] custom-call(a, b), custom_call_target="lapack_dtrsm_ffi", backend_config={uplo = 76 : ui8}
  ROOT y = f64[3,1] custom-call(a, x), custom_call_target="lapack_dtrsm_ffi", backend_config={uplo = 85 : ui8}
}"""
    module = mlirhlo.parse(text)
    given = random_arguments(module, np.random.default_rng(0))
    np.testing.assert_allclose(mlirhlo.compile(module)(*given), module(*given), rtol=1e-12)


def test_without_the_library_python_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(symbol: str) -> None:
        del symbol

    monkeypatch.setattr(routines, "address", none)
    turned = "c64[2,8]{0,1} fft(c64[2,8]{0,1} x), fft_type=FFT, fft_length={8}"
    for text in (turned, custom_call(*CALLS[3], "f64")):
        assert len(lower(mlirhlo.parse(text).op).plan.sites) == 1


def test_shapes_that_do_not_fit_end_in_an_error() -> None:
    module = mlirhlo.parse("c64[3,8] fft(c64[3,8] x), fft_type=FFT, fft_length={7}")
    with pytest.raises(HloError) as problem:
        mlirhlo.compile(module)(np.zeros((3, 8), np.complex64))
    assert problem.value.code == "HLO0355"
