"""Elementwise kernels of few columns, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import agrees, draw, loops_of

import mlirhlo
from mlirhlo.lowering import target

pytest.importorskip("llvmlite")


def rows_and_columns(type_: str, outer: str, rows: int, width: int) -> tuple[str, list[str]]:
    """What is beside each row, and each column, of a matrix; as results of two types."""
    whole, first = f"[{outer}{rows},{width}]", f"{type_}[{outer}{rows}]"
    dims = ",".join(str(n) for n in range(outer.count(",") + 1))
    last = outer.count(",") + 1
    word = "or" if type_ == "pred" else "add"
    text = f"""ENTRY e {{
  x = {type_}{whole} parameter(0)
  r = {first} parameter(1)
  c = {type_}[{width}] parameter(2)
  rb = {type_}{whole} broadcast(r), dimensions={{{dims}}}
  cb = {type_}{whole} broadcast(c), dimensions={{{last}}}
  s = {type_}{whole} {word}(x, rb)
  t = {type_}{whole} {word}(s, cb)
  g = pred{whole} compare(t, rb), direction=GT
  ROOT p = ({type_}{whole}, pred{whole}) tuple(t, g)
}}
"""
    return text, [f"{outer}{rows},{width}", f"{outer}{rows}", str(width)]


def numbers(rng: np.random.Generator, type_: str, sizes: str) -> np.ndarray:
    return draw(rng, type_, tuple(map(int, sizes.split(","))))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from(["f32", "f64", "bf16", "f16", "s32", "u8", "s64", "pred", "s4"]),
    st.sampled_from(["", "3,", "2,3,"]),
    st.sampled_from([16, 17, 31, 64, 100, 4096, 8200]),
    st.integers(1, 5),
    st.sampled_from([None, target.GENERIC, target.AVX2]),
)
def test_rows_and_columns(
    type_: str, outer: str, rows: int, width: int, processor: target.Target | None
) -> None:
    text, sizes = rows_and_columns(type_, outer, rows, width)
    rng = np.random.default_rng(0)
    with target.using(processor or target.host()):
        agrees(text, [numbers(rng, type_, s) for s in sizes], threads=2)


MOVES = {
    "columns of their own": (
        "a = f32[70] parameter(0)\n  b = f32[70] parameter(1)\n  c = f32[70,1] reshape(a)\n"
        "  d = f32[70,1] reshape(b)\n  n = f32[70,1] negate(d)\n"
        "  ROOT r = f32[70,3] concatenate(c, n, c), dimensions={1}"
    ),
    "turned": (
        "a = f32[3,70] parameter(0)\n  b = f32[70] parameter(1)\n"
        "  t = f32[70,3] transpose(a), dimensions={1,0}\n"
        "  d = f32[70,3] broadcast(b), dimensions={0}\n  ROOT r = f32[70,3] multiply(t, d)"
    ),
    "below each other": (
        "a = f32[40,3] parameter(0)\n  b = f32[33] parameter(1)\n"
        "  d = f32[33,3] broadcast(b), dimensions={0}\n"
        "  ROOT r = f32[73,3] concatenate(a, d), dimensions={0}"
    ),
    "with edges": (
        "a = f32[40,2] parameter(0)\n  z = f32[] parameter(1)\n"
        "  ROOT r = f32[47,4] pad(a, z), padding=3_4x1_1"
    ),
    "some of the columns": (
        "a = f32[70,7] parameter(0)\n  b = f32[70] parameter(1)\n"
        "  s = f32[70,3] slice(a), slice={[0:70],[1:7:2]}\n"
        "  d = f32[70,3] broadcast(b), dimensions={0}\n  ROOT r = f32[70,3] add(s, d)"
    ),
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    text = f"ENTRY e {{\n  {MOVES[name]}\n}}\n"
    module = mlirhlo.parse(text)
    rng = np.random.default_rng(0)
    arguments = [draw(rng, "f32", tuple(p.shape.dimensions)) for p in module.hlo.entry.parameters]
    agrees(text, arguments)
    mlirhlo.compile(module, debug=True)(*arguments)


def test_what_columns_share_is_computed_once_in_vectors() -> None:
    text, sizes = rows_and_columns("f32", "", 64, 3)
    text = text.replace(
        "rb = f32[64,3] broadcast(r)", "q = f32[64] sqrt(r)\n  rb = f32[64,3] broadcast(q)"
    )
    loops = str(loops_of(mlirhlo.parse(text)))
    assert loops.count("math.sqrt") == 1
    assert "vector<16xf32>" in loops
    rng = np.random.default_rng(0)
    x, r, c = (numbers(rng, "f32", s) for s in sizes)
    agrees(text, [x, np.abs(r), c], tolerance=1e-6)


def test_a_result_may_be_written_over_what_is_read_at_its_own_places() -> None:
    text = """HloModule m, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY e {
  x = f32[1000,3] parameter(0)
  r = f32[1000] parameter(1)
  b = f32[1000,3] broadcast(r), dimensions={0}
  ROOT s = f32[1000,3] multiply(x, b)
}
"""
    rng = np.random.default_rng(0)
    x, r = draw(rng, "f32", (1000, 3)), draw(rng, "f32", (1000,))
    wanted = x * r[:, None]
    np.testing.assert_array_equal(mlirhlo.compile(mlirhlo.parse(text))(x, r), wanted)
