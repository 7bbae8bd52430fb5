"""Functions that LLVM leaves alone, and the loops cut out of them."""

from __future__ import annotations

import re

import pytest

import mlirhlo
from mlirhlo.lowering import target
from mlirhlo.lowering.cpu.compiler import lower

LESS = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
"""


def light_and_hot(body: str) -> tuple[set[str], set[str]]:
    """Names of functions that are marked, and of the others."""
    with target.using(target.AVX512):
        text = lower(mlirhlo.parse(f"{LESS}ENTRY e {{\n{body}\n}}").op).text
    marked = {
        n
        for n, a in re.findall(r"^attributes #(\d+) = (.*)$", text, re.MULTILINE)
        if "optnone" in a
    }
    found: tuple[set[str], set[str]] = (set(), set())
    for name, group in re.findall(r"^define .*@([\w.]+)\(.*#(\d+) \{$", text, re.MULTILINE):
        found[group not in marked].add(re.sub(r"\d+x.*", "", name))
    return found


DOT = """x = f32[{n},{n}] parameter(0)
y = f32[{n},{n}] parameter(1)
ROOT d = f32[{n},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("body", "light", "hot"),
    [
        pytest.param(
            "x = f32[16777216] parameter(0)\nROOT n = f32[16777216] negate(x)",
            {"main"},
            {"negate_0_task_0"},
            id="parallel loop, started where it is called",
        ),
        pytest.param(
            "x = f32[16777216] parameter(0)\nn = f32[16777216] negate(x)\n"
            "ROOT s = f32[16777216] sort(n), dimensions={0}, to_apply=less",
            {"main", "negate_0"},
            {"negate_0_task_0", "sort_1"},
            id="one kernel of two",
        ),
        pytest.param(
            "x = f32[64] parameter(0)\nROOT n = f32[64] negate(x)",
            {"main"},
            {"negate_0"},
            id="loop",
        ),
        pytest.param(DOT.format(n=64), {"main", "dot_0"}, {"tile_f32_"}, id="tiles"),
        pytest.param(
            DOT.format(n=1024).replace("lhs_contracting_dims={1}", "lhs_contracting_dims={0}"),
            {"main", "dot_0", "dot_0_task_1"},
            {"tile_f32_", "dot_0_task_0", "dot_0_task_1_loop_0"},
            id="packing is cut out",
        ),
    ],
)
def test_who_calls_is_light(body: str, light: set[str], hot: set[str]) -> None:
    assert light_and_hot(body) == (light, hot)
