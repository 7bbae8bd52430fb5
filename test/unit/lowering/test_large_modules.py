"""The CPU compiler on deep, wide and many: it ends, and takes twice as many calls for twice as much."""

from __future__ import annotations

import numpy as np
import pytest
from program_shapes import SHAPES
from support import calls_of

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.lowering.cpu import emit
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")

DEEP = ["chain", "chain_in_comparator", "chain_in_fusion", "chain_in_reducer"]
GROWING = ["computations", "reducers", "nested_calls", "nested_fusions"]
LOOPS = ["nested_conditionals", "nested_whiles", "whiles_in_a_row"]
WIDE = ["updates", "readers", "parameters", "wide_parameter"]


@pytest.mark.parametrize(
    ("shape", "count"),
    [(s, 1500) for s in DEEP] + [(s, 1200) for s in LOOPS] + [("whiles_in_a_row", 320)],
)
def test_depth_beyond_the_stack_of_python_gives_the_values_of_the_interpreter(
    shape: str, count: int
) -> None:
    module = mlirhlo.parse(SHAPES[shape](count))
    arguments = make_fake_arguments(module.op)
    results, expected = mlirhlo.compile(module)(*arguments), module(*arguments)
    for result, value in zip(*map(leaves, (results, expected)), strict=True):
        np.testing.assert_array_equal(result, value)


def leaves(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def calls(text: str) -> int:
    module = parse_module(text)
    return calls_of(lambda: lower(module))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("shape", [*DEEP, *GROWING, *LOOPS, *WIDE])
def test_twice_as_much_takes_twice_the_calls(shape: str) -> None:
    count = 1200 if shape == "nested_whiles" else 480 if shape in LOOPS else 200
    calls(SHAPES[shape](50))  # what is cached of shapes is there from now on
    assert calls(SHAPES[shape](2 * count)) < 2.3 * calls(SHAPES[shape](count))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("shape", ["computations", "parameters", "wide_loop"])
def test_no_function_grows_with_the_program(shape: str) -> None:
    def longest(count: int) -> int:
        functions = lower(parse_module(SHAPES[shape](count))).text.split("\n}\n")
        return max(map(len, functions))

    assert longest(4000) < 1.1 * longest(2000)


def test_functions_of_elements_nested_too_deep_are_refused() -> None:
    with pytest.raises(HloError) as caught:
        lower(parse_module(SHAPES["nested_maps"](2000)))
    assert caught.value.diagnostics[0].code == "HLO0309"


SCAN = """HloModule scan
cond {
  p = (s32[], f32[6,4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(6)
  ROOT c = pred[] compare(i, k), direction=LT
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
body {
  p = (s32[], f32[6,4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[6,4] get-tuple-element(p), index=1
  carry = f32[4] get-tuple-element(p), index=2
  z = s32[] constant(0)
  row = f32[1,4] dynamic-slice(x, i, z), dynamic_slice_sizes={1,4}
  flat = f32[4] reshape(row)
  sum = f32[4] add(carry, flat)
  sorted = f32[4] sort(sum), dimensions={0}, to_apply=less
  square = f32[1,4] reshape(sorted)
  new = f32[6,4] dynamic-update-slice(x, square, i, z)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[6,4], f32[4]) tuple(j, new, sorted)
}
ENTRY main {
  x = f32[6,4] parameter(0)
  y = f32[4] parameter(1)
  z = s32[] constant(0)
  q = (s32[], f32[6,4], f32[4]) tuple(z, x, y)
  w = (s32[], f32[6,4], f32[4]) while(q), condition=cond, body=body
  rows = f32[6,4] get-tuple-element(w), index=1
  last = f32[4] get-tuple-element(w), index=2
  ROOT r = (f32[6,4], f32[4]) tuple(rows, last)
}
"""


@pytest.mark.parametrize("longest", [1, 2, 3])
@pytest.mark.parametrize("text", [SCAN, *(SHAPES[s](80) for s in (*LOOPS, *WIDE, "wide_loop"))])
def test_steps_in_functions_of_their_own(
    longest: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emit, "_LONGEST", longest)
    module = mlirhlo.parse(text)
    arguments = make_fake_arguments(module.op)
    results, expected = mlirhlo.compile(module)(*arguments), module(*arguments)
    for result, value in zip(*map(leaves, (results, expected)), strict=True):
        np.testing.assert_allclose(result, value, 1e-5)


TURNS = """HloModule turns
cond {{
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(2)
  ROOT c = pred[] compare(i, k), direction=LT
}}
{bodies}
ENTRY main {{
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  q = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(q), condition=cond, body=b{last}
  ROOT y = f32[4] get-tuple-element(w), index=1
}}
"""


def nested_turns(depth: int, turning: set[int]) -> str:
    """Loops inside each other, some of two turns, whose state is read after the loops inside it."""
    bodies: list[str] = []
    for n in range(depth):
        first = 0 if n in turning else 1
        inner = "  w = f32[4] add(x, x)"
        if n:
            inner = f"""  z = s32[] constant({first})
  q = (s32[], f32[4]) tuple(z, x)
  u = (s32[], f32[4]) while(q), condition=cond, body=b{n - 1}
  v = f32[4] get-tuple-element(u), index=1
  w = f32[4] maximum(v, x)"""
        bodies.append(f"""b{n} {{
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
{inner}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4]) tuple(j, w)
}}""")
    return TURNS.format(bodies="\n".join(bodies), last=depth - 1)


@pytest.mark.parametrize(("depth", "turning"), [(1, {0}), (3, {1, 2}), (17, {2, 16}), (40, {20})])
def test_nested_loops_keep_what_their_next_round_reads(depth: int, turning: set[int]) -> None:
    module = mlirhlo.parse(nested_turns(depth, turning))
    x = np.array([-1.5, 0.25, 1.0, 3.0], np.float32)
    np.testing.assert_array_equal(mlirhlo.compile(module)(x), module(x))


@pytest.mark.parametrize("number", [-1, 0, 3, 6, 7, 40])
def test_branches_out_of_range_are_the_last(number: int) -> None:
    branches = [
        f"f{n} {{ x{n} = s32[] parameter(0) ROOT r{n} = s32[] constant({n * n}) }}"
        for n in range(7)
    ]
    names = ", ".join(f"f{n}" for n in range(7))
    given = ", ".join(["i"] * 8)
    entry = f"ENTRY e {{ i = s32[] parameter(0) ROOT r = s32[] conditional({given}), branch_computations={{{names}}} }}"
    module = mlirhlo.parse("\n".join([*branches, entry]))
    assert mlirhlo.compile(module)(np.int32(number)) == module(np.int32(number))
