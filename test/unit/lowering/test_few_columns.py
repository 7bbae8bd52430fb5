"""Matrices times few columns: lanes go along the depth, and the columns are copied along it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lowering.contraction_support import agrees

import mlirhlo
from mlirhlo.lowering import target
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")

TYPES = ["f32", "f64", "bf16", "f16", "s32", "s64", "s8", "pred"]


def product(type_: str, rows: int, depth: int, columns: int, *, along: bool, add: bool) -> str:
    """`a[rows, depth] * b`, with or without something added."""
    b, inner = (f"{columns},{depth}", 1) if along else (f"{depth},{columns}", 0)
    whole = f"{type_}[{rows},{columns}]"
    dot = f"dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{inner}}}"
    combine = "or" if type_ == "pred" else "add"
    last = (
        f"d = {whole} {dot}\n  ROOT r = {whole} {combine}(d, c)"
        if add
        else f"ROOT d = {whole} {dot}"
    )
    return f"""HloModule m
ENTRY e {{
  a = {type_}[{rows},{depth}] parameter(0)
  b = {type_}[{b}] parameter(1)
  c = {whole} parameter(2)
  {last}
}}
"""


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.sampled_from(TYPES),
    st.integers(5, 60),
    st.integers(60, 300),
    st.integers(2, 4),
    st.booleans(),
    st.booleans(),
)
@pytest.mark.slow
def test_any(type_: str, rows: int, depth: int, columns: int, along: bool, add: bool) -> None:
    agrees(product(type_, rows, depth, columns, along=along, add=add))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("along", [True, False])
def test_lanes_go_along_the_depth(along: bool) -> None:
    with target.using(target.AVX512):
        few, many = (
            str(lower(mlirhlo.parse(product("f32", 50, 100, n, along=along, add=False)).op).loops)
            for n in (3, 5)
        )
    assert "vector.reduction" in few
    assert "vector.reduction" not in many


def test_a_short_depth_goes_in_tiles() -> None:
    with target.using(target.AVX512):
        text = str(lower(mlirhlo.parse(product("f32", 50, 40, 3, along=True, add=False)).op).loops)
    assert "vector.reduction" not in text
