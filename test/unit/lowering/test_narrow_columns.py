"""Folds of a few long columns, which are worked on as rows are, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import ARGMAX, agrees, draw, loops_of, reducer
from unit.lowering.test_fold_kernels import EPSILON, text_of

import mlirhlo
from mlirhlo.lowering import target

pytest.importorskip("llvmlite")


def variance(type_: str, outer: int, length: int, width: int) -> str:
    """Sums of squares of what is left of a column without its mean, and its greatest element."""
    whole, kept = f"{type_}[{outer},{length},{width}]", f"{type_}[{outer},{width}]"
    return text_of(
        f"""  x = {whole} parameter(0)
  zero = {type_}[] constant(0)
  low = {type_}[] constant(-inf)
  s = {kept} reduce(x, zero), dimensions={{1}}, to_apply=sum
  n = {type_}[] constant({length})
  nb = {kept} broadcast(n), dimensions={{}}
  m = {kept} divide(s, nb)
  mb = {whole} broadcast(m), dimensions={{0,2}}
  d = {whole} subtract(x, mb)
  q = {whole} multiply(d, d)
  v = {kept} reduce(q, zero), dimensions={{1}}, to_apply=sum
  g = {kept} reduce(x, low), dimensions={{1}}, to_apply=most
  ROOT t = ({kept}, {kept}) tuple(v, g)""",
        reducer("sum", type_, "add"),
        reducer("most", type_, "maximum"),
    )


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.sampled_from(["f32", "f64", "bf16"]),
    st.sampled_from([1, 3, 17]),
    st.sampled_from([64, 71, 128, 1000]),
    st.integers(1, 5),
    st.sampled_from([None, target.GENERIC, target.AVX2]),
)
def test_columns(
    type_: str, outer: int, length: int, width: int, processor: target.Target | None
) -> None:
    x = draw(np.random.default_rng(0), type_, (outer, length, width))
    with target.using(processor or target.host()):
        agrees(variance(type_, outer, length, width), [x], tolerance=EPSILON[type_])


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("type_", ["s32", "u8", "pred", "s64", "c64", "s4"])
@pytest.mark.parametrize("width", [2, 3])
def test_columns_of_other_types(type_: str, width: int) -> None:
    word = {"pred": "or", "c64": "add"}.get(type_, "maximum")
    starts = {"s32": "-2147483648", "s64": "-9223372036854775808", "s4": "-8", "c64": "(0, 0)"}
    start = starts.get(type_, "0")
    x = draw(np.random.default_rng(0), type_, (300, width))
    text = text_of(
        f"  x = {type_}[300,{width}] parameter(0)\n  i = {type_}[] constant({start})\n"
        f"  ROOT r = {type_}[{width}] reduce(x, i), dimensions={{0}}, to_apply=fold",
        reducer("fold", type_, word),
    )
    agrees(text, [x], tolerance=1e-5)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_high_columns_in_pieces(threads: int) -> None:
    x = draw(np.random.default_rng(0), "f32", (1, 70001, 3))
    agrees(variance("f32", 1, 70001, 3), [x], tolerance=2e-5, threads=threads)


def test_places_of_the_greatest() -> None:
    """A fold of two arrays: the first of equal ones."""
    text = text_of(
        """  x = f32[200,3] parameter(0)
  i = s32[200,3] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[3], s32[3]) reduce(x, i, low, zero), dimensions={0}, to_apply=pick""",
        ARGMAX.replace("DIRECTION", "GT").replace("TYPE", "f32"),
    )
    agrees(text, [np.round(draw(np.random.default_rng(0), "f32", (200, 3)) * 2)])


def test_what_does_not_depend_on_the_column_is_computed_once() -> None:
    text = text_of(
        """  x = f32[256] parameter(0)
  y = f32[256,3] parameter(1)
  zero = f32[] constant(0)
  c = f32[256] cosine(x)
  cb = f32[256,3] broadcast(c), dimensions={0}
  p = f32[256,3] multiply(cb, y)
  ROOT r = f32[3] reduce(p, zero), dimensions={0}, to_apply=sum""",
        reducer("sum", "f32", "add"),
    )
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, "f32", (256,)), draw(rng, "f32", (256, 3))], tolerance=1e-5)
    alone = text.replace("256,3", "256,1").replace("f32[3]", "f32[1]")
    rounded = [str(loops_of(mlirhlo.parse(t))).count("math.fma") for t in (text, alone)]
    assert 0 < rounded[0] < 2 * rounded[1]
