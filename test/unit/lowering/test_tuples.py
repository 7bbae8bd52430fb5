"""Tuples as values of instructions that are usually about arrays."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

pytest.importorskip("llvmlite")

PAIR, NEST = "(f32[2], s32[])", "((f32[2], s32[]), f32[2])"

CASES = {
    "root": f"ROOT twin = {PAIR} copy(pair)",
    "nested": f"both = {NEST} tuple(pair, x)\n ROOT twin = {NEST} copy(both)",
    "taken_apart": f"twin = {PAIR} copy(pair)\n ROOT y = f32[2] get-tuple-element(twin), index=0",
    "of_a_copy": f"twin = {PAIR} copy(pair)\n ROOT third = {PAIR} copy(twin)",
    "beside_itself": f"twin = {PAIR} copy(pair)\n ROOT r = ({PAIR}, {PAIR}) tuple(pair, twin)",
    "in_another_layout": "m = f32[2,3] broadcast(x), dimensions={0}\n t = (f32[2,3]{1,0}) tuple(m)\n"
    " ROOT c = (f32[2,3]{0,1}) copy(t)",
    # A bitcast keeps the layouts that a module is written with.
    "made_in_another_layout": "m = f32[2,3] broadcast(x), dimensions={0}\n b = s32[2] bitcast(x)\n"
    " ROOT t = (f32[2,3]{0,1}, s32[2]) tuple(m, b)",
    "of_a_loop": f"w = {PAIR} while(pair), condition=cond, body=body\n ROOT c = {PAIR} copy(w)",
    "empty": "e = () tuple()\n ROOT c = () copy(e)",
}

MODULE = """HloModule m
cond {{ p = (f32[2], s32[]) parameter(0)  i = s32[] get-tuple-element(p), index=1
  k = s32[] constant(9)  ROOT c = pred[] compare(i, k), direction=LT }}
body {{ p = (f32[2], s32[]) parameter(0)  q = (f32[2], s32[]) copy(p)
  y = f32[2] get-tuple-element(q), index=0  i = s32[] get-tuple-element(q), index=1
  z = f32[2] add(y, y)  one = s32[] constant(1)  j = s32[] add(i, one)
  ROOT r = (f32[2], s32[]) tuple(z, j) }}
ENTRY main {{
  x = f32[2] parameter(0)
  n = s32[] parameter(1)
  pair = (f32[2], s32[]) tuple(x, n)
  {rest}
}}
"""


def leaves(value: object) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", CASES)
def test_copies_of_tuples_hold_what_they_are_of(name: str) -> None:
    module = mlirhlo.parse(MODULE.format(rest=CASES[name]))
    arguments = np.array([1, 2], np.float32), np.int32(7)
    actual, expected = mlirhlo.compile(module)(*arguments), module(*arguments)
    assert isinstance(actual, tuple) == isinstance(expected, tuple)
    for a, e in zip(leaves(actual), leaves(expected), strict=True):
        np.testing.assert_array_equal(a, e)
