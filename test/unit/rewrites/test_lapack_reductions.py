"""Routines that `lapack-expander` writes out, against the interpreter's own, with batches, options, special inputs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from lapack_calls import CALLS, arrays, custom_call, random_arguments

import mlirhlo
from mlirhlo.dialects.hlo.ops import CustomCallOp

MORE = (
    ("geqp3", "(T[2,5,7], s32[2,7], T[2,5]) S(T[2,5,7] a, s32[2,7] p)", ""),
    ("geqp3", "(T[1,3], s32[3], T[1]) S(T[1,3] a, s32[3] p)", ""),
    ("gehrd", "(T[3,6,6], T[3,5], s32[3]) S(T[3,6,6] a)", "low = 2 : i32, high = 5 : i32"),
    ("gehrd", "(T[2,2], T[1], s32[]) S(T[2,2] a)", "low = 1 : i32, high = 2 : i32"),
    ("sytrd", "(T[2,5,5], R[2,5], R[2,4], T[2,4], s32[2]) S(T[2,5,5] a)", "uplo = 85 : ui8"),
    ("sytrd", "(T[2,2], R[2], R[1], T[1], s32[]) S(T[2,2] a)", "uplo = 76 : ui8"),
    (
        "gtsv",
        "(T[3,6], T[3,6], T[3,6], T[3,6,2], s32[3]) S(T[3,6] l, T[3,6] d, T[3,6] u, T[3,6,2] b)",
        "",
    ),
    ("gtsv", "(T[1], T[1], T[1], T[1,1], s32[]) S(T[1] l, T[1] d, T[1] u, T[1,1] b)", ""),
)
REDUCTIONS = ("geqp3", "gehrd", "sytrd", "gtsv")


def expanded(module: mlirhlo.Module) -> mlirhlo.Module:
    """The module with its routines written out."""
    found = mlirhlo.parse(str(module)).opt("lapack-expander")
    assert not any(isinstance(op, CustomCallOp) for op in found.hlo.instructions)
    return found


def check(module: mlirhlo.Module, arguments: list[Any], said: str) -> None:
    pairs = zip(arrays(expanded(module)(*arguments)), arrays(module(*arguments)), strict=True)
    for got, wanted in pairs:
        np.testing.assert_allclose(got, wanted, atol=1e-11, rtol=1e-11, err_msg=said)


@pytest.mark.parametrize("element", ["f64", "c128"])
def test_as_the_interpreter(element: str) -> None:
    rng = np.random.default_rng(5)
    for name, call, options in (*CALLS, *MORE):
        if name in REDUCTIONS:
            module = mlirhlo.parse(custom_call(name, call, options, element))
            check(module, random_arguments(module, rng), f"{name} {call}")


def test_columns_that_come_first() -> None:
    module = mlirhlo.parse(custom_call("geqp3", MORE[0][1], "", "f64"))
    matrix, pivots = random_arguments(module, np.random.default_rng(1))
    pivots[0, [2, 5]] = 1
    check(module, [matrix, pivots], "pivots")
    matrix[0, :, 1] = matrix[0, :, 4]  # equally long: the first one
    check(module, [matrix, np.zeros_like(pivots)], "ties")
    check(module, [np.zeros_like(matrix), pivots], "zeros")


def test_rows_that_are_exchanged_and_pivots_of_zero() -> None:
    module = mlirhlo.parse(custom_call(*MORE[6], "f64"))
    low, own, high, b = random_arguments(module, np.random.default_rng(2))
    own[0] = 0.01
    own[1, 2] = low[1, 3] = 0
    own[2, 5] = high[2, 4] = low[2, 5] = 0
    with np.errstate(all="ignore"):
        got, wanted = (arrays(m(low, own, high, b)) for m in (expanded(module), module))
    np.testing.assert_array_equal(got[4], wanted[4])
    assert (wanted[4] > 0).any()
    for one, other in zip(got[:4], wanted[:4], strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-11)


def test_cusparse_gives_the_solution_alone() -> None:
    text = custom_call(*MORE[6], "f32")
    text = re.sub(r"^\(.*?s32\[3\]\)", "f32[3,6,2]", text).replace(
        "lapack_sgtsv_ffi", "cusparse_gtsv2_ffi"
    )
    module = mlirhlo.parse(text)
    arguments = random_arguments(module, np.random.default_rng(3))
    (got,), (wanted,) = (arrays(m(*arguments)) for m in (expanded(module), module))
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
