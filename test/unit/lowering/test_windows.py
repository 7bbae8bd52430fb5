"""Windows with padding, dilation and reversal, whichever dimension lanes go along, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import agrees, draw, loops_of

import mlirhlo

pytest.importorskip("llvmlite")

LAST = """f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  t = s32[] constant(3)
  m = s32[] multiply(a, t)
  ROOT r = s32[] add(m, b)
}
"""
"""The order of the positions shows in the result."""


@st.composite
def windows(draw_: st.DrawFn) -> tuple[list[int], list[int], str]:
    """Sizes of a base, those of the result, and a window as text."""
    sizes = draw_(st.lists(st.sampled_from([1, 2, 5, 8, 18, 33]), min_size=1, max_size=3))
    result: list[int] = []
    parts: dict[str, list[str]] = {
        k: [] for k in ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
    }
    for size in sizes:
        window, stride = draw_(st.integers(1, 4)), draw_(st.integers(1, 3))
        base, dilation = draw_(st.sampled_from([1, 1, 1, 2])), draw_(st.sampled_from([1, 1, 2, 3]))
        low, high = draw_(st.integers(-2, 6)), draw_(st.integers(-2, 6))
        dilated = (size - 1) * base + 1
        reach = (window - 1) * dilation + 1
        assume(dilated + min(low, 0) + min(high, 0) >= 1)
        assume(dilated + low + high >= reach)
        result.append((dilated + low + high - reach) // stride + 1)
        numbers = (window, stride, f"{low}_{high}", base, dilation, draw_(st.integers(0, 1)))
        for part, number in zip(parts.values(), numbers, strict=True):
            part.append(str(number))
    text = " ".join(f"{key}={'x'.join(part)}" for key, part in parts.items())
    return sizes, result, f"window={{{text}}}"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(windows(), st.randoms())
@pytest.mark.slow
def test_any_window(case: tuple[list[int], list[int], str], random: np.random.Generator) -> None:
    sizes, result, window = case
    order = list(range(len(sizes)))
    random.shuffle(order)
    layout = f"{{{','.join(map(str, order))}}}"
    text = LAST + (
        f"ENTRY e {{\n  x = s32{sizes}{layout} parameter(0)\n  i = s32[] constant(1)\n"
        f"  ROOT r = s32{result}{layout} reduce-window(x, i), {window}, to_apply=f\n}}\n"
    ).replace(", ", ",").replace(",window", ", window").replace(",to_apply", ", to_apply")
    agrees(text, [draw(np.random.default_rng(0), "s32", tuple(sizes))])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("width", [31, 32, 33, 34])
@pytest.mark.parametrize("low", [0, 1, 2])
def test_windows_of_lanes_at_the_edges(width: int, low: int) -> None:
    """Vectors whose first, or last, window reaches one element, or none, beside the base."""
    text = LAST + (
        f"ENTRY e {{\n  x = s32[3,{width}] parameter(0)\n  i = s32[] constant(1)\n"
        f"  ROOT r = s32[3,{width}] reduce-window(x, i), window={{size=1x3 pad=0_0x{low}_{2 - low}}}, "
        "to_apply=f\n}\n"
    )
    agrees(text, [draw(np.random.default_rng(0), "s32", (3, width))])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "pooled",
    [
        "f32[2,9,9,32] x f32[2,5,5,32] size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0",
        "f32[2,9,40] x f32[2,9,40] size=1x3x3 pad=0_0x1_1x1_1",
    ],
)
def test_windows_are_read_as_vectors(pooled: str) -> None:
    base, _, result, window = pooled.split(" ", 3)
    text = (
        "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)\n}\n"
        f"ENTRY e {{\n  x = {base} parameter(0)\n  i = f32[] constant(-inf)\n"
        f"  ROOT r = {result} reduce-window(x, i), window={{{window}}}, to_apply=f\n}}\n"
    )
    assert "vector.gather" not in str(loops_of(mlirhlo.parse(text)))
