"""Sorts and top-k in tiles and runs, on the simulator, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module

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
        ((2, 0), 1),
    ],
)
def test_sort(sizes: tuple[int, ...], dim: int) -> None:
    compare(f"HloModule m\n{LESS}{SORT.format(','.join(map(str, sizes)), dim)}", sizes)


@pytest.mark.parametrize(
    ("sizes", "k"), [((3, 9), 2), ((2, 600), 5), ((40,), 40), ((2, 5000), 7), ((1500,), 800)]
)
def test_top_k(sizes: tuple[int, ...], k: int) -> None:
    kept = (*sizes[:-1], k)
    shapes = [",".join(map(str, s)) for s in (sizes, kept)]
    compare(TOP.format(*shapes, k), sizes)
