"""Sorts and top-k as machine code, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.interp.fake_data import make_fake_arguments

pytest.importorskip("llvmlite")

LESS = "ROOT r = pred[] compare(a, b), direction=LT"
GREATER = "ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER"
SIZES = (1, 5, 37, 128, 129, 1000)
"""Without vectors, with a rest, the last length that is ordered by counting, by radix."""


def agree(text: str, *arguments: Any) -> None:
    """Compiled without callbacks, and the interpreter's result bit for bit."""
    module = mlirhlo.parse(text)
    executable = mlirhlo.compile(module, cached=False)
    given = arguments or make_fake_arguments(module.op, seed=1)
    actual, expected = executable(*given), module(*given)
    assert not executable.callbacks
    many = isinstance(expected, tuple)
    for a, e in zip(actual if many else [actual], expected if many else [expected], strict=True):
        if a.dtype.name == "int4":
            np.testing.assert_array_equal(a, e)
        else:
            assert a.tobytes() == np.asarray(e).tobytes()


def one_array(type_: str, shape: str, dim: int, comparator: str) -> str:
    return (
        f"HloModule m\nc {{ a = {type_}[] parameter(0)\n b = {type_}[] parameter(1)\n {comparator} }}\n"
        f"ENTRY e {{ x = {type_}{shape} parameter(0)\n"
        f" ROOT r = {type_}{shape} sort(x), dimensions={{{dim}}}, to_apply=c }}\n"
    )


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("length", SIZES)
@pytest.mark.parametrize("type_", ["f32", "bf16", "f64", "s32", "u8", "s4", "pred", "u64"])
def test_types(type_: str, length: int) -> None:
    agree(one_array(type_, f"[3,{length}]", 1, LESS))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f16", "bf16", "f64", "f8e4m3fn"])
def test_total_order(type_: str) -> None:
    """NaNs of both signs, zeros of both, infinities; backwards."""
    text = one_array(type_, "[2,300]", 1, GREATER)
    (x,) = (np.array(a) for a in make_fake_arguments(mlirhlo.parse(text).op, seed=1))
    specials = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf]
    for n, number in enumerate(specials):
        x[:, n::13] = number
    agree(text, x)


def test_zeros_keep_their_places() -> None:
    """0 and -0 are equal where the order is not total."""
    zeros = np.array([0.0, -0.0, 1.0, -1.0] * 100, "f4").reshape(1, 400)
    agree(one_array("f32", "[1,400]", 1, LESS), zeros)


def test_nan_without_a_place_ends() -> None:
    """An order that has no place for NaN gives some permutation."""
    x = np.arange(400, dtype="f4")[::-1].copy()
    x[::5] = np.nan
    executable = mlirhlo.compile(mlirhlo.parse(one_array("f32", "[400]", 0, LESS)), cached=False)
    result = executable(x)
    np.testing.assert_array_equal(np.sort(result), np.sort(x))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "s64"])
def test_long_rows(type_: str) -> None:
    """Longer than the nearest cache, and no multiple of a line."""
    agree(one_array(type_, "[40001]", 0, LESS))


BY_TWO = """c { a = f32[] parameter(0)
 b = f32[] parameter(1)
 p = s32[] parameter(2)
 q = s32[] parameter(3)
 l = pred[] compare(a, b), direction=LT
 e = pred[] compare(a, b), direction=EQ
 t = pred[] compare(p, q), direction=GT
 et = pred[] and(e, t)
 ROOT r = pred[] or(l, et) }"""
BY_ABS = """c { a = f32[] parameter(0)
 b = f32[] parameter(1)
 p = s32[] parameter(2)
 q = s32[] parameter(3)
 x = s32[] abs(p)
 y = s32[] abs(q)
 ROOT r = pred[] compare(y, x), direction=GT }"""
MORE_OR_EQUAL = """c { a = f32[] parameter(0)
 b = f32[] parameter(1)
 p = s32[] parameter(2)
 q = s32[] parameter(3)
 n = f32[] negate(a)
 m = f32[] negate(b)
 ROOT r = pred[] compare(n, m), direction=GT }"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("comparator", [BY_TWO, BY_ABS, MORE_OR_EQUAL])
@pytest.mark.parametrize(
    ("dim", "shape"), [(0, "[37,5]{0,1}"), (1, "[3,33]"), (0, "[1000]"), (1, "[4,300,3]")]
)
def test_several_arrays(dim: int, shape: str, comparator: str) -> None:
    text = f"""HloModule m
{comparator}
ENTRY e {{ x = f32{shape} parameter(0)
 n = s32{shape} parameter(1)
 ROOT r = (f32{shape}, s32{shape}) sort(x, n), dimensions={{{dim}}}, to_apply=c }}
"""
    random = np.random.default_rng(3)
    sizes = np.asarray(make_fake_arguments(mlirhlo.parse(text).op)[0]).shape
    agree(text, random.integers(-9, 9, sizes).astype("f4"), random.integers(-5, 5, sizes, "i4"))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("largest", ["true", "false"])
@pytest.mark.parametrize(
    ("length", "k"),
    [
        *[(5, 3), (1000, 8), (1000, 100), (300, 64), (40, 40), (257, 2), (130, 1)],
        *[(128, 128), (64, 2), (6400, 1000), (449, 112), (448, 112), (2000, 17)],
    ],
)
@pytest.mark.parametrize("type_", ["f32", "bf16", "f64", "u8"])
def test_topk(type_: str, length: int, k: int, largest: str) -> None:
    text = f"""HloModule m
ENTRY e {{ x = {type_}[4,{length}] parameter(0)
 ROOT r = ({type_}[4,{k}], s32[4,{k}]) topk(x), k={k}, largest={largest} }}
"""
    (given,) = (np.array(a) for a in make_fake_arguments(mlirhlo.parse(text).op))
    x = np.random.default_rng(5).integers(0, 30, given.shape).astype(given.dtype)
    if type_ != "u8":
        x[1, ::3] = np.nan
        x[2, ::2] = -0.0
    agree(text, x)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("largest", ["true", "false"])
@pytest.mark.parametrize("type_", ["s32", "u32", "s16", "f16"])
def test_topk_of_ordered_rows(type_: str, largest: str) -> None:
    """Every element is better than all before it, or worse, or equal to the best or worst there is."""
    for length, k in ((1001, 20), (100, 7)):
        text = f"""HloModule m
ENTRY e {{ x = {type_}[5,{length}] parameter(0)
  ROOT r = ({type_}[5,{k}], s32[5,{k}]) topk(x), k={k}, largest={largest} }}
"""
        (given,) = (np.array(a) for a in make_fake_arguments(mlirhlo.parse(text).op))
        x = np.zeros_like(given)
        x[0], x[1] = np.arange(length), np.arange(length)[::-1]
        info = np.finfo(x.dtype) if type_ == "f16" else np.iinfo(x.dtype)
        x[3], x[4] = info.max, info.min
        agree(text, x)
