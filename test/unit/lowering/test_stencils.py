"""Kernels that compute pads and concatenates with what reads them: every edge, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import agrees, draw, loops_of

import mlirhlo

pytest.importorskip("llvmlite")

TYPES = ["f32", "bf16", "u8", "f64", "pred", "s64", "c64"]


@st.composite
def stencils(draw_: st.DrawFn) -> tuple[str, str, tuple[int, ...]]:
    """A computation that adds an array's neighbours, its type and its sizes."""
    rank = draw_(st.integers(1, 3))
    sizes = tuple(draw_(st.sampled_from([2, 5, 17])) for _ in range(rank - 1))
    sizes = (*sizes, draw_(st.sampled_from([3, 16, 33, 64, 100, 130])))
    type_ = draw_(st.sampled_from(TYPES))
    whole = f"{type_}[{','.join(map(str, sizes))}]"
    lines = [f"x = {whole} parameter(0)", f"z = {type_}[] parameter(1)"]
    combine = "xor" if type_ == "pred" else "add"
    total = "x"
    for n in range(draw_(st.integers(1, 4))):
        d = draw_(st.integers(0, rank - 1))
        size = sizes[d]
        by = draw_(st.integers(1, min(size - 1, 20)))
        kind = draw_(st.sampled_from(["low", "high", "roll", "both"]))
        source = draw_(st.sampled_from(["x", total]))

        def part(name: str, low: int, high: int, d: int = d, source: str = source) -> str:
            taken = [f"[{low}:{high}]" if at == d else f"[0:{s}]" for at, s in enumerate(sizes)]
            kept = [high - low if at == d else s for at, s in enumerate(sizes)]
            shape = f"{type_}[{','.join(map(str, kept))}]"
            return f"{name} = {shape} slice({source}), slice={{{', '.join(taken)}}}"

        def padding(low: int, high: int, d: int = d) -> str:
            edges = [f"{low}_{high}" if at == d else "0_0" for at in range(rank)]
            return "padding=" + "x".join(edges)

        if kind == "roll":
            lines += [part(f"a{n}", size - by, size), part(f"b{n}", 0, size - by)]
            lines.append(f"m{n} = {whole} concatenate(a{n}, b{n}), dimensions={{{d}}}")
        elif kind == "both":
            longer = [s + 2 * by if at == d else s for at, s in enumerate(sizes)]
            shape = f"{type_}[{','.join(map(str, longer))}]"
            lines.append(f"p{n} = {shape} pad({source}, z), {padding(by, by)}")
            first = draw_(st.integers(0, 2 * by))
            lines.append(part(f"m{n}", first, first + size, source=f"p{n}"))
        else:
            low, high = (0, size - by) if kind == "low" else (by, size)
            edges = (by, 0) if kind == "low" else (0, by)
            lines.append(part(f"a{n}", low, high))
            lines.append(f"m{n} = {whole} pad(a{n}, z), {padding(*edges)}")
        lines.append(f"t{n} = {whole} {combine}({total}, m{n})")
        total = f"t{n}"
    body = "\n  ".join(lines)
    return f"ENTRY e {{\n  {body}\n  ROOT r = {whole} copy({total})\n}}\n", type_, sizes


@settings(max_examples=40, deadline=None, derandomize=True)
@given(stencils())
@pytest.mark.slow
def test_any_stencil(case: tuple[str, str, tuple[int, ...]]) -> None:
    text, type_, sizes = case
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, type_, sizes), draw(rng, type_, ())])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(stencils())
@pytest.mark.slow
def test_any_stencil_stays_inside_its_buffers(case: tuple[str, str, tuple[int, ...]]) -> None:
    text, type_, sizes = case
    rng = np.random.default_rng(1)
    args = [draw(rng, type_, sizes), draw(rng, type_, ())]
    found: Any = mlirhlo.compile(mlirhlo.parse(text), cached=False, debug=True)(*args)
    wanted: Any = mlirhlo.parse(text)(*args)
    assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


LAPLACE = """ENTRY e {{
  x = f32[9,9,{0}] parameter(0)
  z = f32[] constant(3)
  p = f32[11,11,{1}] pad(x, z), padding=1_1x1_1x1_1
  a = f32[9,9,{0}] slice(p), slice={{[0:9], [1:10], [1:{2}]}}
  b = f32[9,9,{0}] slice(p), slice={{[2:11], [1:10], [0:{0}]}}
  c = f32[9,9,{0}] slice(p), slice={{[1:10], [2:11], [2:{1}]}}
  s = f32[9,9,{0}] add(a, b)
  ROOT r = f32[9,9,{0}] add(s, c)
}}
"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("width", [17, 64, 70])
def test_more_edges_than_regions_gather_nothing(width: int) -> None:
    """Edges of other dimensions are tests that are the same for all lanes."""
    text = LAPLACE.format(width, width + 2, width + 1)
    assert "vector.gather" not in str(loops_of(mlirhlo.parse(text)))
    agrees(text, [draw(np.random.default_rng(0), "f32", (9, 9, width))])


def test_a_short_edge_takes_a_vector_of_its_neighbour() -> None:
    text = "f32[9,66] pad(f32[9,64] x, f32[] z), padding=0_0x1_1"
    loops = str(loops_of(mlirhlo.parse(text)))
    assert "vector.maskedload" in loops
    assert "memref.store" not in loops
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, "f32", (9, 64)), draw(rng, "f32", ())])
