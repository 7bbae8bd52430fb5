"""Sorts and top-k in tiles and runs, on the simulator, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.lowering.schedule import sorts

LESS = """less { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT }
"""
SORT = (
    "ENTRY e {{ x = f32[{0}] parameter(0) i = s32[{0}] iota(), iota_dimension={1}\n"
    "  ROOT s = (f32[{0}], s32[{0}]) sort(x, i), dimensions={{{1}}}, is_stable=true, to_apply=less }}\n"
)
TOP = (
    "HloModule m\nENTRY e {{ x = f32[{0}] parameter(0)\n"
    "  ROOT t = (f32[{1}], s32[{1}]) topk(x), k={2}, largest=true }}\n"
)


def compare(text: str, sizes: tuple[int, ...]) -> None:
    """Many equal numbers: their order tells whether the sort is stable."""
    x = np.random.default_rng(1).integers(-9, 10, sizes).astype(np.float32)
    want = run_module(parse_module(text), [x])
    compiled: Any = mlirhlo.compile(mlirhlo.parse(text), platform="gpu", gpu="h100")
    got: Any = compiled(x)
    assert not compiled.findings
    for one, other in zip(got, want, strict=True):
        assert np.array_equal(np.asarray(one), other)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("sizes", "dim"),
    [
        ((1,), 0),
        ((5, 7), 1),
        ((9, 40), 1),
        ((3, 100), 0),
        ((2, 130, 3), 1),
        ((2, 513), 1),
        ((8, 32), 1),
        ((2, 1500), 1),
        ((1500, 2), 0),
        ((5000,), 0),
        # Of four tiles the first launch writes where the operands are; the last one is not full.
        ((2331,), 0),
        ((2, 3001), 1),
        ((2331, 2), 0),
        ((2, 0), 1),
    ],
)
def test_sort(sizes: tuple[int, ...], dim: int) -> None:
    compare(f"HloModule m\n{LESS}{SORT.format(','.join(map(str, sizes)), dim)}", sizes)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("sizes", "k"), [((3, 9), 2), ((2, 600), 5), ((40,), 40), ((2, 5000), 7), ((1500,), 800)]
)
def test_top_k(sizes: tuple[int, ...], k: int) -> None:
    kept = (*sizes[:-1], k)
    shapes = [",".join(map(str, s)) for s in (sizes, kept)]
    compare(TOP.format(*shapes, k), sizes)


@pytest.fixture
def by_digits(monkeypatch):
    """Sorts by a key go by digits, however short."""
    monkeypatch.setattr(sorts, "_TILE", 0)


def keyed(sizes: str, dim: int, element: str, body: str) -> str:
    """A sort of keys with their numbers."""
    head = f"less {{ a = {element}[] parameter(0) b = {element}[] parameter(1)"
    return (
        f"HloModule m\n{head} i = s32[] parameter(2) j = s32[] parameter(3)\n{body} }}\n"
        f"ENTRY e {{ x = {element}[{sizes}] parameter(0) i = s32[{sizes}] iota(), iota_dimension={dim}\n"
        f"  ROOT s = ({element}[{sizes}], s32[{sizes}]) sort(x, i), dimensions={{{dim}}}, to_apply=less }}\n"
    )


LT = "ROOT c = pred[] compare(a, b), direction=LT"
GT = "ROOT c = pred[] compare(a, b), direction=GT"
TOTAL = f"{GT}, type=TOTALORDER"
DTYPES = {"u8": "u1", "s32": "i4", "f32": "f4", "f16": "f2", "pred": "?", "s64": "i8", "f64": "f8"}
KEYS = [
    ("2500", 0, "u8", LT),
    ("2,2100", 1, "s32", GT),
    ("2100,2", 0, "f32", LT),
    ("2,2049", 1, "f16", TOTAL),
    ("2048", 0, "pred", LT),
    ("2300", 0, "s64", LT),
    ("40", 0, "f64", TOTAL),
    (
        "3,50",
        1,
        "f32",
        "n = f32[] abs(a) m = f32[] abs(b) ROOT c = pred[] compare(n, m), direction=LT",
    ),
]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("sizes", "dim", "element", "body"), KEYS)
def test_keys(sizes, dim, element, body, by_digits):
    """Ties, both zeros and, in a total order, NaNs keep their order."""
    dims = tuple(map(int, sizes.split(",")))
    random = np.random.default_rng(2)
    x: Any = random.integers(0, 2 if element == "pred" else 100, dims)
    if element[0] in "fs":
        x = (x - 50) * (1 << 40 if element == "s64" else 1)
    x = x.astype(DTYPES[element])
    if element[0] == "f":
        x = np.where(random.random(dims) < 0.1, -x * 0, x).astype(x.dtype)
        if "TOTAL" in body:
            x.reshape(-1)[[3, 7]] = np.nan, -np.nan
    entries = check_sort(keyed(sizes, dim, element, body), x)
    assert entries == 2 + max(x.dtype.itemsize, 1)


def check_sort(text: str, x: Any) -> int:
    """The interpreter's results, bit for bit and without findings; the number of launches of the sort."""
    want = run_module(parse_module(text), [x])
    compiled: Any = mlirhlo.compile(mlirhlo.parse(text), platform="gpu", gpu="h100")
    got: Any = compiled(x)
    assert not list(map(str, compiled.findings))
    for one, other in zip(got, want, strict=True):
        assert np.asarray(one).tobytes() == other.tobytes()
    return sum(k.entry.startswith("sort") for k in compiled.figures)


def test_nans_without_an_order_are_kept(by_digits):
    """Of which the comparator says nothing: the results are the operands in some order."""
    x = np.array([3, np.nan, -1, np.nan, 2], np.float32)
    compiled: Any = mlirhlo.compile(mlirhlo.parse(keyed("5", 0, "f32", LT)), platform="gpu")
    keys, numbers = compiled(x)
    assert sorted(numbers) == list(range(5))
    np.testing.assert_array_equal(keys, x[np.asarray(numbers)])


def test_any_comparator_merges(by_digits):
    body = "s = f32[] add(a, b) z = f32[] constant(0) ROOT c = pred[] compare(s, z), direction=LT"
    text = keyed("3", 0, "f32", body)
    compiled: Any = mlirhlo.compile(mlirhlo.parse(text), platform="gpu")
    compiled(np.ones(3, np.float32))
    assert sum(k.entry.startswith("sort") for k in compiled.figures) == 1


def test_many_of_long_rows(by_digits):
    compare(TOP.format("2,5000", "2,1500", 1500), (2, 5000))
