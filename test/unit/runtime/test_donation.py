"""`input_output_alias` and `buffer_donor`: results over arguments, where the caller asks for it and elsewhere not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mlirhlo
from mlirhlo.lowering.cpu.planner import plan_module
from mlirhlo.lowering.plan.steps import Copy, While

pytest.importorskip("llvmlite")

ALIASES = "{ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }"
PAIR = """HloModule pair, input_output_alias=ALIASES
ENTRY e {
  x = f32[1000] parameter(0)
  y = f32[1000] parameter(1)
  s = f32[1000] add(x, y)
  n = f32[1000] negate(y)
  r = f32[1000] reverse(x), dimensions={0}
  ROOT t = (f32[1000], f32[1000]) tuple(RESULTS)
}
""".replace("ALIASES", ALIASES)
WALK = """HloModule walk, input_output_alias={ {0}: (0, {}, may-alias) }
test {
  s = (s32[], f32[50,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(49)
  ROOT c = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[50,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[50,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  z = s32[] constant(0)
  j = s32[] add(i, one)
  r = f32[1,64] dynamic-slice(a, i, z), dynamic_slice_sizes={1,64}
  q = f32[1,64] add(r, r)
  u = f32[50,64] dynamic-update-slice(a, q, j, z)
  ROOT t = (s32[], f32[50,64]) tuple(j, u)
}
ENTRY e {
  x = f32[50,64] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[50,64]) tuple(zero, x)
  w = (s32[], f32[50,64]) while(s), condition=test, body=step
  a = f32[50,64] get-tuple-element(w), index=1
  ROOT t = (f32[50,64], s32[]) tuple(a, zero)
}
"""


def arguments() -> list[np.ndarray[tuple[int], np.dtype[np.float32]]]:
    return list(np.random.default_rng(0).random((2, 1000), np.float32))


@pytest.mark.parametrize("results", ["s, n", "n, s", "y, x", "x, y", "r, s", "y, y", "n, n"])
def test_results_lie_where_the_caller_says(results: str) -> None:
    module = mlirhlo.parse(PAIR.replace("RESULTS", results))
    expected = [np.array(v) for v in module(*arguments())]
    executable = mlirhlo.compile(module)
    assert dict(executable.aliases) == {0: 0, 1: 1}
    kept = arguments()
    for got, wanted in zip(executable(*kept), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for array, before in zip(kept, arguments(), strict=True):
        np.testing.assert_array_equal(array, before)  # not asked for, not touched
    x, y = arguments()
    assert executable(x, y, out=(x, y))[0] is x
    for got, wanted in zip((x, y), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    x, y = arguments()
    executable(x, y, out=(y, x))  # each over the other's: not what the module allows, and right
    for got, wanted in zip((y, x), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    checked = mlirhlo.compile(module, debug=True)
    for got, wanted in zip(checked(*arguments()), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


GIVEN = """HloModule given, HEAD
ENTRY e {
  x = f32[1000] parameter(0)
  p = (f32[10], s32[1000]) parameter(1)
  y = s32[1000] get-tuple-element(p), index=1
  i = s32[1000] convert(x)
  n = s32[1000] add(i, y)
  f = f32[1000] convert(n)
  a = f32[1000] add(x, f)
  ROOT t = (s32[], f32[1000], s32[1000], f32[1000]) tuple(s32[] constant(3), f, n, a)
}
"""


@pytest.mark.parametrize(
    ("head", "aliases"),
    [
        ("buffer_donor={ (0, {}) }", {1: 0}),
        ("buffer_donor={ (0, {}), (1, {1}), (1, {0}) }", {1: 0, 2: 2}),
        ("buffer_donor={ (0, {}), (1, {1}) }, input_output_alias={ {1}: (1, {1}) }", {1: 2, 2: 0}),
        ("buffer_donor={ (0, {}) }, input_output_alias={ {3}: (0, {}) }", {3: 0}),
    ],
)
def test_a_donor_goes_to_a_result_of_its_size(head: str, aliases: dict[int, int]) -> None:
    module = mlirhlo.parse(GIVEN.replace("HEAD", head))
    executable = mlirhlo.compile(module)
    assert dict(executable.aliases) == aliases

    def given() -> tuple[NDArray[Any], tuple[NDArray[Any], NDArray[Any]]]:
        x = np.random.default_rng(0).random(1000, np.float32) * 100
        return x, (np.ones(10, np.float32), np.arange(1000, dtype=np.int32))

    expected = [np.array(v) for v in module(*given())]
    x, (one, y) = given()
    leaves = [x, one, y]
    out = [np.empty_like(v) for v in expected]
    for result, parameter in aliases.items():
        out[result] = leaves[parameter].view(expected[result].dtype)
    executable(x, (one, y), out=tuple(out))
    for got, wanted in zip(out, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    checked = mlirhlo.compile(module, debug=True)
    for got, wanted in zip(checked(*given()), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_module_out_of_the_cache_knows_its_aliases(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLIRHLO_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        executable = mlirhlo.compile(mlirhlo.parse(PAIR.replace("RESULTS", "s, n")))
        assert dict(executable.aliases) == {0: 0, 1: 1}
        x, y = arguments()
        executable(x, y, out=(x, y))
        np.testing.assert_array_equal(x, sum(arguments()))


def test_what_is_updated_in_place_needs_no_memory() -> None:
    plan = plan_module(mlirhlo.parse(WALK).op)
    (loop,) = [s for s in plan.steps if isinstance(s, While)]
    assert not [s for s in loop.body if isinstance(s, Copy) and s.source.size > 4]
    assert plan.arena_size < 1000
    (start,) = [s for s in plan.steps if isinstance(s, Copy) and s.source.size > 4]
    assert start.source is start.target.alias  # left out at run time where both are one array


def test_a_loop_in_the_argument_itself() -> None:
    module = mlirhlo.parse(WALK)
    expected = np.array(module(np.ones((50, 64), np.float32))[0])
    x, count = np.ones((50, 64), np.float32), np.zeros((), np.int32)
    mlirhlo.compile(module)(x, out=(x, count))
    np.testing.assert_array_equal(x, expected)
    checked = mlirhlo.compile(module, debug=True)(np.ones((50, 64), np.float32))
    np.testing.assert_array_equal(checked[0], expected)
