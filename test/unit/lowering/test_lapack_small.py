"""Factors and solutions of small matrices, which are loops, and of those a row larger, against the interpreter."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from lapack_calls import arrays, custom_call, random_arguments

import mlirhlo
from mlirhlo.lowering import routines
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")
if routines.address(f"{routines.LAPACK}dgeqrf") is None:
    pytest.skip("NumPy was built without the libraries", allow_module_level=True)

ORDERS = (1, 2, 3, 8, 16, 17)
LETTERS = {"side": "LR", "uplo": "LU", "trans_x": "NTC", "diag": "NU"}


def agrees(module: mlirhlo.Module, given: list[Any], tolerance: float) -> list[Any]:
    """Results, which are the interpreter's."""
    found = arrays(mlirhlo.compile(module)(*given))
    for a, b in zip(found, arrays(module(*given)), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    return found


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("uplo", [76, 85])
@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize(("element", "tolerance"), [("f64", 1e-12), ("f32", 1e-4)])
def test_potrf(element: str, tolerance: float, n: int, uplo: int) -> None:
    call = f"(T[3,{n},{n}], s32[3]) S(T[3,{n},{n}] a)"
    module = mlirhlo.parse(custom_call("potrf", call, f"uplo = {uplo} : ui8", element))
    agrees(module, random_arguments(module, np.random.default_rng(n)), tolerance)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("minor", [1, 2, 5])
def test_the_first_minor_that_is_not_positive_is_told(minor: int) -> None:
    module = mlirhlo.parse(
        custom_call("potrf", "(T[2,5,5], s32[2]) S(T[2,5,5] a)", "uplo = 76 : ui8", "f64")
    )
    (a,) = random_arguments(module, np.random.default_rng(0))
    a[1, minor - 1, minor - 1] = -1.0
    _, info = arrays(mlirhlo.compile(module)(a))
    assert info.tolist() == [0, minor]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("m", ORDERS)
@pytest.mark.parametrize("n", ORDERS)
def test_getrf(m: int, n: int) -> None:
    call = f"(T[3,{m},{n}], s32[3,{min(m, n)}], s32[3]) S(T[3,{m},{n}] a)"
    module = mlirhlo.parse(custom_call("getrf", call, "", "f64"))
    agrees(module, [np.random.default_rng(m).normal(size=(3, m, n))], 1e-11)


def test_a_pivot_that_is_zero_is_told() -> None:
    module = mlirhlo.parse(
        custom_call("getrf", "(T[2,3,3], s32[2,3], s32[2]) S(T[2,3,3] a)", "", "f64")
    )
    a = np.array([[[0, 2, 1], [0, 4, 3], [0, 1, 5]], [[1, 2, 3], [2, 4, 6], [4, 8, 12]]], float)
    *_, info = agrees(module, [a], 1e-14)
    assert info.tolist() == [1, 2]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("n", [1, 4, 17])
@pytest.mark.parametrize("letters", list(product(*LETTERS.values())), ids="".join)
def test_trsm(letters: tuple[str, ...], n: int) -> None:
    options = ", ".join(f"{k} = {ord(v)} : ui8" for k, v in zip(LETTERS, letters, strict=True))
    shape = f"{n},3" if letters[0] == "L" else f"3,{n}"
    module = mlirhlo.parse(
        custom_call("trsm", f"T[2,{shape}] S(T[2,{n},{n}] a, T[2,{shape}] b)", options, "f64")
    )
    a, b = random_arguments(module, np.random.default_rng(n))
    agrees(module, [a / np.sqrt(np.einsum("bii->bi", a))[:, :, None], b], 1e-9)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("n", "calls"), [(16, 0), (17, 1)])
def test_small_ones_are_loops(n: int, calls: int) -> None:
    """No call of the library."""
    call = f"(T[9,{n},{n}], s32[9]) S(T[9,{n},{n}] a)"
    text = custom_call("potrf", call, "uplo = 76 : ui8", "f32")
    loops = str(lower(mlirhlo.parse(text).op).loops)
    assert loops.count(f"@{routines.LAPACK}spotrf(") // 2 == calls
