"""What surrounds factors in GPU libraries, written out, against the calls' meanings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lapack_calls import arrays

import mlirhlo
from mlirhlo.rewrites.linear_algebra import qr_expander

TYPED = "api_version=API_VERSION_TYPED_FFI"
CHOLESKY = 'custom_call_target="__cusolver$cholesky", backend_config="{\\"lower\\":%s}"'
CALLS = (
    f"(f32[2,5,5], f32[64], s32[2]) custom-call(f32[2,5,5] a), {CHOLESKY % 'true'}",
    f"(f32[5,5]{{0,1}}, f32[64], s32[]) custom-call(f32[5,5]{{0,1}} a), {CHOLESKY % 'false'}",
    '(f32[2,6,4], s32[2,4], s32[2,6]) custom-call(f32[2,6,4] a), custom_call_target="LuDecomposition"',
    's32[2,6] custom-call(s32[2,4] p), custom_call_target="LuPivotsToPermutation"',
    f's32[6] custom-call(s32[4] p), custom_call_target="cu_lu_pivots_to_permutation", {TYPED}',
    (
        f"(f32[4,6], f32[4], f32[4,4], f32[6,4], s32[]) custom-call(f32[4,6] a),"
        f' custom_call_target="cusolver_gesvdp_ffi", {TYPED}'
    ),
    (
        f"(f32[2,5,5], f32[2,5], f32[2,5,5], f32[2,5,5], s32[2]) custom-call(f32[2,5,5] a),"
        f' custom_call_target="cusolver_gesvdj_ffi", {TYPED}'
    ),
    (
        f"f32[4,4] custom-call(f32[4,3] a, f32[4,4] c, f32[] s, f32[] b),"
        f' custom_call_target="cusolver_syrk_ffi", backend_config={{transpose = false}}, {TYPED}'
    ),
    (
        f"f32[3,3] custom-call(f32[4,3] a, f32[3,3] c, f32[] s, f32[] b),"
        f' custom_call_target="cusolver_syrk_ffi", backend_config={{transpose = true}}, {TYPED}'
    ),
    f'(f32[4,4], f32[4]) custom-call(f32[4,4] r, f32[4] w), custom_call_target="cu_cholesky_update_ffi", {TYPED}',
    (
        "(u32[4], u32[4]) custom-call(u32[4] k, u32[4] l, u32[4] x, u32[4] y),"
        f' custom_call_target="cu_threefry2x32_ffi", {TYPED}'
    ),
)
PASSES = "library-call-expander,lapack-expander"


def operands(module: mlirhlo.Module, text: str) -> list[Any]:
    random = np.random.default_rng(5)
    found: list[Any] = []
    for parameter in module.hlo.entry.parameters:
        shape: Any = parameter.shape
        x: Any = random.normal(size=shape.dimensions)
        if 'cholesky"' in text:
            x = x @ np.swapaxes(x, -1, -2) + np.eye(5)
        elif shape.element_type.name == "s32":
            x = np.broadcast_to([3, 1, 5, 4], shape.dimensions)
        elif shape.element_type.name == "u32":
            x = random.integers(0, 2**32, shape.dimensions)
        found.append(x.astype(shape.element_type.dtype))
    return found


@pytest.mark.parametrize("text", CALLS)
def test_results(text: str) -> None:
    """Up to the signs of singular vectors."""
    module, expanded = (mlirhlo.parse(text) for _ in range(2))
    expanded.opt(PASSES)
    left = str(expanded).count("custom-call(")
    assert left == str(expanded).count('"cusolver_getrf_ffi"') + str(expanded).count(
        '"cusolver_potrf_ffi"'
    )
    inputs = operands(module, text)
    is_free = "gesvd" in text
    for mine, other in zip(arrays(expanded(*inputs)), arrays(module(*inputs)), strict=True):
        pair = (np.abs(mine), np.abs(other)) if is_free else (mine, other)
        np.testing.assert_allclose(*pair, 2e-6, 2e-6)


def test_other_forms_stay() -> None:
    text = '(f32[6,4], s32[4]) custom-call(f32[6,4] a), custom_call_target="LuDecomposition"'
    assert "custom-call" in str(mlirhlo.parse(text).opt(PASSES))


QR = '(T[2,M,N], T[2,K]) custom-call(T[2,M,N] a), custom_call_target="Qr"'
PRODUCT = 'T[2,M,N] custom-call(T[2,M,N] a, T[2,K] t), custom_call_target="ProductOfElementaryHouseholderReflectors"'


@pytest.mark.parametrize("element", ["f64", "c128"])
@pytest.mark.parametrize(("m", "n"), [(9, 7), (7, 9), (8, 8), (6, 5)])
def test_blocks_of_reflections(m: int, n: int, element: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(qr_expander, "BLOCK", 4)
    random = np.random.default_rng(6)
    found: list[Any] = []
    for text in (QR, PRODUCT):
        for key, value in (("T", element), ("M", m), ("N", n), ("K", min(m, n))):
            text = text.replace(
                f"{key}[" if key == "T" else key, f"{value}[" if key == "T" else str(value)
            )
        module, expanded = (mlirhlo.parse(text) for _ in range(2))
        expanded.opt("qr_expander")
        if not found:
            a = random.normal(size=(2, m, n)) + (
                1j * random.normal(size=(2, m, n)) if element == "c128" else 0
            )
            a[0, :, 1] = 0
            found = [a]
        elif n > m:
            continue
        got = arrays(expanded(*found))
        for mine, other in zip(got, arrays(module(*found)), strict=True):
            np.testing.assert_allclose(mine, other, 1e-11, 1e-12)
        found = got
